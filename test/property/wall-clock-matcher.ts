/**
 * Fire times found the slow and obvious way, as a second opinion: walk UTC minute by minute, read the wall clock
 * from Intl, compare it with the fields. Imports nothing from src. Knows numbers, lists, ranges and steps only.
 */

export interface Policy {
  gap: 'shift' | 'edge' | 'skip';
  fold: 'first' | 'last' | 'both';
}

const MINUTE = 60_000;
/** No change of offset between 2020 and 2035 is wider than two hours. */
const PAD_MINUTES = 180;

/** A stretch of UTC minutes and what the wall clock of a zone shows at each. */
export class WallClockWalk {
  readonly #walls: number[] = [];
  /** 0: shown once; 1 and 2: the first and second pass of a minute shown twice. */
  readonly #passes: number[] = [];
  readonly #gaps: { at: number; missing: number[] }[] = [];
  readonly #from: number;
  readonly #to: number;
  readonly #start: number;

  /** @param from and `to`: whole minutes, ms since the epoch. */
  constructor(tz: string, from: number, to: number) {
    this.#from = from;
    this.#to = to;
    this.#start = from / MINUTE - PAD_MINUTES;
    const read = wallClockReader(tz);
    const seen = new Map<number, number>();
    for (let utc = this.#start; utc < to / MINUTE + PAD_MINUTES; utc++) {
      const wall = read(utc * MINUTE) / MINUTE;
      const before = this.#walls.at(-1) ?? wall - 1;
      if (wall > before + 1) {
        this.#gaps.push({
          at: utc,
          missing: Array.from({ length: wall - before - 1 }, (_, i) => before + 1 + i),
        });
      }
      const first = seen.get(wall);
      if (first !== undefined) this.#passes[first] = 1;
      seen.set(wall, this.#walls.length);
      this.#passes.push(first === undefined ? 0 : 2);
      this.#walls.push(wall);
    }
  }

  /** Every time in the stretch at which a five-field expression fires, ms since the epoch. */
  fireTimes(expression: string, policy: Policy): number[] {
    const matches = matcher(expression);
    const interval = /^(\*|0-23)(\/\d+)?$/.test(expression.split(' ')[1] ?? '');
    const times = new Set<number>();
    this.#walls.forEach((wall, i) => {
      if (!matches(wall)) return;
      const pass = this.#passes[i];
      const counts =
        interval || pass === 0 || policy.fold === 'both' || (pass === 1) === (policy.fold === 'first');
      if (counts) times.add((this.#start + i) * MINUTE);
    });
    if (!interval && policy.gap !== 'skip') {
      for (const { at, missing } of this.#gaps) {
        missing.forEach((wall, i) => {
          if (matches(wall)) times.add((policy.gap === 'edge' ? at : at + i) * MINUTE);
        });
      }
    }
    return [...times].filter((time) => time >= this.#from && time < this.#to).sort((a, b) => a - b);
  }
}

/** The instants, to the minute, at which a zone's offset changes. */
export function offsetChanges(tz: string, from: number, to: number): number[] {
  const read = wallClockReader(tz);
  const offset = (minute: number) => read(minute * MINUTE) - minute * MINUTE;
  const changes: number[] = [];
  for (let day = from / MINUTE; day < to / MINUTE; day += 1440) {
    let low = day;
    let high = day + 1440;
    if (offset(low) === offset(high)) continue;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (offset(middle) === offset(low)) low = middle;
      else high = middle;
    }
    changes.push(high * MINUTE);
  }
  return changes;
}

/** What a clock in the zone shows, as the ms that Date.UTC gives for it. */
export function wallClockReader(tz: string): (utc: number) => number {
  const format = new Intl.DateTimeFormat('en-US', {
    timeZone: tz,
    hourCycle: 'h23',
    year: 'numeric',
    month: 'numeric',
    day: 'numeric',
    hour: 'numeric',
    minute: 'numeric',
  });
  return (utc) => {
    const [month = 0, day = 0, year = 0, hour = 0, minute = 0] = format.format(utc).split(/\D+/).map(Number);
    return Date.UTC(year, month - 1, day, hour, minute);
  };
}

export function matcher(expression: string): (wall: number) => boolean {
  const [minutes = '', hours = '', days = '', months = '', weekdays = ''] = expression.split(' ');
  const minute = expand(minutes, 0, 59);
  const hour = expand(hours, 0, 23);
  const day = expand(days, 1, 31);
  const month = expand(months, 1, 12);
  const weekday = expand(weekdays, 0, 6);
  const both = days.startsWith('*') || weekdays.startsWith('*');
  let knownDay = Number.NaN;
  let known = false;
  return (wall) => {
    const dayNumber = Math.floor(wall / 1440);
    if (dayNumber !== knownDay) {
      const date = new Date(dayNumber * 86_400_000);
      const inDays = day.has(date.getUTCDate());
      const inWeekdays = weekday.has(date.getUTCDay());
      knownDay = dayNumber;
      known = month.has(date.getUTCMonth() + 1) && (both ? inDays && inWeekdays : inDays || inWeekdays);
    }
    const ofDay = wall - dayNumber * 1440;
    return known && hour.has(Math.floor(ofDay / 60)) && minute.has(ofDay % 60);
  };
}

function expand(field: string, min: number, max: number): Set<number> {
  const values = new Set<number>();
  for (const part of field.split(',')) {
    const [range = '', step] = part.split('/');
    const [from = min, to = step === undefined ? from : max] =
      range === '*' ? [min, max] : range.split('-').map(Number);
    for (let value = from; value <= to; value += Number(step ?? 1)) values.add(value);
  }
  return values;
}
