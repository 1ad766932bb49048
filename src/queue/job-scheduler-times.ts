import { getNextMillis } from './bullmq.js';

/**
 * The next `count` times of a pattern in UTC as BullMQ computes them, in ms; fewer if it has no more.
 * @throws Error in the words of BullMQ's parser, for a pattern that it does not take.
 */
export function bullmqTimes(pattern: string, after: number, count: number): number[] {
  const times: number[] = [];
  let time: number | undefined = after;
  while (times.length < count) {
    time = getNextMillis(time, { pattern, tz: 'UTC' });
    if (time === undefined) break;
    times.push(time);
  }
  return times;
}
