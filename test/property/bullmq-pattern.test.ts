import { expect, test } from 'vitest';
import { fromBullmqPattern, readAsBullmq } from '../../src/domain/bullmq-pattern.js';
import { isCarillonError } from '../../src/domain/errors.js';
import { compileSchedule, following } from '../../src/domain/fire-times.js';
import { nextBullmqTime } from '../../src/queue/job-scheduler-times.js';
import { type SeededRandom, seededRandom } from './seeded-random.js';

const AFTER = Date.UTC(2027, 0, 1);
const TIMES = 25;
const NAMES = ['SUN', 'MON', 'TUE', 'WED', 'THU', 'FRI', 'SAT', 'Mon', 'fri'];

const timesOf = (next: (after: number) => number | undefined) => following({ next }, AFTER, TIMES).join();

/** Undefined for what BullMQ's parser does not take. */
function bullmqTimes(pattern: string): string | undefined {
  try {
    return timesOf((after) => nextBullmqTime(pattern, 'UTC', after));
  } catch {
    return undefined;
  }
}

/** Undefined for what we refuse. */
function ourTimes(cron: string): string | undefined {
  try {
    const timing = compileSchedule({ cron });
    return timesOf((after) => timing.next(after));
  } catch (error) {
    if (isCarillonError(error)) return undefined;
    throw error;
  }
}

function dayField(random: SeededRandom, [first, last]: readonly [number, number], odd: () => string): string {
  const value = () => `${random.below(last - first + 1) + first}`;
  const step = () => `${random.below(last + 3) + 1}`;
  const item = () =>
    random.pick([
      () => '*',
      () => '?',
      () => value(),
      () => `*/${step()}`,
      () => `?/${step()}`,
      () => `${value()}/${step()}`,
      () => `${value()}-${value()}`,
      () => `${value()}-${value()}/${step()}`,
      odd,
    ])();
  return random.below(3) === 0 ? `${item()},${item()}` : item();
}

function dayOfMonth(random: SeededRandom): string {
  return dayField(random, [1, 31], () => 'L');
}

function weekday(random: SeededRandom): string {
  const name = () => random.pick(NAMES);
  return dayField(random, [0, 7], () =>
    random.pick([
      () => name(),
      () => `${name()}/${random.below(8) + 1}`,
      () => `${name()}-${name()}`,
      () => `${random.below(8)}L`,
      () => `${random.below(8)}#${random.below(5) + 1}`,
    ])(),
  );
}

/** Random patterns that BullMQ takes, with its times. */
function taken(seed: number, count: number): { pattern: string; times: string }[] {
  const random = seededRandom(seed);
  const found = new Map<string, string>();
  while (found.size < count) {
    const pattern = `0 0 ${dayOfMonth(random)} * ${weekday(random)}`;
    const times = found.has(pattern) ? undefined : bullmqTimes(pattern);
    if (times !== undefined) found.set(pattern, times);
  }
  return [...found].map(([pattern, times]) => ({ pattern, times }));
}

test('a pattern that comes from BullMQ fires at BullMQ’s times, whatever its day fields', () => {
  const wrong = taken(41, 400).filter(({ pattern, times }) => {
    const { cron } = fromBullmqPattern(pattern);
    return ourTimes(cron) !== times;
  });
  expect(wrong.map(({ pattern }) => [pattern, fromBullmqPattern(pattern).cron])).toEqual([]);
});

test('a pattern given in BullMQ’s form fires at BullMQ’s times, or is refused for a step beyond its range', () => {
  const all = taken(43, 400).map(({ pattern, times }) => ({
    pattern,
    times,
    ours: ourTimes(readAsBullmq(pattern)),
    isWide: fromBullmqPattern(pattern).warnings.length > 0,
  }));
  expect(all.filter(({ ours, times, isWide }) => ours !== times && !(ours === undefined && isWide))).toEqual(
    [],
  );
  expect(all.filter(({ isWide }) => !isWide).length).toBeGreaterThan(200);
});
