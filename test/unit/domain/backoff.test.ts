import { describe, expect, test } from 'vitest';
import { LONGEST_BACKOFF, restBeforeRetry, retryWords } from '../../../src/domain/backoff.js';

const never = () => 0;

describe('the rest before a retry', () => {
  test('B06 doubles up to the cap, and stays there at attempt 1,030 and beyond', () => {
    const rest = (attempt: number) =>
      restBeforeRetry({ type: 'exponential', delay: 1000, maxDelay: 3_600_000 }, attempt, never);
    const first = Array.from({ length: 14 }, (_, i) => rest(i + 1));
    expect(first).toEqual([
      ...[1000, 2000, 4000, 8000, 16_000, 32_000, 64_000, 128_000, 256_000, 512_000, 1_024_000, 2_048_000],
      3_600_000,
      3_600_000,
    ]);
    expect([60, 1030, 2000].map(rest)).toEqual([3_600_000, 3_600_000, 3_600_000]);
  });

  test('B06 with jitter it lies between 0 and the cap, in whole ms, at every attempt', () => {
    for (const random of [() => 0, () => 0.5, () => 1 - 2 ** -53]) {
      for (const attempt of [1, 2, 14, 60, 1030]) {
        const rest = restBeforeRetry(
          { type: 'exponential', delay: 1000, jitter: 1, maxDelay: 3_600_000 },
          attempt,
          random,
        ) as number;
        expect(Number.isInteger(rest) && rest >= 0 && rest <= 3_600_000).toBe(true);
      }
    }
  });

  test('without a cap it grows to a day; a delay of 0 stays 0', () => {
    expect(restBeforeRetry({ type: 'exponential', delay: 1000 }, 1030, never)).toBe(LONGEST_BACKOFF);
    expect(restBeforeRetry({ type: 'exponential', delay: 0 }, 1030, never)).toBe(0);
  });

  test('fixed is the same each time; half of it drawn by chance with jitter 0.5; others are the worker’s own', () => {
    expect(restBeforeRetry({ type: 'fixed', delay: 700 }, 9, never)).toBe(700);
    expect(restBeforeRetry({ type: 'fixed', delay: 700, jitter: 0.5 }, 9, never)).toBe(350);
    expect(restBeforeRetry({ type: 'mine', delay: 700 }, 9, never)).toBeUndefined();
  });

  test('10,000 runs that fail in one second (30 s, full jitter): no 100 ms hold over 3 % of their retries', () => {
    const bins = new Map<number, number>();
    for (let i = 0; i < 10_000; i++) {
      const failedAt = i / 10;
      const rest = restBeforeRetry(
        { type: 'exponential', delay: 30_000, jitter: 1 },
        1,
        Math.random,
      ) as number;
      const bin = Math.floor((failedAt + rest) / 100);
      bins.set(bin, (bins.get(bin) ?? 0) + 1);
    }
    expect(Math.max(...bins.values())).toBeLessThan(300);
  });
});

test.each([
  [undefined, undefined, 'none: a failure is dead at once'],
  [1, 5000, 'none: a failure is dead at once, its backoff has no effect without attempts'],
  [5, undefined, 'up to 4 more, at once'],
  [5, 40_000, 'up to 4 more, 40s after each failure'],
  [
    3,
    { type: 'exponential', delay: 30_000, jitter: 1, maxDelay: 3_600_000 },
    'up to 2 more, 30s after the first failure, doubling to at most 1h, full jitter',
  ],
  [
    3,
    { type: 'exponential', delay: 1000 },
    'up to 2 more, 1s after the first failure, doubling to at most 1d',
  ],
  [3, { type: 'tide' }, 'up to 2 more, when the worker’s strategy "tide" says'],
])('in words: attempts %s, backoff %o', (attempts, backoff, words) => {
  expect(retryWords(attempts, backoff)).toBe(words);
});
