import { fileURLToPath } from 'node:url';
import { Worker } from 'bullmq';
import { expect, onTestFinished, test } from 'vitest';
import { isCarillonError, Queue, Scheduler } from '../../src/index.js';
import { takeMark } from '../../src/queue/job-json.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { spawnNode } from '../support/node-process.js';

const HOUR = 3_600_000;
const CHILD = fileURLToPath(new URL('../fixtures/reschedule.fixture.ts', import.meta.url));

function open(task: { name: string }): { queue: Queue; prefix: string } {
  const prefix = namespaceFor(task);
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  return { queue, prefix };
}

test('B58: a new delay counts from now, and the job does not fire at once', async ({ task }) => {
  const { queue } = open(task);
  await queue.add('x', {}, { jobId: 'a', delay: 300_000 });
  const [seconds, micros] = (await queue.backend.shard.client.time()) as unknown as [number, number];
  const before = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  await queue.changeDelay('a', 100_000_000);
  const moved = (await queue.getJob('a'))?.scheduledFor ?? 0;
  expect(moved - before).toBeGreaterThanOrEqual(100_000_000);
  expect(moved - before).toBeLessThan(100_000_000 + 10_000);
  expect(await queue.getJobCounts('delayed', 'waiting')).toEqual({ delayed: 1, waiting: 0 });
});

test('B58: rescheduled while it becomes due, each of 1,000 runs once, at the time that the answer says', async ({
  task,
}) => {
  const { queue, prefix } = open(task);
  const scheduler = new Scheduler({ redis: sharedRedisUrl(), prefix });
  onTestFinished(() => scheduler.stop());
  await scheduler.start();
  /** Each run's scheduled time, and when it started. */
  const runs = new Map<string, { at: number; started: number }[]>();
  const { hostname: host, port } = new URL(sharedRedisUrl());
  const worker = new Worker(
    'q',
    async ({ id = '', opts }) => {
      const at = takeMark({ ...opts }) ?? 0;
      runs.set(id, [...(runs.get(id) ?? []), { at, started: Date.now() }]);
    },
    { connection: { host, port: Number(port), maxRetriesPerRequest: null }, prefix, concurrency: 200 },
  );
  onCleanup('worker', () => worker.close());
  await worker.waitUntilReady();

  const total = 1000;
  const ids = Array.from({ length: total }, (_, n) => `j${n}`);
  const due = Date.now() + 1500;
  await queue.addBulk(ids.map((jobId) => ({ name: 'x', data: {}, opts: { jobId, at: due } })));
  // The reschedules begin 20 ms before the time and go on past it: some meet the job, some come too late.
  await eventually(() => Date.now() >= due - 20, { every: 1 });
  const moves = await Promise.all(
    ids.map(async (id) => {
      const asked = Date.now();
      try {
        return { id, asked, moved: (await queue.changeDelay(id, 700)).where };
      } catch (error) {
        expect(isCarillonError(error, 'CONFLICT')).toBe(true);
        return { id, asked, moved: undefined };
      }
    }),
  );
  await eventually(() => runs.size === total, { timeout: 20_000 });
  await eventually(async () => {
    expect(await queue.getJobCounts('delayed', 'waiting', 'active')).toEqual({
      delayed: 0,
      waiting: 0,
      active: 0,
    });
  });
  const wrong = moves.filter(({ id, asked, moved }) => {
    const [run, ...more] = runs.get(id) ?? [];
    if (run === undefined || more.length > 0 || run.started < run.at) return true;
    if (moved === 'timers') return run.at <= due;
    // Taken out of its queue again it keeps its scheduled time, and starts at the new one. (BullMQ counts in whole ms.)
    if (moved === 'queue') return run.at !== due || run.started < asked + 699;
    return run.at !== due;
  });
  expect(wrong).toEqual([]);
  expect(moves.some(({ moved }) => moved === 'timers')).toBe(true);
});

test('B58: killed while it reschedules, each job is at an old or a new time, once', async ({ task }) => {
  const { queue, prefix } = open(task);
  const total = 300;
  const ids = Array.from({ length: total }, (_, n) => `j${n}`);
  await queue.addBulk(ids.map((jobId) => ({ name: 'x', data: {}, opts: { jobId, delay: HOUR / 2 } })));
  for (const _round of [1, 2, 3]) {
    const child = spawnNode(CHILD, [], { REDIS_URL: sharedRedisUrl(), PREFIX: prefix, JOBS: `${total}` });
    await child.waitForLine('ready');
    const first = (await queue.getJob('j0'))?.scheduledFor;
    await eventually(async () => (await queue.getJob('j0'))?.scheduledFor !== first, { every: 1 });
    await child.kill9();
    expect((await queue.getRanges(['delayed'], 0, -1, true)).sort()).toEqual([...ids].sort());
    expect(await queue.getDelayedCount()).toBe(total);
    const jobs = await Promise.all(ids.map((id) => queue.getJob(id)));
    expect(jobs.filter((job) => job === undefined || job.scheduledFor < Date.now())).toEqual([]);
  }
});
