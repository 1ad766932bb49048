import { getNextMillis } from './bullmq.js';

/**
 * The next time of a pattern as BullMQ computes it, in ms; undefined if it has no more.
 * @throws Error in the words of BullMQ's parser, for a pattern that it does not take.
 */
export function nextBullmqTime(pattern: string, tz: string, after: number): number | undefined {
  return getNextMillis(after, { pattern, tz });
}
