import { describe, expect, test } from 'vitest';
import { type CarillonError, type ErrorCode, isCarillonError } from '../../../src/domain/errors.js';
import { compileSchedule } from '../../../src/domain/fire-times.js';
import type { TimingDefinition } from '../../../src/domain/fire-times-definition.js';
import { nextFireTimes } from '../../../src/domain/next-fire-times.js';

function refusal(definition: unknown): CarillonError {
  try {
    compileSchedule(definition as TimingDefinition, { createdAt: 0 });
  } catch (error) {
    if (isCarillonError(error)) return error;
    throw error;
  }
  throw new Error(`accepted ${JSON.stringify(definition)}`);
}

describe('expressions that are refused, with what to write instead', () => {
  test.each([
    ['', 'empty', '30 2 * * *'],
    ['   ', 'empty', '30 2 * * *'],
    ['*', '4 fields are missing', '* * * * *'],
    ['* *', '3 of 5 fields are missing', '* * * * *'],
    ['5', '4 fields are missing', '5 * * * *'],
    ['*/5', '4 fields are missing', '*/5 * * * *'],
    ['1 1', '3 of 5', '1 1 * * *'],
    ['5 4 * *', '1 of 5 fields is missing', '5 4 * * *'],
    ['*/60 * * * *', '*/60', 'write 0'],
    ['*/61 * * * *', '*/61', "every: '61m'"],
    ['*/90 * * * *', '*/90', "every: '90m'"],
    ['0 */25 * * *', 'hour', "every: '25h'"],
    ['0 0-23/25 * * *', '0-23/25', 'at most 23'],
    ['0 0 */32 * *', '*/32', 'at most 30'],
    ['0 0 * */12 *', '*/12', 'at most 11'],
    ['59/5 * * * *', '59/5', 'write 59'],
    ['*/0 * * * *', '*/0', 'from 1'],
    ['*/x * * * *', '*/X', 'from 1'],
    ['? ? ? ? ?', 'minute', 'write *'],
    ['0 0 ?/2 * *', 'stand alone', 'write *'],
    ['0 0 1,? * *', 'stand alone', 'write *'],
    ['0 9-16 ? * MON-FRI *', 'hour is ?', "'0 9-16 ? * MON-FRI'"],
    ['0005 * * * *', 'too many digits', 'write 5'],
    ['60 * * * *', '60 is out of range', '0 to 59'],
    ['0 24 * * *', '24 is out of range', '0 to 23'],
    ['0 0 0 * *', '0 is out of range', '1 to 31'],
    ['0 0 * 13 *', '13 is out of range', '1 to 12'],
    ['0 0 * * 8', '8 is out of range', '0 to 7'],
    ['1,,2 * * * *', 'empty', 'comma'],
    ['0, 30 * * * *', 'empty', 'comma'],
    ['1-2-3 * * * *', '1-2-3', '0-59'],
    ['-5 * * * *', '-5', '0 to 59'],
    ['1.5 * * * *', '1.5', '0 to 59'],
    ['0 0 * foo *', 'FOO', 'JAN'],
    ['0 0 * * tues', 'TUES', 'TUE'],
    ['0 0 * * L', 'L alone', '5L'],
    ['0 0 * * 1#6', '1#6', '1#5'],
    ['0 0 * * 1#', '1#', '1#5'],
    ['0 0 * * 5#L', '5#L', '5L'],
    ['0 0 -1 * *', '-1', 'write L'],
    ['0 0 -3 * *', '-3', 'write L-2'],
    ['0 0 L-31 * *', 'L-31', 'L-30'],
    ['0 0 15WL * *', '15WL', '15W'],
    ['0 0 W * *', 'W', '15W'],
    ['0 0 32W * *', '32', '1 to 31'],
    ['0 0 25-5/2 * *', '25-5/2', '25-31/2,1-5/2'],
    [
      '0 15 10 ? * 6L 2002-2005',
      'seven fields',
      "'0 15 10 ? * 6L', and startDate: '2002-01-01T00:00:00Z', endDate: '2005-12-31T23:59:59Z'",
    ],
    [
      '0 0 12 1 1 ? 2027',
      'no year field',
      "'0 0 12 1 1 ?', and startDate: '2027-01-01T00:00:00Z', endDate: '2027-12-31T23:59:59Z'",
    ],
    [
      '0 0 12 1 1 ? 2027/2',
      'no year field',
      "'0 0 12 1 1 ?', and startDate and endDate; one schedule for each span of years",
    ],
    ['0 0 12 1 1 ? 2030-2027', 'no year field', 'one schedule for each span of years'],
    [
      '0 12 15 * ? *',
      'month is ?, as in an expression whose sixth field is the year',
      "leave the year out: '0 12 15 * ?'",
    ],
    ['0 12 ? * 2 2027', 'the year 2027', "'0 12 ? * 2', and startDate: '2027-01-01T00:00:00Z'"],
    [
      '0 12 15 * ? 2027-2028',
      'the year 2027-2028',
      "'0 12 15 * ?', and startDate: '2027-01-01T00:00:00Z', endDate: '2028-12-31T23:59:59Z'",
    ],
    [
      '0 5 * * 1 2026',
      'the year 2026 as its sixth field',
      "'0 5 * * 1', and startDate: '2026-01-01T00:00:00Z'",
    ],
    ['0 5 * * 1 2026,2028', 'no year field', 'one schedule for each span of years'],
    ['0 0 * * * Europe/London', 'zone Europe/London', "tz: 'Europe/London' and write '0 0 * * *'"],
    ['0 0 * * * Europe/Lodnon', 'zone Europe/Lodnon', "tz: 'Europe/Lodnon' and write '0 0 * * *'"],
    ['0 9 * * * UTC', 'zone UTC', "tz: 'UTC' and write '0 9 * * *'"],
    ['0 9 * * * utc', 'zone utc', "tz: 'utc' and write '0 9 * * *'"],
    ['0 9 * * * EST', 'zone EST', "tz: 'EST' and write '0 9 * * *'"],
    ['0 9 * * * Etc/GMT+5', 'zone Etc/GMT+5', "tz: 'Etc/GMT+5' and write '0 9 * * *'"],
    ['0 9 * * UTC', 'zone UTC', "tz: 'UTC' and write '0 9 * * *'"],
    ['0 0 9 * * MON/x', 'MON/X', 'from 1'],
    ['0 0 9 * * 9', '9 is out of range', '0 to 7'],
    ['0 0 12 * * ? *', 'seven fields', "'0 0 12 * * ?'"],
    ['0 1 * * * ? UTC', 'zone UTC', "tz: 'UTC'"],
    ['1 2 * * * * America/New_York', 'zone America/New_York', "tz: 'America/New_York'"],
    ['CRON_TZ=Europe/Berlin 0 5 * * *', 'zone', "tz: 'Europe/Berlin' and write '0 5 * * *'"],
    ['TZ=UTC 0 5 * * *', 'zone', "tz: 'UTC'"],
    ['0 5 * * * # nightly', 'comment', "'0 5 * * *'"],
    ['1 2 3 4 5 6 7 8', '8 fields', 'five'],
    ['\uFEFF0 5 * * *', 'U+FEFF', 'plain blanks'],
    ['0\u00A05 * * *', 'U+00A0', 'plain blanks'],
    ['0 5 * * *\r\n', 'U+000D', 'one line'],
    ['0 5 * * *\n', 'U+000A', 'one line'],
    [`${'1,'.repeat(600)}1 * * * *`, 'too long', '1024'],
    ['@reboot', 'start of a machine', 'one-time job'],
    ['@fortnightly', 'no nickname', '@weekly'],
    ['@daily 5', 'no nickname', '@daily'],
    ['@every', 'how often', '@every 5m'],
    ['H * * * *', 'identity', 'seed'],
    ['~ * * * *', 'identity', 'seed'],
  ])('%j: %s', (cron, problem, todo) => {
    const error = refusal({ cron });
    expect(error.code).toBe('INVALID_CRON');
    expect(error.field).toBe('cron');
    expect(error.message).toContain(problem);
    expect(error.todo).toContain(todo);
    expect(error.retryable).toBe(false);
  });

  test.each([
    ['H(30-10) * * * *', 'reversed'],
    ['H(0-70) * * * *', 'out of range'],
    ['H/60 * * * *', '60'],
    ['30~10 * * * *', 'reversed'],
    ['H-5 * * * *', 'H-5'],
  ])('%s with a seed', (cron, problem) => {
    expect(() => compileSchedule({ cron }, { seed: 'q:a' })).toThrow(problem);
  });

  test.each([[null], [5], [{}], [['0 0 * * *']], [true]])('%j is no expression', (cron) => {
    expect(refusal({ cron })).toMatchObject({ code: 'INVALID_CRON', field: 'cron' });
  });

  test('a year is refused with its dates by the clock of the schedule’s zone', () => {
    const todo = (cron: string, tz: string) => refusal({ crons: [cron], tz }).todo;
    expect(todo('0 0 22 31 12 ? 2027', 'America/New_York')).toContain(
      "startDate: '2027-01-01T00:00:00-05:00', endDate: '2027-12-31T23:59:59-05:00'",
    );
    expect(todo('0 22 31 12 ? 2027-2028', 'Australia/Sydney')).toContain(
      "startDate: '2027-01-01T00:00:00+11:00', endDate: '2028-12-31T23:59:59+11:00'",
    );
    // What is written instead fires at the same times: at the year's last hour, and not in the next year.
    const year = { startDate: '2027-01-01T00:00:00-05:00', endDate: '2027-12-31T23:59:59-05:00' };
    const times = nextFireTimes(
      { cron: '0 0 22 31 12 ?', tz: 'America/New_York', ...year },
      { after: 0, count: 9 },
    );
    expect(times.map((time) => time.toISOString())).toEqual(['2028-01-01T03:00:00.000Z']);
  });

  test('names of days are no zones', () => {
    for (const day of ['MON', 'sat', 'SUN#2', 'FRIL', 'MON/2', 'mon-fri', 'SUN,WED']) {
      expect(compileSchedule({ cron: `0 0 9 * * ${day}` }).kind).toBe('fixed');
      expect(compileSchedule({ cron: `0 9 * * ${day}` }).kind).toBe('fixed');
    }
  });

  test('the one of several is named', () => {
    expect(refusal({ crons: ['0 0 * * *', '61 * * * *'] })).toMatchObject({
      code: 'INVALID_CRON',
      field: 'crons[1]',
    });
    expect(refusal({ pattern: '61 * * * *' }).field).toBe('pattern');
  });
});

describe('time zones that are refused', () => {
  test.each([
    ['local', 'hosts differ'],
    ['system', 'hosts differ'],
    ['', 'Europe/London'],
    [null, 'Europe/London'],
    [5, 'Europe/London'],
    ['UTC+2', 'Etc/GMT-2'],
    ['GMT-5', 'Etc/GMT+5'],
    ['+02:00', 'Etc/GMT-2'],
    ['+05:30', 'Europe/London'],
    ['Asia/Shangai', 'Asia/Shanghai'],
    ['Berlin', 'Europe/Berlin'],
    ['new york', 'America/New_York'],
    ['Mars/Olympus', 'Europe/London'],
    // ICU takes these for Dhaka, Kolkata and Los Angeles.
    ['BST', 'Europe/London'],
    ['IST', 'Europe/London'],
    ['PST', 'Europe/London'],
    ['SystemV/PST8PDT', 'Europe/London'],
  ])('%j: %s', (tz, todo) => {
    const error = refusal({ cron: '0 0 * * *', tz });
    expect(error).toMatchObject({ code: 'INVALID_TIME_ZONE', field: 'tz' });
    expect(error.todo).toContain(todo);
    expect(refusal({ every: '1h', tz }).code).toBe('INVALID_TIME_ZONE');
  });

  test.each([
    'UTC',
    'utc',
    'Europe/London',
    'US/Pacific',
    'EST',
    'GMT',
    'Etc/GMT+5',
    'America/Argentina/Buenos_Aires',
  ])('%s is taken', (tz) => {
    expect(compileSchedule({ cron: '0 0 * * *', tz }).next(0)).toBeTypeOf('number');
  });

  test('every zone that Node lists is taken', () => {
    for (const tz of Intl.supportedValuesOf('timeZone')) compileSchedule({ cron: '0 0 * * *', tz });
  });
});

describe('options that are refused', () => {
  const daily = { cron: '0 0 * * *' };
  test.each<[unknown, ErrorCode, string]>([
    [undefined, 'INVALID_OPTION', 'definition'],
    [{}, 'INVALID_OPTION', 'cron'],
    [{ ...daily, every: 5 }, 'INVALID_OPTION', 'cron'],
    [{ ...daily, pattern: '0 0 * * *' }, 'INVALID_OPTION', 'cron'],
    [{ crons: [] }, 'INVALID_OPTION', 'crons'],
    [{ crons: '0 0 * * *' }, 'INVALID_OPTION', 'crons'],
    [{ crons: Array(65).fill('0 0 * * *') }, 'INVALID_OPTION', 'crons'],
    [{ ...daily, timezone: 'UTC' }, 'INVALID_OPTION', 'timezone'],
    [{ ...daily, timeZone: 'UTC' }, 'INVALID_OPTION', 'timeZone'],
    [{ ...daily, gap: 'forward' }, 'INVALID_OPTION', 'gap'],
    [{ ...daily, fold: 'twice' }, 'INVALID_OPTION', 'fold'],
    [{ ...daily, limit: 0 }, 'INVALID_OPTION', 'limit'],
    [{ ...daily, limit: 1.5 }, 'INVALID_OPTION', 'limit'],
    [{ ...daily, limit: '3' }, 'INVALID_OPTION', 'limit'],
    [{ ...daily, anchor: 0 }, 'INVALID_OPTION', 'anchor'],
    [{ ...daily, phase: '1m' }, 'INVALID_OPTION', 'phase'],
    [{ ...daily, startDate: 2, endDate: 1 }, 'INVALID_OPTION', 'endDate'],
    [{ ...daily, startDate: '2026-01-01' }, 'INVALID_OPTION', 'startDate'],
    [{ ...daily, startDate: '2026-01-01T00:00:00' }, 'INVALID_OPTION', 'startDate'],
    [{ ...daily, startDate: '2026-02-30T00:00:00Z' }, 'INVALID_OPTION', 'startDate'],
    [{ ...daily, endDate: Number.NaN }, 'INVALID_OPTION', 'endDate'],
    [{ ...daily, endDate: new Date('x') }, 'INVALID_OPTION', 'endDate'],
    [{ ...daily, endDate: -1 }, 'INVALID_OPTION', 'endDate'],
    [{ ...daily, endDate: 8_640_000_000_000_001 }, 'INVALID_OPTION', 'endDate'],
    [{ every: 0 }, 'INVALID_DURATION', 'every'],
    [{ every: null }, 'INVALID_DURATION', 'every'],
    [{ every: '5' }, 'INVALID_DURATION', 'every'],
    [{ every: '1h', phase: '1h' }, 'INVALID_OPTION', 'phase'],
    [{ every: '1h', anchor: 'yesterday' }, 'INVALID_OPTION', 'anchor'],
  ])('%j', (definition, code, field) => {
    expect(refusal(definition)).toMatchObject({ code, field });
  });

  test('nextFireTimes needs a start and a sensible count', () => {
    const ask = (options: object) => () => nextFireTimes(daily, options as { after: number });
    expect(ask({})).toThrow('after');
    expect(ask({ after: 'now' })).toThrow('after');
    for (const count of [0, -1, 1.5, Number.NaN, 10_001, '3'])
      expect(ask({ after: 0, count })).toThrow('count');
  });

  test('a timing that is asked for the time after NaN does not say that it has ended', () => {
    expect(() => compileSchedule(daily).next(Number.NaN)).toThrow('after');
    expect(() => compileSchedule({ every: '1h' }).next(0)).toThrow('createdAt');
  });
});
