import { shapeIndex } from './cron-days.js';

/**
 * Wall-clock arithmetic on whole numbers. A wall-clock time is held as if it were UTC: the ms since 1970-01-01 00:00
 * that a clock on that wall has counted. It names no instant before a zone turns it into one.
 */

/** The times of day and the days that an expression names. */
export interface WallClockPattern {
  /** For each second (or minute, hour) the first one named at or after it; the size of the field if there is none. */
  readonly nextSecond: Uint8Array;
  readonly nextMinute: Uint8Array;
  readonly nextHour: Uint8Array;
  /** Days by shape of month, see {@link shapeIndex}. */
  readonly days: Int32Array;
  /** Bit 0 is January. */
  readonly months: number;
}

export const DAY_MS = 86_400_000;
/** 9999-12-31 23:59:59 on the wall: the last time that may be named. */
const LAST_WALL_CLOCK = 253_402_300_799_000;

/** The calendar repeats after 400 years, weekdays included: what is not named in that time is never named. */
const CALENDAR_CYCLE_MONTHS = 4_800;

/**
 * The first wall-clock time at or after `from` that the pattern names; undefined if there is none up to 9999.
 * @param from a whole second, as a wall-clock time in ms.
 */
export function nextWallClock(pattern: WallClockPattern, from: number): number | undefined {
  const today = Math.floor(from / DAY_MS);
  const date = dateOf(today);
  let { year, month } = date;
  let firstDay = today - date.day + 1;
  let mask = daysIn(pattern, year, month, firstDay);
  if ((mask >>> (date.day - 1)) & 1) {
    const time = nextTimeOfDay(pattern, (from - today * DAY_MS) / 1000);
    if (time !== undefined) return within(today * DAY_MS + time * 1000);
  }
  mask = date.day >= 31 ? 0 : mask & (-1 << date.day);
  for (let i = 0; i <= CALENDAR_CYCLE_MONTHS; i++) {
    if (mask !== 0) {
      const day = firstDay + 31 - Math.clz32(mask & -mask);
      const time = nextTimeOfDay(pattern, 0);
      return time === undefined ? undefined : within(day * DAY_MS + time * 1000);
    }
    firstDay += monthLength(year, month);
    month += 1;
    if (month > 12) {
      month = 1;
      year += 1;
      if (year > 9999) return undefined;
    }
    mask = daysIn(pattern, year, month, firstDay);
  }
  return undefined;
}

/** The days of one month that the pattern names, as bits. */
function daysIn(pattern: WallClockPattern, year: number, month: number, firstDay: number): number {
  if (((pattern.months >>> (month - 1)) & 1) === 0) return 0;
  // 1970-01-01 was a Thursday (4).
  const firstWeekday = (((firstDay + 4) % 7) + 7) % 7;
  return pattern.days[shapeIndex(firstWeekday, monthLength(year, month))] ?? 0;
}

/** The first named second of the day at or after `from` (0..86399). */
function nextTimeOfDay(pattern: WallClockPattern, from: number): number | undefined {
  let hour = Math.floor(from / 3600);
  let minute = Math.floor(from / 60) % 60;
  let second = pattern.nextSecond[from % 60] ?? 60;
  if (second > 59) {
    minute += 1;
    second = first(pattern.nextSecond);
  }
  const namedMinute = minute > 59 ? 60 : (pattern.nextMinute[minute] ?? 60);
  if (namedMinute !== minute) second = first(pattern.nextSecond);
  minute = namedMinute;
  if (minute > 59) {
    hour += 1;
    minute = first(pattern.nextMinute);
    second = first(pattern.nextSecond);
  }
  const namedHour = hour > 23 ? 24 : (pattern.nextHour[hour] ?? 24);
  if (namedHour > 23) return undefined;
  if (namedHour !== hour) {
    minute = first(pattern.nextMinute);
    second = first(pattern.nextSecond);
  }
  return namedHour * 3600 + minute * 60 + second;
}

function first(next: Uint8Array): number {
  return next[0] ?? 0;
}

function within(wallClock: number): number | undefined {
  return wallClock > LAST_WALL_CLOCK ? undefined : wallClock;
}

interface CalendarDate {
  readonly year: number;
  /** 1..12 */
  readonly month: number;
  /** 1..31 */
  readonly day: number;
}

/** The date of a day number (0 is 1970-01-01) in the Gregorian calendar, by counting 400-year eras from 1 March. */
function dateOf(dayNumber: number): CalendarDate {
  const z = dayNumber + 719_468;
  const era = Math.floor(z / 146_097);
  const dayOfEra = z - era * 146_097;
  const yearOfEra = Math.floor(
    (dayOfEra -
      Math.floor(dayOfEra / 1460) +
      Math.floor(dayOfEra / 36_524) -
      Math.floor(dayOfEra / 146_096)) /
      365,
  );
  const dayOfYear = dayOfEra - (365 * yearOfEra + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100));
  const marchMonth = Math.floor((5 * dayOfYear + 2) / 153);
  const month = marchMonth < 10 ? marchMonth + 3 : marchMonth - 9;
  return {
    year: yearOfEra + era * 400 + (month <= 2 ? 1 : 0),
    month,
    day: dayOfYear - Math.floor((153 * marchMonth + 2) / 5) + 1,
  };
}

function monthLength(year: number, month: number): number {
  if (month === 2) return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0) ? 29 : 28;
  return month === 4 || month === 6 || month === 9 || month === 11 ? 30 : 31;
}

/** A wall-clock time as text, `2026-03-08T02:30:00`. */
export function formatWallClock(wallClock: number): string {
  return new Date(wallClock).toISOString().slice(0, 19);
}
