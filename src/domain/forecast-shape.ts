import type { CompiledTiming } from './fire-times.js';

export const MINUTE_MS = 60_000;

/**
 * When one schedule fires, as far as a forecast can tell it from others: many schedules share a shape. Times in ms.
 */
export interface FiringShape {
  /** What people call it: `0 0 * * * (Europe/London)`, `every 5m`. */
  readonly label: string;
  readonly jitter: number;
  /** Ticks that are left to it by its `limit`. */
  readonly remaining: number;
  readonly times: CompiledTiming | EveryTimes;
}

/** An interval by its numbers alone. */
export interface EveryTimes {
  readonly every: number;
  /** Any tick of it. */
  readonly offset: number;
}

/**
 * Takes `count` firings in a stretch of time that starts at `at` and lasts `spread`, evenly; one instant if that is 0.
 */
export type TakeFirings = (at: number, spread: number, count: number) => void;

/**
 * Gives the firings of a shape at or after `from` and before `to`, whole minutes, in as few steps as it can: a minute
 * in which it fires every second is one step. Jitter is given as the stretch over which a firing may fall; what the tick
 * before `from` has left to give is included.
 */
export function eachFiring(shape: FiringShape, from: number, to: number, take: TakeFirings): void {
  if ('every' in shape.times) eachInterval(shape, shape.times, from, to, take);
  else eachTick(shape, shape.times, from, to, take);
}

function eachInterval(
  { jitter, remaining }: FiringShape,
  { every, offset }: EveryTimes,
  from: number,
  to: number,
  take: TakeFirings,
): void {
  let left = remaining;
  if (every < MINUTE_MS) {
    const until = (time: number) => Math.floor((time - 1 - offset) / every);
    for (let start = from; start < to && left > 0; ) {
      const end = Math.min(to, (Math.floor(start / MINUTE_MS) + 1) * MINUTE_MS);
      const count = Math.min(left, until(end) - until(start));
      if (count > 0) take(start, 0, count);
      left -= count;
      start = end;
    }
    return;
  }
  const spread = Math.min(jitter, every - 1);
  const first = offset + Math.ceil((from - spread - offset) / every) * every;
  for (let at = first; at < to && left > 0; at += every) {
    take(at, spread, 1);
    if (at >= from) left -= 1;
  }
}

function eachTick(
  { jitter, remaining }: FiringShape,
  timing: CompiledTiming,
  from: number,
  to: number,
  take: TakeFirings,
): void {
  let left = remaining;
  const aMinute = firingsOfMinute(timing, from, to);
  // Jitter stays below the following tick: of those before `from` only the last may still have to fire.
  const before = jitter > 0 && aMinute === undefined ? timing.latest(from - jitter - 1, from - 1) : undefined;
  let at = before ?? timing.next(from - 1);
  while (at !== undefined && at < to && left > 0) {
    if (aMinute !== undefined) {
      const count = Math.min(aMinute, left);
      take(at, 0, count);
      left -= count;
      at = timing.next((Math.floor(at / MINUTE_MS) + 1) * MINUTE_MS - 1);
      continue;
    }
    const following = timing.next(at);
    const spread = Math.min(jitter, (following ?? Number.POSITIVE_INFINITY) - at - 1);
    if (at + spread >= from) take(at, spread, 1);
    if (at >= from) left -= 1;
    at = following;
  }
}

/**
 * How many times an expression fires in each minute that it names, when that is the same for all of them and more than
 * once; else each time is asked for.
 */
function firingsOfMinute(timing: CompiledTiming, from: number, to: number): number | undefined {
  const [rule] = timing.rules;
  if (rule === undefined || timing.rules.length > 1 || timing.everies.length > 0) return undefined;
  if (!rule.pattern.interval && rule.gap === 'edge') return undefined;
  const cut = [timing.startDate, timing.endDate].some(
    (at) => at !== undefined && at > from - MINUTE_MS && at < to,
  );
  if (cut || 'excludedBetween' in timing) return undefined;
  const { nextSecond } = rule.pattern;
  const seconds = nextSecond.reduce((count, next, second) => count + (next === second ? 1 : 0), 0);
  return seconds > 1 ? seconds : undefined;
}
