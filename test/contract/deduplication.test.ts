import { type Queue as BullQueue, Worker } from 'bullmq';
import { expect, test } from 'vitest';
import type { JobOptions } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { answersOf, connection, eventsOf, type Twins, twins } from './twins.js';

const HOUR = 3_600_000;

/** Adds `jobId` and gives the id of the job that stands. */
async function add(
  queue: BullQueue,
  jobId: string,
  deduplication: JobOptions['deduplication'],
  delay = HOUR,
) {
  return (await queue.add('send', { n: jobId }, { jobId, delay, deduplication })).id;
}

/** What stands afterwards: the delayed jobs in order, and whose the deduplication is. */
async function standing(queue: BullQueue, id = 'd') {
  const delayed = await queue.getDelayed();
  return { delayed: delayed.map((job) => job.id), owner: await queue.getDeduplicationJobId(id) };
}

/** Milliseconds left of a window, as BullMQ's key or our entry has it. */
async function windowLeft({ stock, ours }: Twins): Promise<{ stock: number; ours: number }> {
  const client = await stock.getBackend().client;
  const { shard } = ours.backend;
  const entry = await shard.client.hgetBuffer(shard.keys.dedup('q'), 'd');
  return {
    stock: await (client as unknown as { pttl(key: string): Promise<number> }).pttl(stock.toKey('de:d')),
    ours: (entry?.readUIntBE(7, 6) ?? 0) - Date.now(),
  };
}

const scripts: Record<string, (queue: BullQueue) => Promise<unknown>> = {
  'simple: the first stands until it is gone': async (queue) => [
    await add(queue, 'a', { id: 'd' }),
    await add(queue, 'b', { id: 'd' }),
    await add(queue, 'c', { id: 'other' }),
    await standing(queue),
    await queue.getJobState('b'),
    await queue.remove('a'),
    await standing(queue),
    await add(queue, 'e', { id: 'd' }),
    await standing(queue),
  ],
  'throttle: one job a window, also when the first is gone from it': async (queue) => {
    const first = await add(queue, 'a', { id: 'd', ttl: 300 });
    const second = await add(queue, 'b', { id: 'd', ttl: 300 });
    await eventually(async () => (await queue.getDeduplicationJobId('d')) === null);
    return [first, second, await add(queue, 'c', { id: 'd', ttl: HOUR }), await standing(queue)];
  },
  'debounce: the last of a burst stands': async (queue) => [
    await add(queue, 'a', { id: 'd', ttl: HOUR, extend: true, replace: true }),
    await add(queue, 'b', { id: 'd', ttl: HOUR, extend: true, replace: true }),
    await standing(queue),
    await add(queue, 'c', { id: 'd', ttl: HOUR, extend: true, replace: true }, 2 * HOUR),
    await standing(queue),
    (await queue.getJob('c'))?.data,
    await queue.getJobState('a'),
  ],
  'replace without a window': async (queue) => [
    await add(queue, 'a', { id: 'd', replace: true }),
    await add(queue, 'b', { id: 'd', replace: true }),
    await standing(queue),
    await add(queue, 'c', { id: 'd' }),
    await standing(queue),
  ],
  'reschedule: the first stays, at the time of the last': async (queue) => [
    await add(queue, 'a', { id: 'd', reschedule: true }),
    await add(queue, 'x', undefined, 1.5 * HOUR),
    await add(queue, 'b', { id: 'd', reschedule: true }, 2 * HOUR),
    await standing(queue),
  ],
  'a key removed by hand': async (queue) => [
    await add(queue, 'a', { id: 'd' }),
    await queue.removeDeduplicationKey('d'),
    await queue.removeDeduplicationKey('d'),
    await add(queue, 'b', { id: 'd' }),
    await standing(queue),
    await (await queue.getJob('a'))?.removeDeduplicationKey(),
    await (await queue.getJob('b'))?.removeDeduplicationKey(),
    await standing(queue),
  ],
  'a job that waits for a worker: nothing is replaced': async (queue) => [
    await add(queue, 'a', { id: 'd', replace: true }, 0),
    await add(queue, 'b', { id: 'd', replace: true }, 0),
    await add(queue, 'c', { id: 'd', replace: true }),
    await standing(queue),
    await queue.getJobCounts('waiting', 'delayed'),
  ],
  'handed over while it stands': async (queue) => [
    await add(queue, 'a', { id: 'd', ttl: HOUR }),
    await (await queue.getJob('a'))?.promote(),
    await add(queue, 'b', { id: 'd', ttl: HOUR }),
    await standing(queue),
    await queue.remove('a'),
    await add(queue, 'c', { id: 'd', ttl: HOUR }),
    await standing(queue),
  ],
  'a due job after a delayed one, replacing it': async (queue) => [
    await add(queue, 'a', { id: 'd', replace: true }),
    await add(queue, 'b', { id: 'd', replace: true }, 0),
    await standing(queue),
    await queue.getJobCounts('waiting', 'delayed'),
    await add(queue, 'c', { id: 'd' }),
  ],
  'the same jobId again is no deduplication': async (queue) => [
    await add(queue, 'a', { id: 'd', replace: true }),
    await add(queue, 'a', { id: 'd', replace: true }),
    await standing(queue),
  ],
  'a bulk, within itself': async (queue) => {
    const jobs = ['a', 'b', 'c'].map((jobId, index) => ({
      name: 'send',
      data: {},
      opts: { jobId, delay: HOUR + index, deduplication: { id: jobId === 'c' ? 'other' : 'd' } },
    }));
    const added = await queue.addBulk(jobs);
    return [added.map((job) => job.id), await standing(queue)];
  },
  'ids that are generated': async (queue) => {
    const opts = { delay: HOUR, deduplication: { id: 'd' } };
    const first = await queue.add('send', {}, opts);
    const second = await queue.add('send', {}, opts);
    return [first.id === second.id, first.deduplicationId, (await queue.getDelayed()).length];
  },
  'a drained queue deduplicates nothing': async (queue) => [
    await add(queue, 'a', { id: 'd' }),
    await queue.drain(true),
    await standing(queue),
    await add(queue, 'b', { id: 'd' }),
  ],
};

test.each(Object.entries(scripts))('as BullMQ: %s', async (name, script) => {
  const pair = await twins({ name });
  const { stock, ours } = await answersOf(pair, script);
  expect(ours).toEqual(stock);
  expect(stock).toBeTypeOf('object');
});

test.each([
  ['kept by a replacement', { ttl: 2 * HOUR, replace: true }, HOUR],
  ['begun again by extend', { ttl: 2 * HOUR, replace: true, extend: true }, 2 * HOUR],
  ['begun again by a duplicate with extend', { ttl: 2 * HOUR, extend: true }, 2 * HOUR],
  ['kept by a plain duplicate', { ttl: 2 * HOUR }, HOUR],
])('as BullMQ: the window is %s', async (_what, second, expected) => {
  const pair = await twins({ name: 'window' });
  for (const queue of [pair.stock, pair.ours]) {
    await add(queue, 'a', { id: 'd', ttl: HOUR });
    await add(queue, 'b', { id: 'd', ...second });
  }
  const left = await windowLeft(pair);
  expect(left.stock).toBeGreaterThan(expected - 60_000);
  expect(left.stock).toBeLessThanOrEqual(expected);
  expect(Math.abs(left.ours - left.stock)).toBeLessThan(5000);
});

test('as BullMQ: what QueueEvents tells of duplicates', async ({ task }) => {
  const pair = await twins(task);
  const logs = { stock: await eventsOf(pair.stock), ours: await eventsOf(pair.ours) };
  await answersOf(pair, async (queue) => {
    await add(queue, 'a', { id: 'd' });
    await add(queue, 'b', { id: 'd' });
    await add(queue, 'c', { id: 'd', replace: true });
    await add(queue, 'e', { id: 'd', replace: true });
    await queue.add('last', {}, { jobId: 'last' });
  });
  const told = async (log: typeof logs.stock) => {
    await log.waitFor('waiting', 'last');
    return log.seen.filter(({ event }) => event === 'deduplicated' || event === 'removed');
  };
  const stock = await told(logs.stock);
  expect(await told(logs.ours)).toEqual(stock);
  expect(stock.map(({ event }) => event)).toEqual([
    'deduplicated',
    'removed',
    'deduplicated',
    'removed',
    'deduplicated',
  ]);
});

test('as BullMQ: simple deduplication ends when the job is done, a window goes on', async ({ task }) => {
  const pair = await twins(task);
  for (const queue of [pair.stock, pair.ours]) {
    const worker = new Worker('q', async () => undefined, {
      connection: connection(),
      prefix: queue.opts.prefix,
    });
    onCleanup('worker', () => worker.close());
    await worker.waitUntilReady();
  }
  const { stock, ours } = await answersOf(pair, async (queue) => {
    await add(queue, 'a', { id: 'simple' }, 0);
    await add(queue, 'b', { id: 'window', ttl: HOUR }, 0);
    await eventually(async () => (await queue.getCompletedCount()) === 2);
    return [await add(queue, 'c', { id: 'simple' }), await add(queue, 'e', { id: 'window', ttl: HOUR })];
  });
  expect(ours).toEqual(stock);
  expect(ours).toEqual(['c', 'b']);
});
