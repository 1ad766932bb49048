import { describe, expect, test } from 'vitest';
import { histogram } from '../../src/cli/queues-forecast.js';
import { namespaceFor } from '../support/namespace.js';
import { InProcessCli } from './cli-in-process.js';

describe('calendars', () => {
  test('set, list, get, delete', async ({ task }) => {
    const cli = new InProcessCli(namespaceFor(task));
    const file = cli.file(
      'uk.txt',
      '\uFEFF# England\r\n2026-12-28..2026-12-31\r\n2026-12-25 # Christmas Day\r\n',
    );
    expect(await cli.text('calendars', 'set', 'uk', file)).toBe('set uk, now version 1\n');
    expect(await cli.text('calendars', 'set', 'uk', file)).toBe('uk is so already, version 1\n');
    expect(await cli.text('calendars', 'list')).toMatch(
      /^calendar +version .*\nuk +1 +2 +2026-12-25 +2026-12-31 /,
    );
    const written = '2026-12-25  # Christmas Day\n2026-12-28..2026-12-31\n';
    expect(await cli.text('calendars', 'get', 'uk')).toBe(written);
    // What get prints, set reads.
    expect(await cli.json('calendars', 'set', 'uk', cli.file('again.txt', written))).toEqual({
      name: 'uk',
      version: 1,
      changed: false,
      schedules: 0,
    });
    expect(await cli.json('calendars', 'get', 'uk')).toMatchObject({
      name: 'uk',
      version: 1,
      entries: [
        { from: '2026-12-25', to: '2026-12-25', label: 'Christmas Day' },
        { from: '2026-12-28', to: '2026-12-31' },
      ],
    });
    expect(await cli.json('calendars', 'list')).toMatchObject({
      calendars: [{ name: 'uk', version: 1, entries: 2 }],
    });
    expect(await cli.text('calendars', 'delete', 'uk')).toBe('deleted uk, now version 2\n');
    expect(await cli.run('calendars', 'get', 'uk')).toMatchObject({
      code: 1,
      stderr:
        'error: there is no calendar uk (NOT_FOUND). Check the name; `carillon calendars list` shows all.\n',
    });
  });

  test('a bad file tells the line', async ({ task }) => {
    const cli = new InProcessCli(namespaceFor(task));
    const file = cli.file('bad.txt', '2026-12-25\n2026-02-30\n');
    expect(await cli.run('calendars', 'set', 'uk', file)).toMatchObject({
      code: 2,
      stdout: '',
      stderr: 'error: line 2: "2026-02-30" has no day 30; write a day from 01 to 28 (INVALID_OPTION).\n',
    });
    expect(await cli.run('calendars', 'set', 'uk', 'nowhere.txt')).toMatchObject({ code: 2 });
    expect(await cli.run('calendars', 'set', 'a b', file)).toMatchObject({ code: 2 });
  });

  test('asking and deleting create no namespace', async ({ task }) => {
    const cli = new InProcessCli(namespaceFor(task));
    expect((await cli.run('calendars', 'list')).stderr).toMatch(/^there is no calendar/);
    expect(await cli.run('calendars', 'delete', 'uk')).toMatchObject({ code: 1 });
    expect((await cli.run('queues', 'forecast')).stderr).toBe('nothing will fire\n');
    expect(await cli.json('queues', 'list')).toEqual({ queues: [] });
  });
});

describe('what a schedule leaves out', () => {
  test('schedules next tells dates and ranges without any server, and where ticks went', async ({ task }) => {
    const cli = new InProcessCli(namespaceFor(task));
    const flags = [
      '--count',
      '2',
      '--after',
      '2026-12-19T00:00:00Z',
      '--exclude',
      '2026-12-25',
      '--on-excluded',
      'next',
    ];
    const text = await cli.text('schedules', 'next', '0 9 * * 5', ...flags);
    expect(text).toMatch(
      /\n2026-12-26T09:00:00\+00:00 +2026-12-26T09:00:00\.000Z +2026-12-25T09:00:00\+00:00 excluded: 2026-12-25; moved to /,
    );
    const range = '2026-12-25T08:00:00Z..2026-12-25T10:00:00Z';
    const { times } = await cli.json<{ times: { utc: string; excluded: unknown[] }[] }>(
      'schedules', 'next', '0 9 * * *', '--count', '1', '--after', '2026-12-25T00:00:00Z', '--exclude', range, '--exclude', '2026-12-26..2026-12-27',
    ); // biome-ignore format: one command
    expect(times).toMatchObject([{ utc: '2026-12-28T09:00:00.000Z', excluded: [{}, {}] }]);
  });

  test('a calendar is read where one is named, for next and for upsert', async ({ task }) => {
    const cli = new InProcessCli(namespaceFor(task));
    await cli.text('calendars', 'set', 'uk', cli.file('uk.txt', '2026-12-25 # Christmas Day'));
    const flags = ['--exclude', 'calendar:uk', '--on-excluded', 'next'];
    const next = ['schedules', 'next', '0 9 * * 5', '--count', '1', '--after', '2026-12-19T00:00:00Z'];
    expect(await cli.text(...next, ...flags)).toContain(
      '(Christmas Day) of calendar uk, version 1; moved to 2026-12-26T',
    );
    await cli.text('schedules', 'upsert', 'q', 's', '--cron', '0 9 * * 5', '--missed', 'skip', ...flags);
    expect(await cli.json('schedules', 'get', 'q', 's')).toMatchObject({
      definition: { exclude: [{ calendar: 'uk' }], onExcluded: 'next' },
    });
    expect(await cli.run('calendars', 'delete', 'uk')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('q:s'),
    });
    expect(await cli.run(...next, '--exclude', 'calendar:us')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('NOT_FOUND'),
    });
  });

  test.each([
    ['--exclude', '2026-02-30'],
    ['--exclude', '2026-12-26..2026-12-25'],
    ['--exclude', 'calendar:'],
    ['--on-excluded', 'next'],
  ])('%s %s is refused', async (flag, value) => {
    const cli = new InProcessCli(namespaceFor('refused'));
    expect(await cli.run('schedules', 'next', '0 9 * * *', flag, value)).toMatchObject({
      code: 2,
      stdout: '',
    });
  });
});

describe('queues forecast', () => {
  test('tells each queue with its histogram, and the peaks', async ({ task }) => {
    const cli = new InProcessCli(namespaceFor(task));
    for (let i = 0; i < 12; i++) {
      await cli.text('schedules', 'upsert', 'mail', `s${i}`, '--cron', '*/30 * * * *', '--missed', 'skip');
    }
    await cli.text('schedules', 'upsert', 'sms', 's', '--every', '1m', '--missed', 'skip');
    const text = await cli.text('queues', 'forecast', '--hours', '1');
    expect(text).toMatch(/^1h from .*: 13 schedules, 0 one-time jobs\n/);
    expect(text).toMatch(/\nmail +24 +0\.4 +\S+T\d\d:[03]0:00\.000Z +12 +\|[ █]{30}\|\n/);
    expect(text).toMatch(/\nsms +(59|60) /);
    expect(text).toMatch(/\n\S+T\d\d:[03]0:00\.000Z +mail +12 +1 by 10m +12 × \*\/30 \* \* \* \* \(UTC\)\n/);
  });

  test('--json holds every minute; of one queue', async ({ task }) => {
    const cli = new InProcessCli(namespaceFor(task));
    await cli.text('schedules', 'upsert', 'mail', 's', '--cron', '0,30 * * * *', '--missed', 'skip');
    await cli.text('jobs', 'add', 'sms', 'send', '--delay', '5m');
    const found = await cli.json<{ queues: { queue: string; counts: number[] }[] }>(
      'queues', 'forecast', '--queue', 'mail', '--hours', '3', '--peaks', '0',
    ); // biome-ignore format: one command
    expect(found).toMatchObject({ schedules: 1, oneTime: 0, peaks: [], sampled: 1 });
    expect(found.queues.map(({ queue, counts }) => [queue, counts.length])).toEqual([['mail', 180]]);
    expect(found.queues[0]?.counts.reduce((sum, count) => sum + count, 0)).toBe(6);
  });

  test.each([
    ['--hours', '0'],
    ['--hours', 'x'],
    ['--peaks', '101'],
    ['--queue', 'a:b'],
  ])('%s %s is refused', async (flag, value) => {
    const cli = new InProcessCli(namespaceFor('refused'));
    expect(await cli.run('queues', 'forecast', flag, value)).toMatchObject({ code: 2, stdout: '' });
  });

  test('a histogram shows what is not nothing, and the highest in full', () => {
    const counts = [0, 0, 1, 0, 50, 100, 0, 0, 13];
    expect(histogram({ counts, busiest: { at: 0, count: 100 } }, 2)).toBe(' ▁█ ▂');
    expect(histogram({ counts: [0, 0], busiest: { at: 0, count: 0 } }, 1)).toBe('  ');
  });
});
