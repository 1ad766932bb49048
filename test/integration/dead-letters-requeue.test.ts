import { expect, onTestFinished, test } from 'vitest';
import { type Handlers, Queue, type Run, Scheduler, Worker } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';

function open(task: { name: string }, handlers: Handlers) {
  const prefix = namespaceFor(task);
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  const worker = new Worker('q', handlers, { connection: sharedRedisUrl(), prefix, concurrency: 5 });
  worker.on('error', () => undefined);
  onTestFinished(() => worker.close(true));
  const dead = (id: string) =>
    eventually(async () => expect(await queue.getJobState(id)).toBe('failed'), { timeout: 15_000 });
  const done = (id: string) => eventually(async () => expect(await queue.getJobState(id)).toBe('completed'));
  return { prefix, queue, worker, dead, done };
}

test('a tick that is put back is open again: no tick of `overlap: skip` runs beside it', async ({ task }) => {
  let first = '';
  let starts = 0;
  let end: (() => void) | undefined;
  const { prefix, queue } = open(task, {
    tick: async (run: Run) => {
      starts += 1;
      if (first === '') {
        first = run.runId;
        throw new Error('no');
      }
      if (run.runId === first) await new Promise<void>((resolve) => (end = resolve));
    },
  });
  const scheduler = new Scheduler({ redis: sharedRedisUrl(), prefix });
  onTestFinished(() => scheduler.stop());
  await scheduler.start();
  await queue.schedules.upsert('s', { every: '500ms', missed: 'skip', overlap: 'skip' }, { name: 'tick' });
  const schedule = queue.schedules.get('s');
  // It died, and the schedule went on without it.
  await eventually(async () => expect(await queue.getCompletedCount()).toBeGreaterThan(0), {
    timeout: 15_000,
  });
  await queue.dead.requeue(first);
  const openRuns = async () => (await schedule.describe())?.open.map((run) => `s@${run.scheduledFor}`);
  expect(await openRuns()).toContain(first);
  const since = (await schedule.runs()).at(-1)?.scheduledFor ?? 0;
  const later = async () => (await schedule.runs()).filter(({ scheduledFor }) => scheduledFor > since);
  await eventually(async () => expect((await later()).length).toBeGreaterThan(3), { timeout: 15_000 });
  expect((await later()).filter(({ what }) => what !== 'skipped')).toEqual([]);
  await eventually(() => expect(end).toBeDefined());
  const before = starts;
  end?.();
  await eventually(() => expect(starts).toBeGreaterThan(before + 1), { timeout: 15_000 });
  expect(await openRuns()).not.toContain(first);
}, 60_000);

test('a run of a schedule that is gone, or of an earlier one of its id, is put back alone', async ({
  task,
}) => {
  let broken = true;
  const { queue, dead, done } = open(task, {
    tick: () => {
      if (broken) throw new Error('no');
    },
  });
  const definition = { every: '1h', missed: 'skip' } as const;
  const ids: string[] = [];
  for (const id of ['gone', 'anew']) {
    await queue.schedules.upsert(id, definition, { name: 'tick' });
    const { runId } = await queue.schedules.get(id).trigger();
    await dead(runId ?? '');
    await queue.schedules.get(id).delete();
    ids.push(runId ?? '');
  }
  await queue.schedules.upsert('anew', definition, { name: 'tick' });
  broken = false;
  for (const id of ids) await queue.dead.requeue(id);
  expect((await queue.schedules.get('anew').describe())?.open).toEqual([]);
  for (const id of ids) await done(id);
});

test('another payload starts without the checkpoint of the old one, unless that is asked for', async ({
  task,
}) => {
  const seen: unknown[] = [];
  const { queue, dead } = open(task, {
    copy: async (run: Run) => {
      seen.push([run.data, run.lastCheckpoint()]);
      await run.checkpoint({ row: seen.length });
      throw new Error('no');
    },
  });
  await queue.add('copy', 1, { jobId: 'c' });
  await dead('c');
  const again = async (edit: Parameters<typeof queue.dead.requeue>[1]) => {
    const before = seen.length;
    await queue.dead.requeue('c', edit);
    await eventually(() => expect(seen).toHaveLength(before + 1));
    await dead('c');
  };
  await again({});
  await again({ data: 2 });
  await again({ data: 3, keepCheckpoint: true });
  await again({ dataText: '4' });
  await again({ keepCheckpoint: false });
  expect(seen).toEqual([
    [1, undefined],
    [1, { row: 1 }],
    [2, undefined],
    [3, { row: 3 }],
    [4, undefined],
    [4, undefined],
  ]);
  await expect(queue.dead.requeue('c', { keepCheckpoint: 1 as never })).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    field: 'edit.keepCheckpoint',
  });
});

test('show: who had it last, its starts and stalls, how far it came, and its deaths before', async ({
  task,
}) => {
  let deaths = 0;
  const { queue, worker, dead } = open(task, {
    copy: {
      effects: 'fenced',
      handle: async (run: Run) => {
        deaths += 1;
        await run.checkpoint({ row: deaths });
        throw new Error(`${'é'.repeat(400)} ${deaths}`);
      },
    },
  });
  await queue.add('copy', {}, { jobId: 'c' });
  await dead('c');
  await eventually(async () =>
    expect(await queue.dead.get('c')).toMatchObject({
      requeued: 0,
      stalls: 0,
      starts: 1,
      worker: { id: worker.id, pid: process.pid },
      token: expect.stringMatching(/^\d+$/),
      checkpoint: { row: 1 },
      earlier: [],
      repeats: 'are refused by the fencing token (fenced)',
    }),
  );
  for (let death = 2; death <= 8; death++) {
    const { diedAt } = await queue.dead.get('c');
    await queue.dead.requeue('c');
    await eventually(async () => expect((await queue.dead.get('c')).diedAt).toBeGreaterThan(diedAt));
  }
  const { requeued, earlier, checkpoint } = await queue.dead.get('c');
  expect({ requeued, checkpoint }).toEqual({ requeued: 7, checkpoint: { row: 8 } });
  // The last few; their errors cut, but not within a letter.
  expect(earlier).toHaveLength(5);
  expect(earlier[4]).toEqual({
    diedAt: expect.any(Number),
    reason: 'attempts',
    attempts: 1,
    error: 'é'.repeat(150),
  });
  expect(await queue.dead.list()).toMatchObject([{ id: 'c', repeats: expect.stringContaining('fenced') }]);
  // Damage is no reason not to show the rest, nor to keep it dead.
  const { client, base } = queue.backend.shard;
  await client.hset(`${base}q:c`, 'carillon:deaths', '{', 'carillon:worker', '{');
  expect(await queue.dead.get('c')).toMatchObject({ earlier: [], worker: '{' });
  await queue.dead.requeue('c');
  await eventually(async () => expect((await queue.dead.get('c')).earlier).toHaveLength(1));
});
