import { describe, expect, test } from 'vitest';
import { fromBullmqPattern, toBullmqPattern } from '../../../../src/domain/bullmq-pattern.js';
import { following } from '../../../../src/domain/fire-times.js';
import { nextFireTimes } from '../../../../src/domain/next-fire-times.js';
import { nextBullmqTime } from '../../../../src/queue/job-scheduler-times.js';
import { readCsv } from '../corpus.js';

const AFTER = Date.UTC(2026, 0, 1);
const COUNT = 60;
const ours = (cron: string) => nextFireTimes({ cron }, { after: AFTER, count: COUNT }).map(Number);
const bullmqTimes = (pattern: string, after: number, count: number) => {
  const next = (time: number) => nextBullmqTime(pattern, 'UTC', time);
  return following({ next }, after, count);
};
const corpus = [...new Set(readCsv('corpus/expected.csv').map((row) => `${row.expr}`))];
/** BullMQ's parser refuses the others, and never finds 29 February fast enough to be asked 60 times. */
const taken = corpus.filter((pattern) => {
  try {
    return bullmqTimes(pattern, AFTER, 2).length === 2 && !pattern.includes(' 29 2 ');
  } catch {
    return false;
  }
});

describe('a pattern of BullMQ in our notation', () => {
  test('most of the corpus can be compared', () => {
    expect(taken.length).toBeGreaterThan(150);
  });

  test('fires at BullMQ’s own times', () => {
    const wrong = taken.filter(
      (pattern) => `${ours(fromBullmqPattern(pattern).cron)}` !== `${bullmqTimes(pattern, AFTER, COUNT)}`,
    );
    expect(wrong).toEqual([]);
  });

  test.each(['0 0 */2 * 1', '0 0 1-5 * */3', '0 0 */10 * */2', '0 0 0 */1 * 1', '0 0 ? * 5', '0 0 15 * ?'])(
    'a star with a step in a day field is a restriction there: %s',
    (pattern) => {
      expect(ours(fromBullmqPattern(pattern).cron)).toEqual(bullmqTimes(pattern, AFTER, COUNT));
    },
  );

  test.each(['', '5', '*/5', '1 1', '5 4 * *'])(
    'missing fields are filled from the left, and told of: %j',
    (pattern) => {
      const { cron, warnings } = fromBullmqPattern(pattern);
      expect(ours(cron)).toEqual(bullmqTimes(pattern, AFTER, COUNT));
      expect(warnings).toHaveLength(1);
    },
  );

  test('H is told of', () => {
    expect(fromBullmqPattern('H 4 * * *')).toEqual({
      cron: 'H 4 * * *',
      warnings: [expect.stringMatching(/^H: /)],
    });
    expect(fromBullmqPattern('0 4 * MAR THU').warnings).toEqual([]);
  });
});

describe('an expression of ours for BullMQ', () => {
  test.each([
    ['@midnight', '@daily'],
    ['@Weekly', '@weekly'],
    ['0 9 * * monday-friday', '0 9 * * MON-FRI'],
    ['0 9 * january fril', '0 9 * JAN FRIL'],
    ['0 9 l * tue#1', '0 9 L * TUE#1'],
  ])('%s is %s', (cron, pattern) => {
    expect(toBullmqPattern(cron)).toEqual({ pattern });
    expect(ours(cron)).toEqual(bullmqTimes(pattern, AFTER, COUNT));
  });

  test('@every is an interval', () => {
    expect(toBullmqPattern('@every 5m')).toEqual({ every: 300_000 });
  });

  test('what both take alike comes back as it went', () => {
    const odd = taken.filter((pattern) => {
      const { cron } = fromBullmqPattern(pattern);
      const back = toBullmqPattern(cron);
      return (
        !('pattern' in back) ||
        `${bullmqTimes(back.pattern, AFTER, 20)}` !== `${bullmqTimes(pattern, AFTER, 20)}`
      );
    });
    expect(odd).toEqual([]);
  });
});
