import { formatDuration } from './durations.js';

/** Where no cap is given an exponential backoff grows to this, ms: a day. */
export const LONGEST_BACKOFF = 86_400_000;

/** How long a failed run rests before its next attempt; BullMQ's shape, and a cap. */
export interface Backoff {
  type: string;
  /** ms; the first rest of an exponential backoff. */
  delay?: number;
  /** The part of each rest that is drawn by chance, 0 to 1; 1 is full jitter: anything from 0 to the rest. */
  jitter?: number;
  /** ms; no rest of an exponential backoff is longer. Defaults to a day. */
  maxDelay?: number;
}

/**
 * The rest before the next attempt, whole ms; undefined for a strategy that is the worker's own.
 *
 * Exponential: `delay · 2^(attempt − 1)`, at most `maxDelay`, whatever the attempt; jitter draws from the capped rest, so
 * that runs which failed together do not come back together.
 * @param attempt that failed, from 1
 * @param random from 0 up to 1, as Math.random
 */
export function restBeforeRetry(backoff: Backoff, attempt: number, random: () => number): number | undefined {
  const { type, delay = 0, jitter = 0, maxDelay = LONGEST_BACKOFF } = backoff;
  if (type !== 'fixed' && type !== 'exponential') return undefined;
  // 2 ** 1029 is Infinity, and 0 times that no number: the cap comes first.
  const grown = delay === 0 ? 0 : delay * 2 ** (attempt - 1);
  const rest = type === 'fixed' ? delay : Math.min(maxDelay, grown);
  return Math.floor(rest * (1 - jitter) + random() * rest * jitter);
}

/** What follows a failure of a run with these options, as a sentence. */
export function retryWords(attempts: number | undefined, backoff: Backoff | number | undefined): string {
  if (attempts === undefined || attempts <= 1) {
    const dead = 'none: a failure is dead at once';
    return backoff === undefined ? dead : `${dead}, its backoff has no effect without attempts`;
  }
  const rest = backoff === undefined ? 'at once' : restWords(backoff);
  return `up to ${attempts - 1} more, ${rest}`;
}

function restWords(given: Backoff | number): string {
  const backoff: Backoff = typeof given === 'number' ? { type: 'fixed', delay: given } : given;
  const { type, delay = 0, jitter = 0, maxDelay = LONGEST_BACKOFF } = backoff;
  if (type !== 'fixed' && type !== 'exponential')
    return `when the worker’s strategy ${JSON.stringify(type)} says`;
  if (delay === 0) return 'at once';
  const chance =
    jitter === 0 ? '' : jitter === 1 ? ', full jitter' : `, ${Math.round(jitter * 100)} % jitter`;
  if (type === 'fixed') return `${formatDuration(delay)} after each failure${chance}`;
  const first = formatDuration(Math.min(delay, maxDelay));
  return `${first} after the first failure, doubling to at most ${formatDuration(maxDelay)}${chance}`;
}
