import { Queue } from 'bullmq';
import { describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { Spine } from '../support/spine.js';
import { startScheduler } from '../support/spine-scheduler.js';
import { InProcessCli } from './cli-in-process.js';

const HOUR = 3_600_000;

interface Runs {
  runs: { scheduledFor: number; what: string; runId?: string; outcome?: string; lateBy?: number }[];
}

/** A schedule that fires on each first of January, and one scheduler that leads. */
async function yearly(task: { name: string }, ...flags: string[]) {
  const cli = new InProcessCli(namespaceFor(task));
  await cli.text('schedules', 'upsert', 'q', 'yearly', '--cron', '0 3 1 1 *', '--missed', 'skip', ...flags);
  const { prefix } = cli;
  const spine = await Spine.open({ url: sharedRedisUrl(), namespace: `carillon-${prefix}`, prefix });
  await startScheduler(spine);
  const { hostname, port } = new URL(sharedRedisUrl());
  const queue = new Queue('q', { prefix, connection: { host: hostname, port: Number(port) } });
  onTestFinished(() => queue.close());
  return { cli, queue };
}

/** Its last three ticks. */
function lastYears(): string[] {
  const year = new Date(Date.now() - 86_400_000).getUTCFullYear();
  return [year - 2, year - 1, year].map((y) => `${y}-01-01T03:00:00.000Z`);
}

describe('backfill', () => {
  test('runs what did not run, after a dry run; again only with --rerun', async ({ task }) => {
    const { cli, queue } = await yearly(task);
    const years = lastYears();
    const span = ['--from', years[0] ?? '', '--to', years[2] ?? ''];
    const backfill = (...flags: string[]) =>
      cli.run('schedules', 'backfill', 'q', 'yearly', ...span, ...flags);
    const lines = years.map((tick) => `  ${tick}\n`).join('');
    expect(await backfill('--dry-run')).toEqual({
      code: 0,
      stdout: lines,
      stderr: 'a dry run of 3 ticks of yearly in q: nothing was written\n',
    });
    expect(await cli.json('schedules', 'runs', 'q', 'yearly')).toEqual({
      queue: 'q',
      id: 'yearly',
      runs: [],
    });

    expect(await backfill('--overlap', 'allow')).toEqual({
      code: 0,
      stdout: `${lines}3 ticks of yearly in q to run, beside each other\n`,
      stderr: '',
    });
    await eventually(async () => (await queue.getWaitingCount()) === 3);
    expect((await backfill()).stdout).toBe('0 ticks of yearly in q to run, one at a time\n');
    const again = await cli.json<{ ticks: { utc: string }[] }>(
      'schedules', 'backfill', 'q', 'yearly', ...span, '--rerun', '--overlap', 'allow',
    ); // biome-ignore format: one command
    expect(again.ticks.map(({ utc }) => utc)).toEqual(years);
    await eventually(async () => (await queue.getWaitingCount()) === 6);
  });

  test('one at a time unless said otherwise', async ({ task }) => {
    const { cli, queue } = await yearly(task);
    const [from = '', , to = ''] = lastYears();
    await cli.text('schedules', 'backfill', 'q', 'yearly', '--from', from, '--to', to);
    await eventually(async () => (await queue.getWaitingCount()) === 1);
    expect(await cli.json('schedules', 'describe', 'q', 'yearly')).toMatchObject({
      open: [{ kind: 'backfill' }],
      waiting: [{ kind: 'backfill' }, { kind: 'backfill' }],
    });
  });
});

describe('runs and describe', () => {
  test('tell what became of each run, with BullMQ’s outcome', async ({ task }) => {
    const { cli, queue } = await yearly(task, '--overlap', 'bufferAll');
    const { runId } = await cli.json<{ runId: string }>('schedules', 'trigger', 'q', 'yearly');
    const before = await cli.json<Runs>('schedules', 'runs', 'q', 'yearly');
    expect(before.runs).toMatchObject([{ what: 'triggered', runId, lateBy: 0, outcome: 'waiting' }]);
    expect(await cli.text('schedules', 'runs', 'q', 'yearly')).toMatch(
      new RegExp(`\\n\\S+Z +triggered +0s +waiting +${runId.replace('+', '\\+')} +`),
    );
    await queue.remove(runId);
    await cli.text('schedules', 'trigger', 'q', 'yearly');
    const { runs } = await cli.json<Runs>('schedules', 'runs', 'q', 'yearly');
    expect(runs.map(({ outcome }) => outcome)).toEqual(['unknown', 'waiting']);
    const newest = await cli.json<Runs>('schedules', 'runs', 'q', 'yearly', '--limit', '1');
    expect(newest.runs).toEqual(runs.slice(-1));
  });

  test('describe says in words what it does, why it stands still, what comes and what was', async ({
    task,
  }) => {
    const { cli } = await yearly(
      task, '--missed', 'all', '--max-catchup', '7', '--on-too-many', 'suspend', '--overlap', 'cancelOther',
      '--max-open-runs', '9', '--run-timeout', '2h', '--pause-on-failure', '3', '--catchup-window', '6h', '--keep-runs', '20',
      '--jitter', '90s', '--exclude', '2031-12-25', '--tag', 'a', '--tag', 'b', '--grace', '45000',
    ); // biome-ignore format: one command
    const { definition } = await cli.json('schedules', 'get', 'q', 'yearly');
    expect(definition).toEqual({
      cron: ['0 3 1 1 *'],
      missed: 'all',
      grace: 45_000,
      jitter: 90_000,
      catchupWindow: 6 * HOUR,
      maxCatchup: 7,
      onTooMany: 'suspend',
      overlap: 'cancelOther',
      maxOpenRuns: 9,
      runTimeout: 2 * HOUR,
      pauseOnFailure: 3,
      keepRuns: 20,
      exclude: ['2031-12-25'],
      tags: ['a', 'b'],
    });
    await cli.text('schedules', 'trigger', 'q', 'yearly');
    await cli.text('schedules', 'pause', 'q', 'yearly', '--note', 'audit');
    const text = await cli.text('schedules', 'describe', 'q', 'yearly');
    for (const line of [
      /^state +paused\nnote +audit$/m,
      /^ +All ticks that were missed run in order, one at a time; of more than 7, the schedule is suspended\.$/m,
      /^ +A tick that comes while a run is still open takes the place of one that no worker has fetched; .*plain worker/m,
      /^ +A run that has not ended 2h after/m,
      /^ +A tick that nobody serves for 45s is caught up, at most 6h late\.$/m,
      /^tags +a, b$/m,
      /^open runs +yearly@\d+\+[0-9a-f]{12}, since 2\S+Z$/m,
      /^next +2\S+T03:00:00\.000Z {2}2\S+T03:00:00\+00:00(, fires \S+ later)?$/m,
      /^last +2\S+Z {2}triggered, 0s late: waiting$/m,
    ]) {
      expect(text).toMatch(line);
    }
    const shown = await cli.json<{ upcoming: unknown[]; recent: unknown[] }>(
      'schedules',
      'get',
      'q',
      'yearly',
    );
    expect([shown.upcoming.length, shown.recent.length]).toEqual([10, 1]);
  });

  test.for([
    ['--missed', 'all', '--max-catchup', '0'],
    ['--missed', 'all', '--on-too-many', 'drop'],
    ['--missed', 'skip', '--overlap', 'maybe'],
    ['--missed', 'skip', '--max-concurrent', '65'],
    ['--missed', 'skip', '--max-concurrent', '40'],
    ['--missed', 'skip', '--run-timeout', '10'],
    ['--missed', 'skip', '--pause-on-failure', 'x'],
    ['--missed', 'skip', '--keep-runs', '256'],
  ])('upsert refuses %j', async (flags) => {
    const cli = new InProcessCli(namespaceFor({ name: flags.join(' ') }));
    const result = await cli.run('schedules', 'upsert', 'q', 's', '--every', '15m', ...flags);
    expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('(INVALID_') });
  });
});
