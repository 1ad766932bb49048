import { CarillonError, shortText } from './errors.js';
import { FiringGroups, type ForecastDefinition } from './forecast-groups.js';
import { MinuteLoad } from './forecast-load.js';
import { findPeaks, type Peak } from './forecast-peaks.js';
import { MINUTE_MS } from './forecast-shape.js';

/** One-time jobs that fire in one minute. */
export interface OneTimeCount {
  readonly queue: string;
  /** Any instant of the minute, ms. */
  readonly at: number;
  readonly count: number;
}

export interface ForecastOptions {
  /** Where the forecast begins: the start of this instant's minute, ms. */
  from: number;
  /** 1 to 168. Defaults to 24. */
  hours?: number;
  /** How many peaks are named, 0 to 100. Defaults to 5. */
  peaks?: number;
}

/** Firings to come, by queue and minute. */
export interface LoadForecast {
  /** Start and end, ms; whole minutes. */
  readonly from: number;
  readonly to: number;
  /** By name. */
  readonly queues: readonly QueueLoad[];
  /** Of all queues, the highest first. */
  readonly peaks: readonly Peak[];
}

export interface QueueLoad {
  readonly queue: string;
  /** Firings of the whole stretch. */
  readonly total: number;
  /** The busiest minute's start, ms, and its firings. */
  readonly busiest: { readonly at: number; readonly count: number };
  /** Firings of each minute from `from` on, whole numbers that add up to `total`. */
  readonly counts: readonly number[];
}

const HOURS = 24;
const MOST_HOURS = 168;
const PEAKS = 5;
const MOST_PEAKS = 100;

/**
 * What will fire, minute by minute, from schedules and from counts of one-time jobs. Jitter is spread evenly over the
 * minutes that it may reach; overlap and gates are not foreseen.
 *
 * Schedules that fire alike are computed once, however many there are.
 * @throws CarillonError `INVALID_OPTION`
 */
export function forecast(
  definitions: Iterable<ForecastDefinition>,
  oneTime: Iterable<OneTimeCount>,
  options: ForecastOptions,
): LoadForecast {
  const builder = new ForecastBuilder(options);
  for (const definition of definitions) builder.add(definition);
  for (const count of oneTime) builder.addOneTime(count);
  return builder.build();
}

/** The same, fed piece by piece. */
export class ForecastBuilder {
  readonly from: number;
  readonly to: number;
  readonly #peaks: number;
  readonly #groups: FiringGroups;
  readonly #load: MinuteLoad;

  /** @throws CarillonError `INVALID_OPTION` */
  constructor({ from, hours = HOURS, peaks = PEAKS }: ForecastOptions) {
    checkWhole('hours', hours, 1, MOST_HOURS);
    this.#peaks = checkWhole('peaks', peaks, 0, MOST_PEAKS);
    this.from = Math.floor(from / MINUTE_MS) * MINUTE_MS;
    this.to = this.from + hours * 60 * MINUTE_MS;
    this.#groups = new FiringGroups(this.from);
    this.#load = new MinuteLoad(this.from, this.to);
  }

  add(definition: ForecastDefinition): void {
    this.#groups.add(definition);
  }

  addOneTime({ queue, at, count }: OneTimeCount): void {
    this.#load.addOneTime(queue, at, count);
  }

  /** To be called once, at the end. */
  build(): LoadForecast {
    const load = this.#load;
    load.addGroups(this.#groups);
    return {
      from: this.from,
      to: this.to,
      queues: load.queues.map((queue) => queueLoad(queue, load.of(queue), this.from)),
      peaks: findPeaks(load, this.#groups, this.#peaks).map(rounded),
    };
  }
}

function queueLoad(queue: string, load: Float64Array, from: number): QueueLoad {
  const counts: number[] = [];
  let sum = 0;
  let given = 0;
  // Rounded by the running sum, so that thousands of small shares do not all become 0.
  for (const count of load) {
    sum += count;
    counts.push(Math.round(sum) - given);
    given = Math.round(sum);
  }
  const busiest = load.reduce((best, count, minute) => (count > (load[best] as number) ? minute : best), 0);
  return {
    queue,
    total: given,
    busiest: { at: from + busiest * MINUTE_MS, count: Math.round(load[busiest] ?? 0) },
    counts,
  };
}

function rounded(peak: Peak): Peak {
  return {
    ...peak,
    count: Math.round(peak.count),
    contributors: peak.contributors.map((one) => ({ ...one, count: Math.round(one.count) })),
    withJitter: peak.withJitter && { ...peak.withJitter, count: Math.round(peak.withJitter.count) },
  };
}

function checkWhole(field: string, value: unknown, min: number, max: number): number {
  if (Number.isSafeInteger(value) && (value as number) >= min && (value as number) <= max)
    return value as number;
  const todo = `write a whole number from ${min} to ${max}`;
  throw new CarillonError('INVALID_OPTION', `${field}: ${shortText(value)} is out of range; ${todo}`, {
    field,
    given: value,
    todo,
  });
}
