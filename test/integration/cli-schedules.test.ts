import { describe, expect, test } from 'vitest';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { CLI, Cli } from './cli-process.js';

interface NextDocument {
  when: string;
  tz: string;
  times: {
    at: number;
    fireAt: number;
    utc: string;
    local: string;
    notes: { change: string; outcome: string }[];
  }[];
  warnings: string[];
}

describe('schedules next of an expression', { timeout: 60_000 }, () => {
  // No server is there: it must not be asked.
  const cli = new Cli(CLI, 'redis://127.0.0.1:1', 'bull');
  const next = (...args: string[]) => cli.json<NextDocument>('schedules', 'next', ...args);

  test('shows the clock of the zone and UTC', async () => {
    const args = ['30 2 * * *', '--tz', 'Europe/London', '--count', '3', '--after', '2027-03-26T12:00:00Z'];
    expect((await cli.text('schedules', 'next', ...args)).split('\n')).toEqual([
      'Europe/London              UTC',
      '2027-03-27T02:30:00+00:00  2027-03-27T02:30:00.000Z',
      '2027-03-28T02:30:00+01:00  2027-03-28T01:30:00.000Z',
      '2027-03-29T02:30:00+01:00  2027-03-29T01:30:00.000Z',
    ]);
  });

  test.for([
    ['shift', '2027-03-14T07:30:00.000Z', '2027-03-14T03:30:00-04:00'],
    ['edge', '2027-03-14T07:00:00.000Z', '2027-03-14T03:00:00-04:00'],
    ['skip', '2027-03-15T06:30:00.000Z', '2027-03-15T02:30:00-04:00'],
  ] as const)('--gap %s', async ([gap, utc, local]) => {
    const { times } = await next(
      '30 2 * * *',
      '--tz',
      'America/New_York',
      '--gap',
      gap,
      '--count',
      '1',
      '--after',
      '2027-03-13T12:00:00Z',
    );
    expect(times).toEqual([
      {
        at: Date.parse(utc),
        fireAt: Date.parse(utc),
        utc,
        local,
        notes: [expect.objectContaining({ change: 'gap' })],
        excluded: [],
      },
    ]);
  });

  test('--fold both', async () => {
    const { times } = await next(
      '30 1 * * *',
      '--tz',
      'America/New_York',
      '--fold',
      'both',
      '--count',
      '2',
      '--after',
      '2027-11-06T12:00:00Z',
    );
    expect(times.map(({ utc, notes }) => [utc, notes[0]?.outcome])).toEqual([
      ['2027-11-07T05:30:00.000Z', 'first-pass'],
      ['2027-11-07T06:30:00.000Z', 'second-pass'],
    ]);
  });

  test('intervals, several expressions, limits, and what has ended', async () => {
    const interval = await next(
      '--every',
      '90m',
      '--anchor',
      '2027-01-01T00:00:00Z',
      '--after',
      '2027-01-01T01:00:00Z',
      '--count',
      '2',
    );
    expect(interval.times.map(({ utc }) => utc)).toEqual([
      '2027-01-01T01:30:00.000Z',
      '2027-01-01T03:00:00.000Z',
    ]);
    const several = await next(
      '0 5 * * *',
      '--cron',
      '0 6 * * *',
      '--after',
      '2027-01-01T00:00:00Z',
      '--limit',
      '3',
    );
    expect(several).toMatchObject({ when: '0 6 * * * | 0 5 * * *', tz: 'UTC' });
    expect(several.times.map(({ utc }) => utc.slice(8, 13))).toEqual(['01T05', '01T06', '02T05']);
    const { code, stderr } = await cli.run(
      'schedules',
      'next',
      '@daily',
      '--end-date',
      '2026-01-01T00:00:00Z',
    );
    const never = 'warning: it never fires: its endDate 2026-01-01T00:00:00.000Z is over\nno tick comes\n';
    expect({ code, stderr }).toEqual({ code: 0, stderr: never });
    const { warnings } = await next('0 9 * * 1', '--exclude', '2020-01-01..9999-12-31');
    expect(warnings).toEqual(['it never fires: each of its times is excluded']);
  });

  test('jitter is the identity’s own: it is shown, and needs one', async () => {
    const flags = ['--jitter', '30m', '--count', '3', '--after', '2027-01-01T00:00:00Z'];
    const { times } = await next('@hourly', ...flags, '--seed', 'q:a');
    for (const { at, fireAt } of times) expect(fireAt - at).toBeLessThan(1_800_001);
    expect(new Set(times.map(({ at, fireAt }) => fireAt - at)).size).toBe(3);
    const text = await cli.text('schedules', 'next', '@hourly', ...flags, '--seed', 'q:a');
    expect(text).toMatch(/^UTC +UTC +fires\n/);
    expect(text).toContain(new Date(times[0]?.fireAt ?? 0).toISOString());
    const { code, stderr } = await cli.run('schedules', 'next', '@hourly', ...flags);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('jitter needs seed') });
  });

  test('H takes its value from the identity', async () => {
    const [one, again, other] = await Promise.all(
      ['q:a', 'q:a', 'q:b'].map((seed) =>
        next('H H * * *', '--seed', seed, '--count', '1', '--after', '2027-01-01T00:00:00Z'),
      ),
    );
    expect(one).toEqual(again);
    expect(one?.times).not.toEqual(other?.times);
  });
});

describe('schedules that are stored', { timeout: 60_000 }, () => {
  test('a schedule’s life, from upsert to delete', async ({ task }) => {
    const cli = new Cli(CLI, sharedRedisUrl(), namespaceFor(task));
    const tick = /^2\d{3}-\d\d-\d\dT\d\d:30:00.000Z$/;
    const created = await cli.json(
      'schedules', 'upsert', 'billing', 'nightly', '--cron', '30 2 * * *', '--tz', 'Europe/London', '--missed', 'latest',
      '--jitter', '5m', '--tag', 'money', '--tag', 'night', '--name', 'invoice', '--data', '{"n":1}', '--opts', '{"attempts":5}',
    ); // biome-ignore format: one command
    const definition = {
      cron: ['30 2 * * *'],
      tz: 'Europe/London',
      missed: 'latest',
      jitter: 300_000,
      tags: ['money', 'night'],
    };
    const template = { name: 'invoice', data: { n: 1 }, opts: { attempts: 5 } };
    expect(created).toMatchObject({
      queue: 'billing',
      id: 'nightly',
      state: 'scheduled',
      definition,
      template,
    });

    const stored = await cli.json<{ upcoming: { at: number }[] }>('schedules', 'get', 'billing', 'nightly');
    expect(stored).toMatchObject({ id: 'nightly', definition, template });
    const following = await cli.json<NextDocument>('schedules', 'next', 'billing', 'nightly');
    expect(following).toMatchObject({ when: '30 2 * * * Europe/London', tz: 'Europe/London' });
    expect(following.times.map(({ at }) => at)).toEqual(stored.upcoming.map(({ at }) => at));
    for (const { utc } of following.times) expect(utc).toMatch(tick);

    expect(await cli.text('schedules', 'pause', 'billing', 'nightly', '--note', 'audit')).toBe(
      'paused nightly of billing',
    );
    const paused = await cli.text('schedules', 'list', 'billing');
    expect(paused).toMatch(/billing\s+nightly\s+paused\s+30 2 \* \* \* Europe\/London\s+.*audit$/);
    expect(await cli.text('schedules', 'get', 'billing', 'nightly')).toMatch(
      /state\s+paused\nnote\s+audit\n/,
    );
    await cli.text('schedules', 'resume', 'billing', 'nightly');
    expect(await cli.json('schedules', 'list')).toMatchObject({
      schedules: [{ queue: 'billing', id: 'nightly', state: 'scheduled', definition }],
      cursor: null,
    });
    expect(await cli.text('schedules', 'delete', 'billing', 'nightly')).toBe('deleted nightly of billing');
    expect(await cli.failure('schedules', 'delete', 'billing', 'nightly')).toContain('(NOT_FOUND)');
    expect(await cli.failure('schedules', 'get', 'billing', 'nightly')).toContain('(NOT_FOUND)');
    expect(await cli.failure('schedules', 'next', 'billing', 'nightly')).toContain('(NOT_FOUND)');
  });

  test.for([
    [['--cron', '30 2 * * *', '--missed', 'maybe'], 'INVALID_OPTION'],
    [['--cron', '30 25 * * *', '--missed', 'skip'], 'INVALID_CRON'],
    [['--every', '15m', '--cron', '@daily', '--missed', 'skip'], 'INVALID_OPTION'],
    [['--every', '15m', '--missed', 'skip', '--grace', '5x'], 'INVALID_DURATION'],
    [['--every', '15m', '--missed', 'skip', '--opts', '{"repeat":{}}'], 'INVALID_OPTION'],
  ] as const)('bad definition: %j', async ([flags, code], { task }) => {
    const cli = new Cli(CLI, sharedRedisUrl(), namespaceFor(task));
    const result = await cli.run('schedules', 'upsert', 'q', 's', ...flags);
    expect(result.stderr).toMatch(new RegExp(`^error: [^\\n]+ \\(${code}\\)[^\\n]*\\n$`));
    expect(result).toMatchObject({ code: 2, stdout: '' });
  });
});
