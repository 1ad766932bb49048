import { formatDuration, LONGEST_DURATION } from './durations.js';

/** How long a run waits between its attempts, as its options say. */
export interface Backoff {
  /** `fixed`, `exponential`, or the name of a strategy that the worker has. */
  readonly type: string;
  /** ms before the first retry. */
  readonly delay?: number | undefined;
  /** 0 to 1: the part of the delay that is drawn by chance. 1 is full jitter: anything from 0 to the whole delay. */
  readonly jitter?: number | undefined;
  /** ms: the longest delay, before jitter. Defaults to {@link DEFAULT_CAP}, or `delay` where that is longer. */
  readonly cap?: number | undefined;
}

/** An exponential backoff without a ceiling reaches years after thirty failures. */
export const DEFAULT_CAP = 24 * 3_600_000;
/** What a strategy answers when there is to be no further attempt. */
export const NO_RETRY = -1;
/** Where a strategy gives no usable delay, and the options none either, ms. */
const FALLBACK = 30_000;

export function isBuiltIn({ type }: Backoff): boolean {
  return type === 'fixed' || type === 'exponential';
}

/**
 * The delay of a built-in backoff in whole ms, from 0 to its cap.
 * @param failures how often the run has failed, 1 at least.
 * @param random from 0 up to, not including, 1.
 */
export function builtInDelay(backoff: Backoff, failures: number, random: number): number {
  const { type, delay = 0, jitter = 0 } = backoff;
  const longest = type === 'exponential' ? doubled(delay, failures, capOf(backoff)) : delay;
  return Math.floor(longest * (1 - jitter) + random * longest * jitter);
}

function doubled(delay: number, failures: number, cap: number): number {
  // Infinity from the 1,025th failure on, and 0 times that would be no number.
  return delay === 0 ? 0 : Math.round(Math.min(cap, delay * 2 ** (failures - 1)));
}

function capOf({ delay = 0, cap = Math.max(DEFAULT_CAP, delay) }: Backoff): number {
  return cap;
}

/** What a strategy answered, as whole ms up to the cap, or {@link NO_RETRY}; undefined for what is no delay. */
export function strategyDelay({ cap = LONGEST_DURATION }: Backoff, answer: unknown): number | undefined {
  if (answer === NO_RETRY) return NO_RETRY;
  if (typeof answer !== 'number' || !(answer >= 0) || answer > LONGEST_DURATION) return undefined;
  return Math.round(Math.min(answer, cap));
}

/** ms to wait when the strategy is missing or broken: its fault must not cost the attempts. */
export function fallbackDelay({ delay = FALLBACK }: Backoff): number {
  return delay;
}

/** What follows a failure, as a sentence. */
export function retryWords(attempts: number | undefined, backoff: Backoff | number | undefined): string {
  if (attempts === undefined || attempts <= 1) {
    const dead = 'none: a failure is dead at once';
    return backoff === undefined ? dead : `${dead}, its backoff has no effect without attempts`;
  }
  const more = `up to ${attempts - 1} more`;
  if (backoff === undefined) return `${more}, at once`;
  return `${more}, ${delayWords(typeof backoff === 'number' ? { type: 'fixed', delay: backoff } : backoff)}`;
}

function delayWords(backoff: Backoff): string {
  const { type, delay = 0, jitter = 0 } = backoff;
  if (!isBuiltIn(backoff)) return `when the worker’s strategy ${JSON.stringify(type)} says`;
  if (delay === 0) return 'at once';
  const chance =
    jitter === 0 ? '' : jitter === 1 ? ', full jitter' : `, ${Math.round(jitter * 100)} % jitter`;
  if (type === 'fixed') return `${formatDuration(delay)} after each failure${chance}`;
  return `${formatDuration(delay)} after the first failure, doubling to at most ${formatDuration(capOf(backoff))}${chance}`;
}
