import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { builtInDelay, DEFAULT_CAP, retryWords, strategyDelay } from '../../../src/domain/backoff.js';

const HOUR = 3_600_000;

describe('B06 an exponential backoff', () => {
  const backoff = { type: 'exponential', delay: 1000, cap: HOUR };

  test('doubles up to its cap and stays there, at failure 1,030 too', () => {
    const delays = Array.from({ length: 14 }, (_, n) => builtInDelay(backoff, n + 1, 0.5));
    expect(delays.slice(0, 12)).toEqual(Array.from({ length: 12 }, (_, n) => 1000 * 2 ** n));
    expect(delays.slice(12)).toEqual([HOUR, HOUR]);
    for (const failures of [60, 1024, 1025, 1030, 2000]) {
      expect(builtInDelay(backoff, failures, 0.5)).toBe(HOUR);
    }
  });

  test('has a cap of a day where none is given, or its own first delay', () => {
    expect(builtInDelay({ type: 'exponential', delay: 1000 }, 1030, 0)).toBe(DEFAULT_CAP);
    expect(builtInDelay({ type: 'exponential', delay: 2 * DEFAULT_CAP }, 5, 0)).toBe(2 * DEFAULT_CAP);
    expect(builtInDelay({ type: 'exponential', delay: 0 }, 1030, 0)).toBe(0);
  });

  test('property: whole ms from 0 to the cap, with any jitter, failure and chance', () => {
    fc.assert(
      fc.property(
        fc.record({
          type: fc.constantFrom('exponential', 'fixed'),
          delay: fc.integer({ min: 0, max: HOUR }),
          jitter: fc.double({ min: 0, max: 1, noNaN: true }),
          cap: fc.integer({ min: HOUR, max: 100 * HOUR }),
        }),
        fc.integer({ min: 1, max: 3000 }),
        fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
        (given, failures, random) => {
          const delay = builtInDelay(given, failures, random);
          expect(Number.isInteger(delay)).toBe(true);
          expect(delay).toBeGreaterThanOrEqual(0);
          expect(delay).toBeLessThanOrEqual(given.type === 'fixed' ? given.delay : given.cap);
        },
      ),
    );
  });
});

test('10,000 first retries with full jitter, base 30 s: no 100 ms holds over 3 % of them', () => {
  const backoff = { type: 'exponential', delay: 30_000, jitter: 1 };
  const bins = new Map<number, number>();
  for (let n = 0; n < 10_000; n += 1) {
    // Failures spread over one second, as a batch of workers has them.
    const at = Math.floor((n % 1000) + builtInDelay(backoff, 1, Math.random()));
    const bin = Math.floor(at / 100);
    bins.set(bin, (bins.get(bin) ?? 0) + 1);
  }
  expect(Math.max(...bins.values())).toBeLessThan(300);
  // Full: the whole of 0 to 30 s is used.
  expect(bins.size).toBeGreaterThan(290);
});

test('half jitter keeps half of the delay', () => {
  const backoff = { type: 'fixed', delay: 1000, jitter: 0.5 };
  expect(builtInDelay(backoff, 9, 0)).toBe(500);
  expect(builtInDelay(backoff, 9, 0.999)).toBe(999);
});

test.each([
  [-1, -1],
  [0, 0],
  [1500.4, 1500],
  [9e6, HOUR],
  [-2, undefined],
  [Number.NaN, undefined],
  [Number.POSITIVE_INFINITY, undefined],
  ['5000', undefined],
  [undefined, undefined],
])('a strategy that answers %s waits %s', (answer, delay) => {
  expect(strategyDelay({ type: 'mine', cap: HOUR }, answer)).toBe(delay);
});

test.each([
  [undefined, undefined, 'none: a failure is dead at once'],
  [1, 5000, 'none: a failure is dead at once, its backoff has no effect without attempts'],
  [5, undefined, 'up to 4 more, at once'],
  [5, 40_000, 'up to 4 more, 40s after each failure'],
  [
    3,
    { type: 'exponential', delay: 30_000, jitter: 1, cap: HOUR },
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
