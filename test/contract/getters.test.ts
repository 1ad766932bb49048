import type { Queue as BullQueue } from 'bullmq';
import { expect, test } from 'vitest';
import { answersOf, connection, twins } from './twins.js';

const HOUR = 3_600_000;

/** Six delayed jobs in another order than that of their times, two waiting ones, a prioritized one. */
async function fill(queue: BullQueue): Promise<void> {
  const delays = [5, 1, 3, 2, 6, 4];
  await queue.addBulk(
    delays.map((n) => ({ name: 'later', data: { n }, opts: { jobId: `d${n}`, delay: n * HOUR } })),
  );
  await queue.add('now', {}, { jobId: 'w1' });
  await queue.add('now', {}, { jobId: 'w2' });
  await queue.add('now', {}, { jobId: 'p1', priority: 3 });
}

const ids = (jobs: { id?: string | undefined }[]) => jobs.map((job) => job.id);

const getters: Record<string, (queue: BullQueue) => Promise<unknown>> = {
  count: (queue) => queue.count(),
  getJobCounts: (queue) => queue.getJobCounts(),
  'getJobCounts of some': (queue) => queue.getJobCounts('waiting', 'delayed', 'prioritized'),
  getJobCountByTypes: (queue) => queue.getJobCountByTypes('delayed', 'waiting'),
  getDelayedCount: (queue) => queue.getDelayedCount(),
  'getDelayedCount before a time': (queue) => queue.getDelayedCount(Date.now() + 3.5 * HOUR),
  'getDelayedCount before all': (queue) => queue.getDelayedCount(Date.now()),
  getWaitingCount: (queue) => queue.getWaitingCount(),
  getPrioritizedCount: (queue) => queue.getPrioritizedCount(),
  getCountsPerPriority: (queue) => queue.getCountsPerPriority([0, 3]),
  getDelayed: async (queue) => ids(await queue.getDelayed()),
  'getDelayed, a window': async (queue) => ids(await queue.getDelayed(1, 3)),
  'getDelayed, past the end': async (queue) => ids(await queue.getDelayed(4, 20)),
  'getDelayed, beyond': async (queue) => ids(await queue.getDelayed(6, 9)),
  'getDelayed, from the end': async (queue) => ids(await queue.getDelayed(-2, -1)),
  'getDelayed, up to before the end': async (queue) => ids(await queue.getDelayed(0, -3)),
  'getJobs, latest first': async (queue) => ids(await queue.getJobs(['delayed'], 0, 2)),
  'getJobs, of several types': async (queue) => ids(await queue.getJobs(['delayed', 'waiting'], 0, -1, true)),
  'getJobs, of several types, latest first': async (queue) =>
    ids(await queue.getJobs(['waiting', 'delayed'])),
  'getJobs of all types': async (queue) => ids(await queue.getJobs()).sort(),
  getRanges: (queue) => queue.getRanges(['delayed', 'wait'], 0, -1, true),
  'getRanges of other types': (queue) => queue.getRanges(['wait'], 0, -1, true),
  getWaiting: async (queue) => ids(await queue.getWaiting()),
  getJobState: (queue) => Promise.all(['d1', 'w1', 'p1', 'none'].map((id) => queue.getJobState(id))),
  'getJob of none': async (queue) => (await queue.getJob('none')) ?? 'none',
  getJobLogs: (queue) => queue.getJobLogs('d1'),
  getMetrics: (queue) => queue.getMetrics('completed'),
  exportPrometheusMetrics: (queue) => queue.exportPrometheusMetrics({ env: 'test' }),
  isPaused: (queue) => queue.isPaused(),
  isMaxed: (queue) => queue.isMaxed(),
};

test.each(Object.entries(getters))('as BullMQ: %s', async (name, getter) => {
  const pair = await twins({ name });
  await fill(pair.stock);
  await fill(pair.ours);
  const { stock, ours } = await answersOf(pair, getter);
  expect(ours).toEqual(stock);
  expect(JSON.stringify(stock)).not.toContain('threw');
});

test('a pending job reads as a delayed job of BullMQ', async ({ task }) => {
  const pair = await twins(task, { defaultJobOptions: { removeOnComplete: 5 } });
  const { stock, ours } = await answersOf(pair, async (queue) => {
    const opts = {
      jobId: 'a',
      delay: HOUR,
      attempts: 3,
      backoff: 500,
      priority: 7,
      keepLogs: 4,
      deduplication: { id: 'd', ttl: 2 * HOUR },
      telemetry: { metadata: 'ctx', omitContext: true },
    };
    const added = await queue.add('send', { n: [1, { m: null }] }, opts);
    const read = await queue.getJob('a');
    return [added, read].map((job) => {
      const { queueQualifiedName: _, toKey: __, ...json } = (job?.toJSON() ?? {}) as Record<string, unknown>;
      return { ...json, timestamp: typeof json.timestamp, queueName: job?.queueName };
    });
  });
  const [added, read] = ours as Record<string, unknown>[];
  const [stockAdded, stockRead] = stock as Record<string, unknown>[];
  expect(added).toEqual({ ...stockAdded, answer: 'created', scheduledFor: expect.any(Number) });
  expect(read).toEqual({ ...stockRead, answer: undefined, scheduledFor: expect.any(Number) });
});

test('a job handed over reads as BullMQ’s, with the time it was due at', async ({ task }) => {
  const { ours } = await twins(task);
  const at = Date.now() + HOUR;
  await ours.add('send', {}, { jobId: 'a', at });
  await (await ours.getJob('a'))?.promote();
  const job = await ours.getJob('a');
  expect(job).toMatchObject({ id: 'a', delay: 0, scheduledFor: at, opts: { attempts: 0 } });
  expect(job?.opts).not.toHaveProperty('carillon');
  const again = await ours.add('send', job?.data, { ...job?.opts, jobId: 'b' });
  expect(again).toMatchObject({ id: 'b', answer: 'created' });
});

test('lists hold BullMQ’s own delayed jobs too, in one order of time', async ({ task }) => {
  const { ours } = await twins(task);
  const { Queue } = await import('bullmq');
  const plain = new Queue('q', { connection: connection(), prefix: ours.opts.prefix });
  await plain.add('retry', {}, { jobId: 'b2', delay: 2 * HOUR });
  await plain.add('retry', {}, { jobId: 'b4', delay: 4 * HOUR });
  await plain.close();
  await ours.addBulk(
    [1, 3, 5].map((n) => ({ name: 'x', data: {}, opts: { jobId: `t${n}`, delay: n * HOUR } })),
  );
  expect(ids(await ours.getDelayed())).toEqual(['t1', 'b2', 't3', 'b4', 't5']);
  expect(ids(await ours.getDelayed(1, 2))).toEqual(['b2', 't3']);
  expect(ids(await ours.getJobs(['delayed'], 0, 1))).toEqual(['t5', 'b4']);
  expect(await ours.getDelayedCount()).toBe(5);
  expect(await ours.getDelayedCount(Date.now() + 3.5 * HOUR)).toBe(3);
});

test('lists hold paused and parked jobs, and no schedules', async ({ task }) => {
  const { ours } = await twins(task);
  await ours.addBulk(
    [1, 2, 3].map((n) => ({ name: 'x', data: {}, opts: { jobId: `t${n}`, delay: n * HOUR } })),
  );
  await ours.pauseJob('t2', { note: 'wait' });
  // Its next tick comes before all of them.
  await ours.schedules.upsert('s', { cron: '* * * * *', missed: 'skip' });
  expect(await ours.getRanges(['delayed'], 0, 0, true)).toEqual(['t1']);
  expect(await ours.getDelayedCount(Date.now() + HOUR / 2)).toBe(0);
  expect(ids(await ours.getDelayed())).toEqual(['t1', 't2', 't3']);
  expect(ids(await ours.getDelayed(0, 1))).toEqual(['t1', 't2']);
  expect(await ours.getDelayedCount()).toBe(3);
  expect(await ours.getJobState('t2')).toBe('delayed');
  expect(await ours.getJob('s')).toBeUndefined();
  expect(await ours.getJobState('s')).toBe('unknown');
});

test('lists are read in pages: thousands of jobs, in order, none missing', async ({ task }) => {
  const { ours } = await twins(task);
  const total = 5000;
  const start = Date.now() + HOUR;
  const times = Array.from({ length: total }, (_, i) => (i * 7919) % total);
  await ours.addBulk(times.map((n) => ({ name: 'x', data: {}, opts: { jobId: `t${n}`, at: start + n } })));
  const first = await ours.getRanges(['delayed'], 0, 1999, true);
  const rest = await ours.getRanges(['delayed'], 2000, -1, true);
  expect([...first, ...rest]).toEqual(Array.from({ length: total }, (_, n) => `t${n}`));
  expect(await ours.getRanges(['delayed'], 10, 12, false)).toEqual(['t4989', 't4988', 't4987']);
  expect(await ours.getDelayedCount(start + 1234)).toBe(1234);
});
