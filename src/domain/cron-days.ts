import { DAY_OF_MONTH, DAY_OF_WEEK, fieldValue } from './cron-fields.js';
import { type CronSource, refuseCron } from './cron-refusal.js';

/** A month as far as any day rule can tell: the weekday of its 1st (0 is Sunday) and its number of days. */
interface MonthShape {
  readonly firstWeekday: number;
  readonly length: number;
}

/** The days of a month that a rule names, as bits: bit 0 is the 1st. */
export type DayRule = (month: MonthShape) => number;

/** Months come in 28 shapes; a day table holds one bit mask for each, found by {@link shapeIndex}. */
const SHAPES = 28;

export function shapeIndex(firstWeekday: number, length: number): number {
  return firstWeekday * 4 + length - 28;
}

/**
 * The days of every shape of month. Both fields restricted: a day that either names (OR), as Vixie cron has it;
 * if either starts with `*` or `?`, a day that both name (AND).
 */
export function dayTable(dayOfMonth: DayRule, dayOfWeek: DayRule, both: boolean): Int32Array {
  const table = new Int32Array(SHAPES);
  for (let firstWeekday = 0; firstWeekday < 7; firstWeekday++) {
    for (let length = 28; length <= 31; length++) {
      const shape = { firstWeekday, length };
      const days = both ? dayOfMonth(shape) & dayOfWeek(shape) : dayOfMonth(shape) | dayOfWeek(shape);
      table[shapeIndex(firstWeekday, length)] = days & (length === 31 ? 0x7fffffff : (1 << length) - 1);
    }
  }
  return table;
}

/** The rule of plain days of the month. */
export function daysOfMonth(days: readonly number[]): DayRule {
  let mask = 0;
  for (const day of days) mask |= bit(day);
  return () => mask;
}

/** The rule of plain weekdays. */
export function daysOfWeek(weekdays: readonly number[]): DayRule {
  const named = new Set(weekdays);
  return ({ firstWeekday, length }) => {
    let mask = 0;
    for (let day = 1; day <= length; day++) if (named.has(weekdayOf(day, firstWeekday))) mask |= bit(day);
    return mask;
  };
}

/**
 * The rule of a day-of-month item that no number can say, in upper case: `L` (last day), `L-2` (two days before
 * it), `LW` (last workday), `L-2W`, `15W` (the workday nearest the 15th, within the month). Undefined for others.
 */
export function specialDayOfMonth(item: string, source: CronSource): DayRule | undefined {
  const last = /^L(?:-(\d+))?(W)?$/.exec(item);
  if (last !== null) {
    const before = Number(last[1] ?? 0);
    if (before > 30) {
      throw refuseCron(source, `day of month: no month has a day ${item}`, 'write L-1 to L-30');
    }
    return ({ firstWeekday, length }) => {
      const day = length - before;
      if (day < 1) return 0;
      return bit(last[2] === undefined ? day : nearestWorkday(day, firstWeekday, length));
    };
  }
  const workday = /^(\d+)W$/.exec(item);
  if (workday !== null) {
    const day = fieldValue(DAY_OF_MONTH, workday[1] ?? '', source);
    return ({ firstWeekday, length }) => (day > length ? 0 : bit(nearestWorkday(day, firstWeekday, length)));
  }
  if (/[LW]/.test(item)) {
    throw refuseCron(source, `day of month: ${item} is not understood`, 'write L, L-2, LW, L-2W or 15W');
  }
  return undefined;
}

/**
 * The rule of a weekday item that no number can say, in upper case: `5L` or `FRIL` (the month's last Friday),
 * `2#1` or `TUE#1` (its first Tuesday). Undefined for others.
 */
export function specialDayOfWeek(item: string, source: CronSource): DayRule | undefined {
  if (item === 'L') {
    throw refuseCron(
      source,
      'day of week: L alone means Saturday to some and the last weekday of the month to others',
      'write 6 or SAT for Saturday, 5L for the last Friday',
    );
  }
  const last = /^([0-9]+|[A-Z]+)L$/.exec(item);
  if (last !== null) {
    const weekday = fieldValue(DAY_OF_WEEK, last[1] ?? '', source);
    return ({ firstWeekday, length }) => bit(length - ((weekdayOf(length, firstWeekday) - weekday + 7) % 7));
  }
  const nth = /^([^#]+)#(.*)$/.exec(item);
  if (nth === null) return undefined;
  if (!/^[1-5]$/.test(nth[2] ?? '')) {
    throw refuseCron(
      source,
      `day of week: ${item} does not say which week`,
      `write ${nth[1]}#1 to ${nth[1]}#5, or ${nth[1]}L for the last one`,
    );
  }
  const weekday = fieldValue(DAY_OF_WEEK, nth[1] ?? '', source);
  const week = Number(nth[2]);
  return ({ firstWeekday, length }) => {
    const day = 1 + ((weekday - firstWeekday + 7) % 7) + (week - 1) * 7;
    return day > length ? 0 : bit(day);
  };
}

/** The workday (Monday to Friday) nearest a day, never in another month: Saturday the 1st gives Monday the 3rd. */
function nearestWorkday(day: number, firstWeekday: number, length: number): number {
  const weekday = weekdayOf(day, firstWeekday);
  if (weekday === 6) return day > 1 ? day - 1 : day + 2;
  if (weekday === 0) return day < length ? day + 1 : day - 2;
  return day;
}

function weekdayOf(day: number, firstWeekday: number): number {
  return (firstWeekday + day - 1) % 7;
}

function bit(day: number): number {
  return 1 << (day - 1);
}
