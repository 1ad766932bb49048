import { looksLikeDate, parseDate } from './calendar-date.js';
import { CarillonError, shortText } from './errors.js';

/**
 * Named calendars: lists of local dates that schedules leave out. A calendar holds no times and no zone; each
 * schedule reads its dates in its own zone.
 */

/** One date of a calendar, or a run of them. */
export interface CalendarEntry {
  /** `2026-12-24` */
  readonly from: string;
  /** The last date of it, also left out; the same as `from` for one date. */
  readonly to: string;
  /** What people call it, such as `Christmas Day`. */
  readonly label?: string;
}

/** A calendar as it is stored. */
export interface Calendar {
  readonly name: string;
  /** Rises with every change of the dates, from 1, also beyond a deletion. */
  readonly version: number;
  /** In order of date. */
  readonly entries: readonly CalendarEntry[];
}

/** Calendars by name, as they stood at one time. */
export type CalendarSet = ReadonlyMap<string, Calendar>;

/** One date with its label, as a caller may write it; `to` defaults to `from`. */
export type CalendarDate = string | { from: string; to?: string; label?: string };

export const MOST_CALENDAR_ENTRIES = 10_000;
const LONGEST_LABEL = 200;
const NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/;

/** @throws CarillonError `INVALID_ID` for what is no name of a calendar. */
export function checkCalendarName(value: unknown, field = 'calendar'): string {
  if (typeof value === 'string' && NAME.test(value)) return value;
  const todo = "write 1 to 64 letters, digits, dots, dashes and underscores, such as 'uk-holidays'";
  const message = `${field}: ${shortText(value)} is not the name of a calendar; ${todo}`;
  throw new CarillonError('INVALID_ID', message, { field, given: value, todo });
}

/**
 * Reads a calendar's dates from a plain list: one line each, `2026-12-25`, or `2026-12-24..2026-12-26` with both ends
 * left out, and behind `#` what people call it. Empty lines and lines of comment only are passed over.
 *
 * ```
 * # England and Wales
 * 2026-12-25  # Christmas Day
 * 2026-12-28..2026-12-31
 * ```
 * @param dates such a text, or a list of such lines or of objects.
 * @returns the entries in order of date.
 * @throws CarillonError `INVALID_OPTION` with the line, for what is no date, a date given twice, no date at all, and
 *   more than {@link MOST_CALENDAR_ENTRIES}.
 */
export function readCalendar(dates: string | readonly CalendarDate[]): CalendarEntry[] {
  const items: readonly unknown[] =
    typeof dates === 'string' ? dates.replace(/^\uFEFF/, '').split(/\r\n|\r|\n/) : dates;
  if (!Array.isArray(items)) {
    throw refuse('dates', dates, 'are no list', "write a text of one date a line, or ['2026-12-25']");
  }
  const place = (index: number) => (typeof dates === 'string' ? `line ${index + 1}` : `dates[${index}]`);
  const entries: CalendarEntry[] = [];
  const seen = new Map<string, string>();
  items.forEach((item, index) => {
    const entry = typeof item === 'string' ? readLine(item, place(index)) : readObject(item, place(index));
    if (entry === undefined) return;
    const key = `${entry.from}..${entry.to}`;
    const before = seen.get(key);
    if (before !== undefined) {
      throw refuse(place(index), entry.from, `repeats ${before}`, 'leave one of the two out');
    }
    seen.set(key, place(index));
    entries.push(entry);
  });
  if (entries.length === 0) {
    throw refuse('dates', undefined, 'hold no date', 'write at least one, or delete the calendar');
  }
  if (entries.length > MOST_CALENDAR_ENTRIES) {
    const problem = `are ${entries.length} entries`;
    throw refuse('dates', undefined, problem, `write at most ${MOST_CALENDAR_ENTRIES}, or ranges`);
  }
  return entries.sort((a, b) => (a.from === b.from ? compare(a.to, b.to) : compare(a.from, b.from)));
}

/** The line that {@link readCalendar} reads as this entry. */
export function calendarLine({ from, to, label }: CalendarEntry): string {
  return `${from === to ? from : `${from}..${to}`}${label === undefined ? '' : `  # ${label}`}`;
}

function readLine(line: string, place: string): CalendarEntry | undefined {
  const hash = line.indexOf('#');
  const text = (hash < 0 ? line : line.slice(0, hash)).trim();
  if (text === '') return undefined;
  const label = hash < 0 ? '' : line.slice(hash + 1).trim();
  const [from = '', to = from, ...more] = text.split('..').map((part) => part.trim());
  if (more.length > 0 || !looksLikeDate(from) || !looksLikeDate(to)) {
    throw refuse(place, line, 'is not a date', "write '2026-12-25' or '2026-12-24..2026-12-26', one a line");
  }
  return checkEntry(from, to, label, place);
}

function readObject(item: unknown, place: string): CalendarEntry {
  if (typeof item !== 'object' || item === null) {
    throw refuse(place, item, 'is not a date', "write '2026-12-25' or { from, to, label }");
  }
  const { from, to = from, label = '', ...rest } = item as Record<string, unknown>;
  const [unknown] = Object.keys(rest);
  if (unknown !== undefined) {
    throw refuse(`${place}.${unknown}`, rest[unknown], 'is no option', 'write from, to and label');
  }
  return checkEntry(from, to, label, place);
}

function checkEntry(from: unknown, to: unknown, label: unknown, place: string): CalendarEntry {
  const [first, last] = [parseDate(from, place), parseDate(to, place)];
  if (last < first) throw refuse(place, to, `lies before ${from}`, 'write the earlier date first');
  if (
    typeof label !== 'string' ||
    label.length > LONGEST_LABEL ||
    /[\r\n]/.test(label) ||
    !label.isWellFormed()
  ) {
    throw refuse(place, label, 'is no short label', `write at most ${LONGEST_LABEL} characters on one line`);
  }
  const entry = { from: from as string, to: to as string };
  const name = label.trim();
  return name === '' ? entry : { ...entry, label: name };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function refuse(field: string, given: unknown, problem: string, todo: string): CarillonError {
  const message = `${field}${given === undefined ? '' : `: ${shortText(given)}`} ${problem}; ${todo}`;
  return new CarillonError('INVALID_OPTION', message, { field, given, todo });
}
