import { checkCalendarName } from './calendar.js';
import { looksLikeDate, parseDate } from './calendar-date.js';
import { CarillonError, shortText } from './errors.js';
import { type Instant, parseInstant } from './instant.js';

/**
 * Times at which a schedule does not fire: a local date in the schedule's zone, `2026-12-25`; a range of dates or of
 * instants, both ends left out too; or the dates of a stored calendar.
 */
export type Exclusion = string | { from: Instant; to: Instant } | { calendar: string };

/** What becomes of an excluded tick: it does not exist, or it runs at the same wall time on the next free date. */
export type OnExcluded = 'skip' | 'next';

/** An exclusion as it is stored: dates as texts, instants in ms. */
export type StoredExclusion =
  | string
  | { from: string; to: string }
  | { from: number; to: number }
  | { calendar: string };

const MOST_EXCLUSIONS = 1_000;
const HOW = "write '2026-12-25', { from, to } or { calendar: 'uk-holidays' }";

/**
 * Checks `exclude` and gives the form that is stored; undefined for none.
 * @throws CarillonError `INVALID_OPTION`, and `INVALID_ID` for what cannot be a calendar's name.
 */
export function checkExclude(exclude: unknown): StoredExclusion[] | undefined {
  if (exclude === undefined) return undefined;
  if (!Array.isArray(exclude)) {
    throw refuse('exclude', exclude, 'is no list', "write ['2026-12-25'], or [{ calendar: 'uk-holidays' }]");
  }
  if (exclude.length > MOST_EXCLUSIONS) {
    const problem = `has ${exclude.length} entries`;
    throw refuse(
      'exclude',
      undefined,
      problem,
      `write at most ${MOST_EXCLUSIONS}, or put them into a calendar`,
    );
  }
  const seen = new Map<string, number>();
  const stored = exclude.map((entry: unknown, i) => {
    const checked = checkEntry(entry, `exclude[${i}]`);
    const key = JSON.stringify(checked);
    const before = seen.get(key);
    if (before !== undefined) {
      throw refuse(`exclude[${i}]`, entry, `repeats exclude[${before}]`, 'leave one of the two out');
    }
    seen.set(key, i);
    return checked;
  });
  return stored.length === 0 ? undefined : stored;
}

/**
 * Checks `onExcluded`; undefined stands for `skip`.
 * @param exclude as checked: without it the option has nothing to say.
 * @throws CarillonError `INVALID_OPTION`
 */
export function checkOnExcluded(
  onExcluded: unknown,
  exclude: readonly StoredExclusion[] | undefined,
): 'next' | undefined {
  if (onExcluded === undefined) return undefined;
  if (onExcluded !== 'skip' && onExcluded !== 'next') {
    throw refuse('onExcluded', onExcluded, 'is unknown', "write 'skip' or 'next'");
  }
  if (exclude === undefined) {
    throw refuse('onExcluded', onExcluded, 'belongs to exclude', 'leave it out, or write what is excluded');
  }
  return onExcluded === 'next' ? 'next' : undefined;
}

/** The calendars that exclusions name, each once. */
export function calendarsOf(exclude: readonly StoredExclusion[] | undefined): string[] {
  const names = (exclude ?? []).flatMap((entry) =>
    typeof entry === 'object' && 'calendar' in entry ? [entry.calendar] : [],
  );
  return [...new Set(names)];
}

function checkEntry(entry: unknown, field: string): StoredExclusion {
  if (typeof entry === 'string') {
    if (looksLikeDate(entry)) return dateText(entry, field);
    throw refuse(field, entry, 'is not a date', HOW);
  }
  if (typeof entry !== 'object' || entry === null) throw refuse(field, entry, 'excludes nothing', HOW);
  const given = entry as Record<string, unknown>;
  const known = 'calendar' in given ? ['calendar'] : ['from', 'to'];
  const unknown = Object.keys(given).find((key) => !known.includes(key));
  if (unknown !== undefined) throw refuse(`${field}.${unknown}`, given[unknown], 'is no option here', HOW);
  if ('calendar' in given) return { calendar: checkCalendarName(given.calendar, `${field}.calendar`) };
  return checkRange(given.from, given.to, field);
}

function checkRange(from: unknown, to: unknown, field: string): StoredExclusion {
  for (const [end, value] of [
    ['from', from],
    ['to', to],
  ] as const) {
    if (value === undefined)
      throw refuse(`${field}.${end}`, undefined, 'is missing', 'write both ends of the range');
  }
  const dates = [from, to].filter((end) => typeof end === 'string' && looksLikeDate(end)).length;
  if (dates === 1) {
    throw refuse(field, `${from} to ${to}`, 'has a date at one end only', 'write two dates or two instants');
  }
  const range =
    dates === 2
      ? { from: dateText(from, `${field}.from`), to: dateText(to, `${field}.to`) }
      : { from: parseInstant(from, `${field}.from`), to: parseInstant(to, `${field}.to`) };
  if (range.to < range.from)
    throw refuse(`${field}.to`, to, 'lies before from', 'write the earlier end first');
  return range as StoredExclusion;
}

function dateText(value: unknown, field: string): string {
  parseDate(value, field);
  return value as string;
}

function refuse(field: string, given: unknown, problem: string, todo: string): CarillonError {
  const message = `${field}${given === undefined ? '' : `: ${shortText(given)}`} ${problem}; ${todo}`;
  return new CarillonError('INVALID_OPTION', message, { field, given, todo });
}
