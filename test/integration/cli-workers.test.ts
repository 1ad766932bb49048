import { describe, expect, onTestFinished, test } from 'vitest';
import { Queue, type Run, Worker } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { InProcessCli } from './cli-in-process.js';

function setup(task: { name: string }) {
  const prefix = namespaceFor(task);
  const queue = new Queue('emails', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  let end: () => void = () => undefined;
  const worker = new Worker(
    'emails',
    {
      hold: {
        effects: 'idempotent',
        async handle(run: Run) {
          await run.checkpoint({ page: 3 });
          await new Promise<void>((resolve) => {
            end = resolve;
          });
        },
      },
      mail(run: Run) {
        throw new Error(`connect ECONNREFUSED, attempt ${run.attempt}`);
      },
    },
    { connection: sharedRedisUrl(), prefix, concurrency: 5 },
  );
  worker.on('error', () => undefined);
  onTestFinished(async () => {
    end();
    await worker.close();
  });
  return { cli: new InProcessCli(prefix), queue, worker, end: () => end() };
}

describe('workers', () => {
  test('list shows where they run and what they do; jobs get shows whose a run is', async ({ task }) => {
    const { cli, queue, worker, end } = setup(task);
    await queue.add('hold', {}, { jobId: 'h' });
    await eventually(async () =>
      expect(await cli.json('jobs', 'get', 'emails', 'h')).toMatchObject({
        state: 'active',
        worker: { id: worker.id, pid: process.pid },
        lockEndsIn: expect.stringMatching(/^\d+ ms$/),
        token: expect.stringMatching(/^\d{16}$/),
        checkpoint: { page: 3 },
        repeats: 'do nothing new (idempotent)',
      }),
    );
    const { workers } = await cli.json<{ workers: { id: string; running: number }[] }>('workers', 'list');
    expect(workers).toMatchObject([
      { id: worker.id, queue: 'emails', handlers: { hold: 'idempotent', mail: null } },
    ]);
    // Wherever a job is shown, it is said what repeats of it do.
    await queue.add('mail', {}, { jobId: 'later', delay: 3_600_000 });
    await queue.schedules.upsert('s', { every: '1h', missed: 'skip' }, { name: 'hold', data: {} });
    const { jobs } = await cli.json<{ jobs: { id: string; repeats: string }[] }>('jobs', 'list', 'emails');
    expect(Object.fromEntries(jobs.map(({ id, repeats }) => [id, repeats]))).toEqual({
      later: 'may run twice',
      s: 'do nothing new (idempotent)',
    });
    expect(await cli.text('jobs', 'list', 'emails')).toContain('may run twice');
    expect(await cli.text('schedules', 'describe', 'emails', 's')).toMatch(/^repeats +do nothing new/m);
    const text = await cli.text('workers', 'list', 'emails');
    expect(text).toContain('mail (may run twice)');
    expect(await cli.text('workers', 'list', 'others')).not.toContain(worker.id);
    end();
  });

  test('drain: takes nothing more until it is taken back; an unknown one is NOT_FOUND', async ({ task }) => {
    const { cli, queue, worker } = setup(task);
    await eventually(async () => expect(await cli.text('workers', 'list')).toContain(worker.id));
    await cli.text('workers', 'drain', worker.id, '--note', 'new kernel');
    await eventually(() => worker.isPaused());
    await queue.add('mail', {}, { jobId: 'm' });
    await eventually(async () =>
      expect((await cli.json<{ workers: unknown[] }>('workers', 'list')).workers).toMatchObject([
        { draining: true },
      ]),
    );
    // A fetch that was under way gives it back.
    await eventually(async () => expect(await queue.getJobState('m')).toBe('waiting'));
    expect((await queue.getJob('m'))?.failedReason).toBeUndefined();
    await cli.text('workers', 'drain', worker.id, '--undo');
    await eventually(async () => expect(await queue.getJobState('m')).toBe('failed'));
    expect(await cli.run('workers', 'drain', 'nobody')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('NOT_FOUND'),
    });
  });
});

describe('dead', () => {
  test('list, show, requeue and discard: by id, by filter, as a dry run, and never without a word', async ({
    task,
  }) => {
    const { cli, queue } = setup(task);
    for (const id of ['a', 'b']) await queue.add('mail', { to: id }, { jobId: id });
    await queue.add('nobody', {}, { jobId: 'c' });
    await eventually(async () => expect(await queue.getFailedCount()).toBe(3));
    const { dead } = await cli.json<{ dead: unknown[] }>('dead', 'list', 'emails', '--reason', 'attempts');
    expect(dead).toMatchObject([{ reason: 'attempts' }, { reason: 'attempts' }]);
    const shown = await cli.text('dead', 'show', 'emails', 'a');
    expect(shown).toMatch(/^data +\{"to":"a"\}$/m);
    expect(shown).toContain('ECONNREFUSED, attempt 1');
    expect(shown).toMatch(/^repeats +may run twice$/m);
    const dry = await cli.text('dead', 'requeue', 'emails', '--text', 'econnrefused', '--dry-run');
    expect(dry).toContain('would have requeued 2');
    expect(await queue.getFailedCount()).toBe(3);
    // Nobody sits at a terminal here.
    expect(await cli.run('dead', 'requeue', 'emails', '--all')).toMatchObject({ code: 2 });
    expect(await cli.run('dead', 'requeue', 'emails')).toMatchObject({ code: 2 });
    expect(await cli.run('dead', 'requeue', 'emails', 'a', '--all')).toMatchObject({ code: 2 });
    expect(await cli.text('dead', 'requeue', 'emails', 'a', '--data', '{"to":"ann","n":1.0}')).toContain(
      'requeued a',
    );
    await eventually(async () => expect(await queue.getFailedCount()).toBe(3));
    const { client, base } = queue.backend.shard;
    expect(await client.hget(`${base}emails:a`, 'data')).toBe('{"to":"ann","n":1.0}');
    expect(await cli.text('dead', 'discard', 'emails', '--name', 'mail', '--yes')).toContain('discarded 2');
    expect(await cli.run('dead', 'show', 'emails', 'a')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('NOT_FOUND'),
    });
    expect(await cli.json('dead', 'list', 'emails')).toMatchObject({
      dead: [{ id: 'c', reason: 'unhandled' }],
    });
  });
});
