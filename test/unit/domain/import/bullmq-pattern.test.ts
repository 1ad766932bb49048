import { describe, expect, test } from 'vitest';
import { fromBullmqPattern, readAsBullmq, toBullmqPattern } from '../../../../src/domain/bullmq-pattern.js';
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

  test.each([
    '0 0 */2 * 1',
    '0 0 1-5 * */3',
    '0 0 */10 * */2',
    '0 0 0 */1 * 1',
    '0 0 ? * 5',
    '0 0 15 * ?',
    '0 0 ?/2 * 1',
    '0 0 ?/9 * ?',
    '0 0 13 * ?/2',
    '? 3 * * *',
    '5,?/20 3 * * *',
  ])('a star with a step in a day field is a restriction there: %s', (pattern) => {
    expect(ours(fromBullmqPattern(pattern).cron)).toEqual(bullmqTimes(pattern, AFTER, COUNT));
  });

  test.each(['1/2', 'MON/2', 'mon/2', '1/3', '6/1', '3/1', '3/2', '7/2', '7/1', '3/4', '5/2', '1/6', '*/7', '0/7', 'SUN/7', '0-7/7', '1-7/6', '2,5/2', '*/2', '0/2', 'SUN/2', '2-5/2'])(
    'a step of weekdays counts on to a second Sunday there, in what is moved and in BullMQ’s form: %s',
    (weekday) => {
      for (const pattern of [`0 8 * * ${weekday}`, `0 8 */9 * ${weekday}`, `5 0 8 13 * ${weekday}`]) {
        const times = bullmqTimes(pattern, AFTER, COUNT);
        expect(ours(fromBullmqPattern(pattern).cron)).toEqual(times);
        expect(ours(readAsBullmq(pattern))).toEqual(times);
      }
    },
  ); // biome-ignore format: a table

  test.each(['*/60 * * * *', '?/60 * * * *', '0 */24 * * *', '*/90 * * * *', '0 0 */31 * *', '0 0 */31 * 1', '0 0 * */13 *', '*/75 0 * * * *', '0 9-17/12 * * *', '50/10 * * * *', '0 0 * * */7', '0 0 * * 1/7', '0 0 * * MON-FRI/5', '7,*/60 * * * *'])(
    'a step beyond its range names the first value: %s is kept, and told of',
    (pattern) => {
      const { cron, warnings } = fromBullmqPattern(pattern);
      expect(ours(cron)).toEqual(bullmqTimes(pattern, AFTER, COUNT));
      expect(warnings).toEqual([expect.stringMatching(/\/\d+: .* BullMQ /)]);
    },
  ); // biome-ignore format: a table

  test('steps within their range are no cause for a warning', () => {
    for (const pattern of [
      '*/59 * * * *',
      '0 */23 * * *',
      '0 0 */30 * *',
      '0 0 * * 3/4',
      '0 0 * * */6',
      '1/1 * * * *',
    ])
      expect(fromBullmqPattern(pattern).warnings).toEqual([]);
  });

  test.each(['0  9 * * 1', '@weekdays', '0 9 15 * 1', '0 9 */2 * *', '5 4 * *', '', 'x'])(
    'in BullMQ’s form what needs no other words stays as it is written: %j',
    (pattern) => {
      expect(readAsBullmq(pattern)).toBe(pattern);
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
