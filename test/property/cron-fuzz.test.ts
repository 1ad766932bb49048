import fc from 'fast-check';
import { expect, test } from 'vitest';
import { formatDuration, parseDuration } from '../../src/domain/durations.js';
import { isCarillonError } from '../../src/domain/errors.js';
import { compileSchedule } from '../../src/domain/fire-times.js';
import type { TimingDefinition } from '../../src/domain/fire-times-definition.js';

const LAST = Date.UTC(9999, 11, 31, 23, 59, 59);
const instants = fc.integer({ min: 0, max: Date.UTC(2100, 0, 1) });
const zones = fc.constantFrom(
  'UTC',
  'America/New_York',
  'Australia/Lord_Howe',
  'Africa/Casablanca',
  'Asia/Gaza',
);

/** Text made of what expressions are made of: much of it is nearly right, and some of it is. */
const pieces = fc.constantFrom(
  ...[
    '*',
    '?',
    'L',
    'W',
    '#',
    '-',
    '/',
    ',',
    '~',
    'H',
    '(',
    ')',
    '@',
    'MON',
    'fri',
    'JAN',
    '0',
    '5',
    '7',
    '31',
    '60',
    ' ',
  ],
);
const scraps = fc.array(pieces, { minLength: 1, maxLength: 5 }).map((parts) => parts.join(''));
const usual = fc.constantFrom(...['*', '*/2', '1', '1-5', '5,7', '3-1', 'H', '~', 'H/5', '*', '*']);
const day = fc.constantFrom(...['*', '?', 'L', 'LW', 'L-3', '15W', '31', '*/2']);
const weekday = fc.constantFrom(...['*', '?', '5L', '2#1', 'MON-FRI', 'sat-sun', '0-7']);
const field = (right: fc.Arbitrary<string>) =>
  fc.oneof({ weight: 8, arbitrary: right }, { weight: 1, arbitrary: scraps });
const nearly = fc
  .tuple(
    fc.constantFrom('', '', '0 ', '*/20 '),
    field(usual),
    field(usual),
    field(day),
    field(usual),
    field(weekday),
  )
  .map(([second, ...rest]) => second + rest.join(' '));

test('any text is compiled or refused by a typed error, at once, and answers with a later time', () => {
  let accepted = 0;
  fc.assert(
    fc.property(fc.oneof(fc.string(), nearly), zones, instants, (cron, tz, after) => {
      const started = performance.now();
      try {
        const next = compileSchedule({ cron, tz }, { seed: 'q:a', createdAt: 0 }).next(after);
        accepted += 1;
        if (next !== undefined) expect(next > after && next <= LAST && Number.isInteger(next)).toBe(true);
      } catch (error) {
        if (!isCarillonError(error)) throw error;
        expect(error.todo).toBeTruthy();
      }
      expect(performance.now() - started).toBeLessThan(2_000);
    }),
    { numRuns: 20_000, seed: 5 },
  );
  expect(accepted).toBeGreaterThan(2_000);
});

const numbers = (min: number, max: number) => fc.integer({ min, max }).map(String);
const valid: fc.Arbitrary<TimingDefinition> = fc.record({
  cron: fc
    .tuple(
      fc.oneof(fc.constant('*'), fc.constant('*/10'), numbers(0, 59)),
      fc.oneof(fc.constant('*'), fc.constant('*/2'), fc.constant('1-3'), numbers(0, 23)),
      fc.oneof(fc.constant('*'), fc.constant('L'), fc.constant('15W'), numbers(1, 28)),
      fc.oneof(fc.constant('*'), fc.constant('3,10'), numbers(1, 12)),
      fc.oneof(fc.constant('*'), fc.constant('SUN'), fc.constant('5L'), fc.constant('2#1')),
    )
    .map((parts) => parts.join(' ')),
  tz: zones,
  gap: fc.constantFrom('shift', 'edge', 'skip'),
  fold: fc.constantFrom('first', 'last', 'both'),
});

test('the time after a start is the first of those after any earlier start', () => {
  fc.assert(
    fc.property(valid, instants, fc.integer({ min: 0, max: 40 * 86_400_000 }), (definition, start, later) => {
      const timing = compileSchedule(definition);
      const answer = timing.next(start + later);
      // The last time up to the later start, found by bisection from the earlier one, leads to the same answer.
      const before = timing.latest(start, start + later) ?? start;
      expect(timing.next(before)).toBe(answer);
      expect(before).toBeLessThanOrEqual(start + later);
    }),
    { numRuns: 5_000, seed: 7 },
  );
});

test('a duration is read as it was written', () => {
  fc.assert(
    fc.property(fc.integer({ min: 0, max: 10 ** 13 }), (ms) => parseDuration(formatDuration(ms)) === ms),
  );
});
