import { BoundedMap } from './bounded-map.js';
import type { Calendar, CalendarEntry, CalendarSet } from './calendar.js';
import { parseDate } from './calendar-date.js';
import { CarillonError } from './errors.js';
import { calendarsOf, type StoredExclusion } from './exclusions-definition.js';
import { JoinedSpans, localSpans, type TimeSpan } from './exclusions-spans.js';
import { HOST_TIME_ZONES, type OffsetSource, type TimeZoneData } from './time-zone-offsets.js';
import { DAY_MS } from './wall-clock.js';

/** Why a time is excluded. */
export interface ExclusionReason {
  /** What is written in the definition or the calendar: `2026-12-25`, `2026-12-24..2026-12-26`, two instants. */
  readonly entry: string;
  /** The calendar it comes from, and the version of it that was asked. */
  readonly calendar?: string;
  readonly version?: number;
  /** What the calendar calls the date. */
  readonly label?: string;
  /** The same as a phrase: `2026-12-25 (Christmas Day) of calendar uk-holidays, version 3`. */
  readonly text: string;
}

/** Exclusions of one zone, ready to be asked. */
export interface CompiledExclusions {
  readonly tz: string;
  /** Two compilations with the same text here exclude the same times. */
  readonly canonical: string;
  /** The versions of the calendars that were read, by name. */
  readonly versions: Readonly<Record<string, number>>;
  /** Why an instant is excluded; undefined when it is not. The first reason in the order written, if there are several. */
  excludes(ms: number): ExclusionReason | undefined;
  /** The whole stretch of excluded time that holds an instant. */
  spanAt(ms: number): TimeSpan | undefined;
  /** The first such stretch that starts after an instant. */
  spanAfter(ms: number): TimeSpan | undefined;
  /** The stretch that the entry behind {@link excludes} covers around the instant. */
  entrySpanAt(ms: number): TimeSpan | undefined;
}

export const NO_CALENDARS: CalendarSet = new Map();

/**
 * Compiles exclusions for a zone. The same set of calendars and the same list give the same object, so that many
 * schedules share one.
 * @param exclude as `checkExclude` gave it.
 * @param calendars all calendars that the list may name. A set is never changed; a changed calendar makes a new set.
 * @param timeZones defaults to the data of this Node.
 * @throws CarillonError `NOT_FOUND` for a calendar that is not in the set, `INVALID_TIME_ZONE`.
 */
export function compileExclusions(
  exclude: readonly StoredExclusion[],
  tz: string,
  calendars: CalendarSet = NO_CALENDARS,
  timeZones: TimeZoneData = HOST_TIME_ZONES,
): CompiledExclusions {
  // What is computed with other data is not shared with what this Node's says.
  if (timeZones !== HOST_TIME_ZONES) return new Exclusions(exclude, tz, calendars, timeZones);
  let known = compiled.get(calendars);
  if (known === undefined) {
    known = new BoundedMap(1_000);
    compiled.set(calendars, known);
  }
  const key = `${tz} ${JSON.stringify(exclude)}`;
  let found = known.get(key);
  if (found === undefined) {
    found = new Exclusions(exclude, tz, calendars, timeZones);
    known.set(key, found);
  }
  return found;
}

const compiled = new WeakMap<CalendarSet, BoundedMap<CompiledExclusions>>();

/** A stretch of time with what excludes it. */
interface ReasonedSpan extends TimeSpan {
  /** Its place in the list as written. */
  readonly order: number;
  readonly entry: string;
  readonly calendar?: Calendar;
  readonly label?: string | undefined;
}

class Exclusions implements CompiledExclusions {
  readonly canonical: string;
  readonly versions: Readonly<Record<string, number>>;
  /** By start. */
  readonly #spans: readonly ReasonedSpan[];
  readonly #joined: JoinedSpans;

  constructor(
    exclude: readonly StoredExclusion[],
    readonly tz: string,
    calendars: CalendarSet,
    timeZones: TimeZoneData,
  ) {
    const zone = timeZones.offsetsOf(tz);
    const spans = exclude.flatMap((entry) => spansOf(entry, zone, calendars));
    this.#spans = spans.map((span, order) => ({ ...span, order })).sort((a, b) => a.start - b.start);
    this.#joined = new JoinedSpans(this.#spans);
    const versions: Record<string, number> = {};
    for (const name of calendarsOf(exclude)) versions[name] = calendarOf(name, calendars).version;
    this.versions = versions;
    this.canonical = JSON.stringify([tz, exclude, versions]);
  }

  excludes(ms: number): ExclusionReason | undefined {
    const span = this.#reasonAt(ms);
    return span && reasonOf(span);
  }

  spanAt(ms: number): TimeSpan | undefined {
    return this.#joined.at(ms);
  }

  spanAfter(ms: number): TimeSpan | undefined {
    return this.#joined.after(ms);
  }

  entrySpanAt(ms: number): TimeSpan | undefined {
    return this.#reasonAt(ms);
  }

  #reasonAt(ms: number): ReasonedSpan | undefined {
    const joined = this.#joined.at(ms);
    if (joined === undefined) return undefined;
    let best: ReasonedSpan | undefined;
    for (let i = this.#firstFrom(joined.start); i < this.#spans.length; i++) {
      const span = this.#spans[i] as ReasonedSpan;
      if (span.start > ms) break;
      if (span.end > ms && (best === undefined || span.order < best.order)) best = span;
    }
    return best;
  }

  /** The index of the first span that starts at or after an instant. */
  #firstFrom(ms: number): number {
    let low = 0;
    let high = this.#spans.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#spans[middle] as ReasonedSpan).start >= ms) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

type WrittenSpan = Omit<ReasonedSpan, 'order'>;

function spansOf(exclusion: StoredExclusion, zone: OffsetSource, calendars: CalendarSet): WrittenSpan[] {
  if (typeof exclusion === 'string') return datesOf({ from: exclusion, to: exclusion }, zone);
  if ('calendar' in exclusion) {
    const calendar = calendarOf(exclusion.calendar, calendars);
    return calendar.entries.flatMap((entry) =>
      datesOf(entry, zone).map((span) => ({ ...span, calendar, label: entry.label })),
    );
  }
  const { from, to } = exclusion;
  if (typeof from === 'string' || typeof to === 'string') {
    return datesOf({ from: String(from), to: String(to) }, zone);
  }
  const entry = `${new Date(from).toISOString()}..${new Date(to).toISOString()}`;
  return [{ start: from, end: to + 1, entry }];
}

function datesOf({ from, to }: CalendarEntry, zone: OffsetSource): WrittenSpan[] {
  const entry = from === to ? from : `${from}..${to}`;
  const spans = localSpans(zone, parseDate(from, 'from'), parseDate(to, 'to') + DAY_MS);
  return spans.map((span) => ({ ...span, entry }));
}

function calendarOf(name: string, calendars: CalendarSet): Calendar {
  const calendar = calendars.get(name);
  if (calendar !== undefined) return calendar;
  const todo = `store it: carillon calendars set ${name} <file>`;
  throw new CarillonError('NOT_FOUND', `exclude: there is no calendar ${name}; ${todo}`, {
    field: 'exclude',
    given: name,
    todo,
  });
}

function reasonOf({ entry, calendar, label }: ReasonedSpan): ExclusionReason {
  const named = label === undefined ? entry : `${entry} (${label})`;
  if (calendar === undefined) return { entry, text: named };
  const { name, version } = calendar;
  const text = `${named} of calendar ${name}, version ${version}`;
  return { entry, calendar: name, version, ...(label === undefined ? {} : { label }), text };
}
