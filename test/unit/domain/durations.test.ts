import { describe, expect, test } from 'vitest';
import { formatDuration, LONGEST_DURATION, parseDuration } from '../../../src/domain/durations.js';

describe('durations', () => {
  test.each([
    [0, 0],
    [1500, 1500],
    ['0s', 0],
    ['250ms', 250],
    ['30s', 30_000],
    ['5m', 300_000],
    ['1h30m', 5_400_000],
    ['1h 30m', 5_400_000],
    ['1d', 86_400_000],
    ['2w', 1_209_600_000],
    ['90m', 5_400_000],
    ['1d2h3m4s5ms', 93_784_005],
  ])('%j is %i ms', (given, ms) => {
    expect(parseDuration(given)).toBe(ms);
  });

  test('-0 is 0', () => {
    expect(Object.is(parseDuration(-0), 0)).toBe(true);
  });

  test.each([
    [Number.NaN, 'finite'],
    [Number.POSITIVE_INFINITY, 'finite'],
    [Number.NEGATIVE_INFINITY, 'finite'],
    [-1, 'negative'],
    [1.5, 'whole'],
    [1e300, 'longer'],
    [LONGEST_DURATION + 1, 'longer'],
    ['', 'not a duration'],
    ['1200', "'1200ms'"],
    ['1.5h', 'smaller unit'],
    ['5 minutes', 'not a duration'],
    ['-5m', 'not a duration'],
    ['5M', 'not a duration'],
    ['m', 'not a duration'],
    ['30m1h', 'order'],
    ['1m1m', 'order'],
    ['99999999999999999w', 'too long'],
    [null, 'not a duration'],
    [undefined, 'not a duration'],
    [[], 'not a duration'],
    [{}, 'not a duration'],
    [true, 'not a duration'],
    [new Date('x'), 'not a duration'],
  ])('%o is refused: %s', (given, problem) => {
    expect(() => parseDuration(given, { field: 'grace' })).toThrow(
      expect.objectContaining({
        code: 'INVALID_DURATION',
        field: 'grace',
        message: expect.stringContaining(problem),
      }),
    );
  });

  test('a bigint is refused, and shown', () => {
    expect(() => parseDuration(10n)).toThrow('10n is not a duration');
  });

  test('limits are said in words', () => {
    expect(() => parseDuration('5s', { min: 30_000 })).toThrow('write 30s or more');
    expect(() => parseDuration('2d', { max: 86_400_000 })).toThrow('write 1d or less');
  });

  test.each([
    [0, '0s'],
    [250, '250ms'],
    [5_400_000, '1h30m'],
    [93_784_005, '1d2h3m4s5ms'],
    [1_209_600_000, '14d'],
  ])('%i ms is written %s', (ms, text) => {
    expect(formatDuration(ms)).toBe(text);
    expect(parseDuration(text)).toBe(ms);
  });
});
