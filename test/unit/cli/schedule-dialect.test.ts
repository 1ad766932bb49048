import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { run } from '../../../src/cli/program.js';
import { toDefinition } from '../../../src/cli/schedule-timing.js';

let out = '';
let err = '';

beforeEach(() => {
  out = '';
  err = '';
  vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
    out += text;
    return true;
  });
  vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
    err += text;
    return true;
  });
});
afterEach(() => {
  vi.restoreAllMocks();
});

test('expressions are translated, beside the other flags', () => {
  expect(toDefinition({ dialect: 'quartz', tz: 'Asia/Tokyo', gap: 'skip' }, ['0 0 12 ? * 2-6'])).toEqual({
    cron: '0 12 * * MON-FRI',
    tz: 'Asia/Tokyo',
    gap: 'skip',
  });
  expect(toDefinition({ dialect: 'eventbridge', cron: ['rate(5 minutes)'] })).toEqual({ every: '5m' });
  expect(toDefinition({ dialect: 'spring', cron: ['0 0 9 * * MON', '@daily'], tz: 'UTC' })).toEqual({
    crons: ['0 9 * * MON', '@daily'],
    tz: 'UTC',
  });
});

test('several that cannot be one schedule are refused', () => {
  for (const cron of [
    ['rate(5 minutes)', 'cron(0 12 * * ? *)'],
    ['at(2027-01-31T09:12:00)', 'cron(0 12 * * ? *)'],
  ]) {
    expect(() => toDefinition({ dialect: 'eventbridge', cron })).toThrow(/cannot be one schedule/);
  }
  expect(() =>
    toDefinition({ dialect: 'quartz', cron: ['0 0 12 * * ? UTC', '0 0 12 * * ? Asia/Tokyo'] }),
  ).toThrow(/cannot be one schedule/);
});

test('schedules next shows when another scheduler’s expression fires', async () => {
  const at = ['--after', '2026-01-01T00:00:00Z', '--count', '1', '--json'];
  expect(await run(['schedules', 'next', '0 0 12 ? * 2', '--dialect', 'quartz', ...at])).toBe(0);
  expect(JSON.parse(out)).toMatchObject({ times: [{ utc: '2026-01-05T12:00:00.000Z' }] });
});

test('a refusal is one line, a doubt is told', async () => {
  expect(await run(['schedules', 'next', '0 0 12 13 * 6', '--dialect', 'quartz'])).toBe(2);
  expect(err).toMatch(/^error: .*does not take together.*\(INVALID_CRON\)\.[^\n]*\n$/);
  err = '';
  expect(await run(['schedules', 'next', '0 12 * * 1', '--dialect', 'quartz'])).toBe(0);
  expect(err).toContain('warning: five fields are plain cron');
});
