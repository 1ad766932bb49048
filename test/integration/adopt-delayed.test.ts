import { FlowProducer, type Job, Worker } from 'bullmq';
import { describe, expect, test } from 'vitest';
import { adoptDelayed } from '../../src/client/adopt-delayed.js';
import { Admin, Scheduler } from '../../src/index.js';
import { bullmqPair } from '../support/bullmq-pair.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { sharedRedisUrl } from '../support/namespace.js';

const HOUR = 3_600_000;

/** BullMQ's own queue and ours over the same keys. */
/** What a worker would be given. */
const shown = (job: Job | undefined) =>
  job && {
    id: job.id,
    name: job.name,
    data: job.data,
    timestamp: job.timestamp,
    delay: job.delay,
    priority: job.priority,
    opts: job.opts,
  };

const NOTHING = { moved: 0, renamed: 0, due: 0, ofSchedulers: 0, left: 0, examples: [] };

describe('jobs of BullMQ’s delayed set', () => {
  test('move with id, name, data, options, priority and time; BullMQ keeps nothing of them', async ({
    task,
  }) => {
    const { stock, ours, prefix } = await bullmqPair(task);
    const admin = new Admin({ connection: sharedRedisUrl(), prefix });
    onCleanup('admin', () => admin.close());
    const before = await stock.add(
      'send',
      { n: 1.5, list: [], big: 1_700_000_000_123_456 },
      {
        jobId: 'order-5',
        delay: HOUR,
        attempts: 4,
        backoff: { type: 'exponential', delay: 500 },
        priority: 7,
        removeOnComplete: { age: 60 },
        keepLogs: 3,
      },
    );
    await before.changePriority({ priority: 9 });
    await before.changeDelay(2 * HOUR);
    const stood = shown(await stock.getJob('order-5'));
    const score =
      Number(await (await stock.getBackend().client).zscore(stock.toKey('delayed'), 'order-5')) / 4096;

    expect(await adoptDelayed(ours)).toEqual({ ...NOTHING, moved: 1 });

    expect(await stock.getJob('order-5')).toBeUndefined();
    expect(await stock.getDelayedCount()).toBe(0);
    const found = await ours.getJob('order-5');
    expect(await found?.getState()).toBe('delayed');
    expect(shown(found)).toMatchObject({
      id: 'order-5',
      name: 'send',
      data: before.data,
      timestamp: before.timestamp,
      priority: 9,
      opts: {
        attempts: 4,
        backoff: { type: 'exponential', delay: 500 },
        removeOnComplete: { age: 60 },
        keepLogs: 3,
      },
    });
    expect((found?.timestamp ?? 0) + (found?.delay ?? 0)).toBe(Math.floor(score));
    expect(stood?.data).toEqual(found?.data);
    const { findings } = await admin.doctor();
    expect(findings.filter(({ check }) => check !== 'leader')).toEqual([]);
  });

  test('ids that BullMQ made get a prefix', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    const added = await stock.addBulk(
      Array.from({ length: 3 }, (_, n) => ({ name: 'send', data: { n }, opts: { delay: HOUR + n } })),
    );
    expect(await adoptDelayed(ours)).toEqual({ ...NOTHING, moved: 3, renamed: 3 });
    for (const [n, job] of added.entries()) {
      expect((await ours.getJob(`bull-${job.id}`))?.data).toEqual({ n });
    }
    await stock.add('send', {}, { delay: HOUR });
    expect(await adoptDelayed(ours, { idPrefix: 'old.' })).toEqual({ ...NOTHING, moved: 1, renamed: 1 });
    expect((await ours.getDelayed()).map((job) => job.id)).toContain('old.4');
  });

  test('a dry run moves nothing and tells the same', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    await stock.addBulk(
      Array.from({ length: 450 }, (_, n) => ({ name: 'x', data: n, opts: { delay: HOUR + n } })),
    );
    await stock.add('x', {}, { jobId: 'a:b:lock', delay: HOUR });
    const foreseen = await adoptDelayed(ours, { dryRun: true });
    expect(foreseen).toMatchObject({ moved: 450, renamed: 450, left: 1 });
    expect(await stock.getDelayedCount()).toBe(451);
    expect(await adoptDelayed(ours)).toEqual(foreseen);
    expect(await stock.getDelayedCount()).toBe(1);
    expect((await ours.getJobCounts('delayed')).delayed).toBe(451);
    expect(await adoptDelayed(ours)).toMatchObject({ moved: 0, left: 1 });
  });

  test('they fire, once, in the worker that was there before', async ({ task }) => {
    const { stock, ours, prefix, connection } = await bullmqPair(task);
    const ran: string[] = [];
    await stock.addBulk(
      Array.from({ length: 20 }, (_, n) => ({
        name: 'x',
        data: n,
        opts: { delay: 1500 + n, jobId: `j${n}` },
      })),
    );
    expect(await adoptDelayed(ours)).toMatchObject({ moved: 20 });
    const worker = new Worker('q', async (job) => ran.push(`${job.id} ${job.data}`), { connection, prefix });
    onCleanup('worker', () => worker.close());
    const scheduler = new Scheduler({ redis: sharedRedisUrl(), prefix, allowVolatile: true });
    await scheduler.start();
    await eventually(() => expect(ran).toHaveLength(20)).finally(() => scheduler.stop());
    expect([...ran].sort()).toEqual(Array.from({ length: 20 }, (_, n) => `j${n} ${n}`).sort());
    expect(await ours.getJobCounts('delayed', 'waiting', 'active')).toEqual({
      delayed: 0,
      waiting: 0,
      active: 0,
    });
  });

  test('deduplication goes along with what is left of its window', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    await stock.add('x', {}, { jobId: 'a', delay: HOUR, deduplication: { id: 'd', ttl: HOUR } });
    await stock.add('x', {}, { jobId: 'b', delay: HOUR, deduplication: { id: 'e' } });
    expect(await adoptDelayed(ours)).toMatchObject({ moved: 2 });
    expect(await stock.getDeduplicationJobId('d')).toBeNull();
    const again = await ours.add('x', {}, { jobId: 'c', delay: HOUR, deduplication: { id: 'd', ttl: HOUR } });
    expect([again.answer, again.id]).toEqual(['existing', 'a']);
    expect((await ours.add('x', {}, { delay: HOUR, deduplication: { id: 'e' } })).id).toBe('b');
    const { shard } = ours.backend;
    const entry = await shard.client.hgetBuffer(shard.keys.dedup('q'), 'd');
    const left = (entry?.readUIntBE(7, 6) ?? 0) - Date.now();
    expect(left).toBeGreaterThan(HOUR - 20_000);
    expect(left).toBeLessThanOrEqual(HOUR);
  });
});

describe('what stays in BullMQ', () => {
  test('jobs that wait for a retry, hold logs or progress, belong to flows or Job Schedulers', async ({
    task,
  }) => {
    const { stock, ours, prefix, connection } = await bullmqPair(task);
    await stock.add('x', {}, { jobId: 'retried', attempts: 2, backoff: { type: 'fixed', delay: HOUR } });
    const worker = new Worker(
      'q',
      async () => {
        throw new Error('no');
      },
      { connection, prefix },
    );
    onCleanup('worker', () => worker.close());
    await eventually(async () => (await stock.getJobState('retried')) === 'delayed');
    await worker.close();
    await (await stock.add('x', {}, { jobId: 'logged', delay: HOUR })).log('hello');
    await (await stock.add('x', {}, { jobId: 'progressed', delay: HOUR })).updateProgress(50);
    await stock.upsertJobScheduler('tick', { every: HOUR, startDate: new Date(Date.now() + HOUR) }, {});
    const flows = new FlowProducer({ connection, prefix });
    onCleanup('flows', () => flows.close());
    await flows.add({
      name: 'parent',
      queueName: 'q',
      children: [{ name: 'child', queueName: 'q', opts: { delay: HOUR, jobId: 'child' } }],
    });

    const report = await adoptDelayed(ours);
    expect(report).toMatchObject({ moved: 0, ofSchedulers: 1, left: 4 });
    expect(Object.fromEntries(report.examples.map(({ id, reason }) => [id, reason]))).toEqual({
      retried: expect.stringContaining('tried'),
      logged: expect.stringContaining('logs'),
      progressed: expect.stringContaining('progress'),
      child: expect.stringContaining('flow'),
    });
    expect(await stock.getDelayedCount()).toBe(5);
  });

  test('an id that the timers hold already, and an option that they cannot keep', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    await ours.add('x', { mine: true }, { jobId: 'same', delay: HOUR });
    await stock.add('x', { theirs: true }, { jobId: 'same', delay: HOUR });
    await stock.add(
      'x',
      {},
      { jobId: 'kept', delay: HOUR, deduplication: { id: 'k', keepLastIfActive: true } },
    );
    const { examples, moved } = await adoptDelayed(ours);
    expect(moved).toBe(0);
    expect(examples.map(({ id }) => id).sort()).toEqual(['kept', 'same']);
    expect(examples.find(({ id }) => id === 'kept')?.reason).toContain('keepLastIfActive');
    expect((await ours.getJob('same'))?.data).toEqual({ mine: true });
    expect((await stock.getJob('same'))?.data).toEqual({ theirs: true });
  });

  test('a job that is due is left to BullMQ, and one without a hash is told of', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    const client = (await stock.getBackend().client) as unknown as {
      zadd(key: string, score: number, member: string): Promise<number>;
    };
    await (await stock.add('x', {}, { jobId: 'due', delay: HOUR })).updateData({});
    await client.zadd(stock.toKey('delayed'), (Date.now() - 5000) * 4096, 'due');
    await client.zadd(stock.toKey('delayed'), (Date.now() + HOUR) * 4096, 'ghost');
    expect(await adoptDelayed(ours)).toEqual({
      ...NOTHING,
      due: 1,
      left: 1,
      examples: [{ id: 'ghost', reason: 'it has no data' }],
    });
  });
});

test('a key of the wrong type keeps its job where it is, and no other', async ({ task }) => {
  const { stock, ours } = await bullmqPair(task);
  const { client } = ours.backend.shard;
  await stock.add('x', {}, { jobId: 'a', delay: HOUR, deduplication: { id: 'd' } });
  await stock.add('x', {}, { jobId: 'b', delay: HOUR });
  await stock.add('x', {}, { jobId: 'c', delay: HOUR });
  await client.del(stock.toKey('de:d'));
  await client.lpush(stock.toKey('de:d'), 'x');
  await client.del(stock.toKey('b'));
  await client.set(stock.toKey('b'), 'x');
  const reason = 'a key that BullMQ keeps of it has the wrong type';
  const { moved, examples } = await adoptDelayed(ours);
  expect(moved).toBe(1);
  expect([...examples].sort((x, y) => (x.id < y.id ? -1 : 1))).toEqual([
    { id: 'a', reason },
    { id: 'b', reason },
  ]);
  expect(await stock.getDelayedCount()).toBe(2);
  expect(await ours.backend.pending.counts()).toMatchObject({ scheduled: 1 });
});

test('a delayed set of another type is a broken queue, and nothing is written', async ({ task }) => {
  const { ours } = await bullmqPair(task);
  const { shard } = ours.backend;
  await shard.client.set(ours.toKey('delayed'), 'x');
  await expect(adoptDelayed(ours)).rejects.toMatchObject({
    code: 'QUEUE_BROKEN',
    message: expect.stringContaining('delayed is a string'),
  });
});
