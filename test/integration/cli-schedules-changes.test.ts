import { Queue } from 'bullmq';
import { describe, expect, onTestFinished, test } from 'vitest';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { InProcessCli } from './cli-in-process.js';

const QUEUE = 'q';

/** Four schedules of one queue: two of billing, one of them paused; none of them fires within the test. */
async function town(task: { name: string }): Promise<InProcessCli> {
  const cli = new InProcessCli(namespaceFor(task));
  const upsert = (id: string, ...flags: string[]) =>
    cli.text('schedules', 'upsert', QUEUE, id, '--cron', '0 3 1 1 *', '--missed', 'latest', ...flags);
  await upsert('dunning', '--tag', 'billing');
  await upsert('invoices', '--tag', 'billing', '--tag', 'nightly');
  await upsert('report', '--tag', 'nightly', '--tz', 'Europe/London');
  await upsert('other');
  await cli.text('schedules', 'pause', QUEUE, 'dunning', '--note', 'audit');
  return cli;
}

async function states(cli: InProcessCli): Promise<string[]> {
  const { schedules } = await cli.json<{ schedules: { id: string; state: string }[] }>(
    'schedules',
    'list',
    QUEUE,
  );
  return schedules.map(({ id, state }) => `${id} ${state}`).sort();
}

/** BullMQ's own view of the queue. */
function queueOf(cli: InProcessCli): Queue {
  const { hostname, port } = new URL(sharedRedisUrl());
  const queue = new Queue(QUEUE, { prefix: cli.prefix, connection: { host: hostname, port: Number(port) } });
  onTestFinished(() => queue.close());
  return queue;
}

const BEFORE = ['dunning paused', 'invoices scheduled', 'other scheduled', 'report scheduled'];

describe('schedules list', () => {
  test.for([
    [
      ['--tag', 'billing'],
      ['dunning', 'invoices'],
    ],
    [['--state', 'paused,suspended'], ['dunning']],
    [['--text', 'LONDON'], ['report']],
    [['--text', 'audit'], ['dunning']],
    [
      ['--tag', 'nightly', '--state', 'scheduled', '--text', 'o'],
      ['invoices', 'report'],
    ],
    [['--tag', 'night'], []],
  ] as const)('%j', async ([flags, ids]) => {
    const cli = await town({ name: `list ${flags.join(' ')}` });
    const { schedules } = await cli.json<{ schedules: { id: string }[] }>('schedules', 'list', ...flags);
    expect(schedules.map(({ id }) => id).sort()).toEqual(ids);
  });

  test('pages through what a filter means', async ({ task }) => {
    const cli = await town(task);
    const found: string[] = [];
    let cursor: string | null = '';
    do {
      const page: { schedules: { id: string }[]; cursor: string | null } = await cli.json(
        'schedules', 'list', QUEUE, '--tag', 'nightly', '--limit', '1', ...(cursor ? ['--cursor', cursor] : []),
      ); // biome-ignore format: one command
      expect(page.schedules.length).toBeLessThanOrEqual(1);
      found.push(...page.schedules.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor !== null);
    expect(found.sort()).toEqual(['invoices', 'report']);
  });
});

describe('changes over a filter', () => {
  test('a dry run shows which are meant, and writes nothing', async ({ task }) => {
    const cli = await town(task);
    for (const verb of ['pause', 'resume', 'trigger', 'delete']) {
      expect(await cli.run('schedules', verb, QUEUE, '--tag', 'billing', '--dry-run')).toEqual({
        code: 0,
        stdout: '  dunning\n  invoices\n',
        stderr: 'a dry run of 2 schedules: nothing was written\n',
      });
    }
    expect(await states(cli)).toEqual(BEFORE);
    expect(await queueOf(cli).getJobCountByTypes()).toBe(0);
  });

  test('nobody at the terminal: without --yes nothing is written', async ({ task }) => {
    const cli = await town(task);
    const { code, stderr } = await cli.run('schedules', 'delete', QUEUE, '--tag', 'billing');
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('Add --yes') });
    expect(await states(cli)).toEqual(BEFORE);
  });

  test('pause, resume, trigger and delete', async ({ task }) => {
    const cli = await town(task);
    const paused = await cli.text('schedules', 'pause', QUEUE, '--tag', 'nightly', '--note', 'move', '--yes');
    expect(paused).toBe('  invoices\n  report\npaused 2 schedules of q\n');
    expect(await cli.json('schedules', 'get', QUEUE, 'report')).toMatchObject({
      state: 'paused',
      note: 'move',
    });
    await cli.text('schedules', 'resume', QUEUE, '--state', 'paused', '-y');
    expect(await states(cli)).toEqual(BEFORE.map((line) => line.replace('paused', 'scheduled')));

    const triggered = await cli.json('schedules', 'trigger', QUEUE, '--tag', 'nightly', '--yes');
    expect(triggered).toMatchObject({
      queue: QUEUE,
      verb: 'trigger',
      dryRun: false,
      applied: true,
      schedules: expect.arrayContaining([{ id: 'invoices', done: true }]),
    });
    const queue = queueOf(cli);
    expect((await queue.getWaiting()).map(({ name }) => name).sort()).toEqual(['invoices', 'report']);

    await cli.text(
      'schedules',
      'delete',
      QUEUE,
      '--text',
      'report',
      '--cancel-runs',
      '--reason',
      'sold',
      '--yes',
    );
    expect(await states(cli)).toEqual(['dunning scheduled', 'invoices scheduled', 'other scheduled']);
    expect((await queue.getWaiting()).map(({ name }) => name)).toEqual(['invoices']);
  });

  test('one that refuses stops none of the others, and the exit code tells', async ({ task }) => {
    const cli = await town(task);
    const { code, stdout } = await cli.run('schedules', 'resume', QUEUE, '--tag', 'billing', '--yes');
    expect(code).toBe(1);
    expect(stdout).toContain('  ! invoices: CONFLICT: it is not paused\nresumed 1 schedule of q\n');
    expect(await states(cli)).toContain('dunning scheduled');
  });

  test.for([
    [['pause', QUEUE], 'INVALID_OPTION'],
    [['delete', QUEUE, 'report', '--tag', 'nightly'], 'INVALID_OPTION'],
    [['delete', QUEUE, '--state', 'asleep', '--yes'], 'INVALID_OPTION'],
    [['delete', QUEUE, '--tag', '', '--yes'], 'INVALID_OPTION'],
    [['trigger', QUEUE, 'report', '--overlap', 'maybe'], 'INVALID_OPTION'],
    [['pause', QUEUE, 'report', '--request-id', ''], 'INVALID_OPTION'],
    [['backfill', QUEUE, 'report', '--from', 'then', '--to', '0'], 'INVALID_OPTION'],
    [['backfill', QUEUE, 'report', '--from', '0'], 'USAGE'],
    [['runs', QUEUE, 'report', '--limit', '0'], 'INVALID_OPTION'],
  ] as const)('refused: %j', async ([args, code]) => {
    const cli = await town({ name: `refused ${args.join(' ')}` });
    const result = await cli.run('schedules', ...args);
    expect(result).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining(`(${code})`) });
    expect(await states(cli)).toEqual(BEFORE);
  });

  test.for(['trigger', 'pause', 'resume', 'delete', 'describe', 'runs'])('%s of none', async (verb) => {
    const cli = await town({ name: `${verb} none` });
    const { code, stderr } = await cli.run('schedules', verb, QUEUE, 'nothing');
    expect({ code, stderr }).toEqual({ code: 1, stderr: expect.stringContaining('(NOT_FOUND)') });
  });
});

describe('a change of one', () => {
  test('with a dry run it is only told', async ({ task }) => {
    const cli = await town(task);
    expect(await cli.text('schedules', 'delete', QUEUE, 'report', '--dry-run')).toBe(
      'would be deleted report of q\n',
    );
    expect(await cli.json('schedules', 'trigger', QUEUE, 'report', '--dry-run')).toMatchObject({
      dryRun: true,
    });
    expect(await states(cli)).toEqual(BEFORE);
    expect(await queueOf(cli).getJobCountByTypes()).toBe(0);
  });

  test('a request that is sent again has its effect once', async ({ task }) => {
    const cli = await town(task);
    const trigger = ['schedules', 'trigger', QUEUE, 'report', '--request-id', 'r'];
    const first = await cli.json<{ runId: string }>(...trigger);
    expect(first.runId).toMatch(/^report@\d+\+[0-9a-f]{12}$/);
    expect(await cli.json(...trigger)).toEqual(first);
    expect((await queueOf(cli).getWaiting()).map(({ id }) => id)).toEqual([first.runId]);
  });

  test('one request id given to every command of a pipeline has its effect in each', async ({ task }) => {
    const cli = await town(task);
    const now = (verb: string, ...flags: string[]) =>
      cli.text('schedules', verb, QUEUE, ...flags, '--request-id', 'pipeline-5');
    await now('pause', 'report');
    expect(await states(cli)).toContain('report paused');
    await now('resume', 'report');
    expect(await states(cli)).toEqual(BEFORE);
    await now('pause', '--text', 'r', '--yes');
    expect(await states(cli)).toEqual(expect.arrayContaining(['other paused']));
    await now('resume', '--text', 'r', '--yes');
    expect(await states(cli)).toContain('other scheduled');
    expect(await now('trigger', 'report')).toMatch(/^triggered report of q: report@\d+\+[0-9a-f]{12}\n$/);
    await now('delete', 'report');
    expect(await states(cli)).toHaveLength(3);
  });

  test.each(['upsert', 'update'])(
    '%s: what repeats an earlier request says that it changed nothing',
    async (verb) => {
      const cli = await town({ name: `repeat ${verb}` });
      const every = ['--every', '1h', ...(verb === 'upsert' ? ['--missed', 'latest'] : [])];
      const run = (...args: string[]) => cli.run('schedules', verb, QUEUE, 'other', ...args);
      expect((await run(...every, '--request-id', 'r')).stderr).not.toContain('repeats');
      await cli.text('schedules', 'update', QUEUE, 'other', '--every', '2h');
      const again = await run(...every, '--request-id', 'r');
      expect(again.stderr).toContain(
        'an earlier call with this --request-id was carried out; this one repeats it and changed nothing',
      );
      expect(again.stdout).toMatch(/^(unchanged )?other in q: every 2h[^\n]*\n$/);
      expect(await cli.json('schedules', verb, QUEUE, 'other', ...every, '--request-id', 'r')).toMatchObject({
        repeated: true,
        differences: [],
      });
    },
  );

  test('delete leaves or cancels what no worker has fetched', async ({ task }) => {
    const cli = await town(task);
    await cli.text('schedules', 'trigger', QUEUE, 'report');
    await cli.text('schedules', 'trigger', QUEUE, 'other');
    await cli.text('schedules', 'delete', QUEUE, 'report');
    await cli.text('schedules', 'delete', QUEUE, 'other', '--cancel-runs');
    expect((await queueOf(cli).getWaiting()).map(({ name }) => name)).toEqual(['report']);
  });
});
