import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Queue, type QueueOptions } from '../../src/client/queue.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor } from '../support/namespace.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { Spine } from '../support/spine.js';

function queueOf(test: { name: string }, server: RedisServer, options: QueueOptions = {}): Queue {
  const namespace = namespaceFor(test);
  const connection = { host: '127.0.0.1', port: server.port };
  const queue = new Queue('q', { connection, namespace, prefix: namespace, ...options });
  queue.on('error', () => undefined);
  onTestFinished(() => queue.close());
  return queue;
}

/** A master and a replica that follows it. */
async function pair(): Promise<{ master: RedisServer; replica: RedisServer }> {
  const master = await startRedis({ args: ['--repl-diskless-sync-delay', '0'] });
  const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(master.port)] });
  const spine = await Spine.open({ url: master.url, namespace: 'probe' });
  await eventually(async () => (await spine.client.wait(1, 100)) === 1, { timeout: 20_000 });
  return { master, replica };
}

describe('durability, with a real replica', () => {
  test('a job and a schedule are on the replica when their calls resolve', async ({ task }) => {
    const { master, replica } = await pair();
    const queue = queueOf(task, master, { durability: { replicas: 1, timeout: '5s' } });
    await queue.add('send', {}, { jobId: 'a', delay: 3_600_000 });
    await queue.addBulk([{ name: 'send', data: {}, opts: { jobId: 'b' } }]);
    await queue.schedules.upsert('s', { cron: '0 3 * * *', missed: 'skip' }, { name: 'send' });
    const copy = new Redis(replica.url);
    onTestFinished(() => copy.disconnect());
    const keys = await copy.keys(`*${queue.backend.shard.namespace}*:jobs`);
    const stored = (await Promise.all(keys.map((key) => copy.hkeys(key)))).flat();
    expect(stored.sort()).toEqual(['q:a', 'q:s']);
    expect(await copy.exists(`${queue.opts.prefix}:q:b`)).toBe(1);
  });

  test('a frozen replica: NOT_DURABLE, the job stands, a repeat is recognised and asks again', async ({
    task,
  }) => {
    const { master, replica } = await pair();
    const queue = queueOf(task, master, { durability: { replicas: 1, timeout: 200 } });
    await queue.add('send', {}, { jobId: 'before' });
    replica.sigstop();
    onTestFinished(() => replica.sigcont());
    const add = () => queue.add('send', {}, { jobId: 'a', delay: 3_600_000, requestId: 'r-1' });
    await expect(add()).rejects.toMatchObject({
      code: 'NOT_DURABLE',
      retryable: true,
      message: expect.stringContaining('0 of 1'),
    });
    await expect(
      queue.schedules.upsert('s', { cron: '0 3 * * *', missed: 'skip' }, { name: 'send' }),
    ).rejects.toMatchObject({ code: 'NOT_DURABLE' });
    const bulk = ['b', 'c'].map((jobId) => ({ name: 'send', data: {}, opts: { jobId } }));
    await expect(queue.addBulk(bulk)).rejects.toMatchObject({
      code: 'NOT_DURABLE',
      items: [
        { jobId: 'b', error: { code: 'NOT_DURABLE' } },
        { jobId: 'c', error: { code: 'NOT_DURABLE' } },
      ],
    });
    // A call may ask for less than its queue.
    await queue.add('send', {}, { jobId: 'd', durability: { replicas: 0 } });
    // A hundred at once share their time-outs.
    const began = performance.now();
    const many = Array.from({ length: 100 }, (_, i) => queue.add('send', {}, { jobId: `m${i}` }));
    const settled = await Promise.allSettled(many);
    expect(settled.every(({ status }) => status === 'rejected')).toBe(true);
    expect(performance.now() - began).toBeLessThan(10_000);
    expect((await queue.getJob('a'))?.id).toBe('a');
    replica.sigcont();
    const job = await eventually(() => add().catch(() => false as const), { timeout: 20_000 });
    expect(job).toMatchObject({ id: 'a', answer: 'created' });
    expect(await queue.getDelayedCount()).toBe(1);
  });

  test.each([
    [{ replicas: -1 }, 'durability.replicas'],
    [{ replicas: 1, timeout: 0 }, 'durability.timeout'],
    [{ replica: 1 }, 'durability.replica'],
  ])('refused: %o', (durability, field) => {
    const options = { durability } as unknown as QueueOptions;
    expect(() => new Queue('q', options)).toThrow(expect.objectContaining({ field }));
  });
});

test('a Redis that is away: the offline queue is bounded, what it holds is stored when it is back', async ({
  task,
}) => {
  const server = await startRedis();
  const queue = queueOf(task, server, { offlineQueue: 5 });
  await queue.add('send', {}, { jobId: 'first' });
  await server.kill9();
  await eventually(() => queue.backend.shard.client.status !== 'ready');
  const waiting = [0, 1, 2, 3, 4].map((i) => queue.add('send', {}, { jobId: `w${i}` }));
  await expect(queue.add('send', {}, { jobId: 'full' })).rejects.toMatchObject({
    code: 'OFFLINE_FULL',
    field: 'offlineQueue',
    retryable: true,
  });
  await server.restart();
  expect((await Promise.all(waiting)).map((job) => job.answer)).toEqual(Array(5).fill('created'));
  expect(await queue.getJob('full')).toBeUndefined();
  await queue.add('send', {}, { jobId: 'full' });
});

test('a frozen Redis holds as many, and no more', async ({ task }) => {
  const server = await startRedis();
  const queue = queueOf(task, server, { offlineQueue: 3 });
  await queue.add('send', {}, { jobId: 'first' });
  server.sigstop();
  onTestFinished(() => server.sigcont());
  const held: Promise<unknown>[] = [];
  const refused: unknown[] = [];
  await eventually(() => {
    held.push(queue.add('send', {}, { jobId: `h${held.length}` }).catch((error) => refused.push(error)));
    return refused.length > 0;
  });
  expect(refused[0]).toMatchObject({ code: 'OFFLINE_FULL' });
  server.sigcont();
  await Promise.all(held);
});

test('a bulk answers each of its jobs; a failure names those that it hit, the others stand', async ({
  task,
}) => {
  const server = await startRedis();
  const queue = queueOf(task, server);
  await queue.schedules.upsert('taken', { cron: '0 3 * * *', missed: 'skip' }, { name: 'send' });
  const bulk = ['a', 'taken', 'b'].map((jobId) => ({ name: 'send', data: {}, opts: { jobId } }));
  await expect(queue.addBulk(bulk)).rejects.toMatchObject({
    code: 'ID_IN_USE',
    items: [
      { jobId: 'a', answer: 'created' },
      { jobId: 'taken', error: { code: 'ID_IN_USE' } },
      { jobId: 'b', answer: 'created' },
    ],
  });
  const good = bulk.filter(({ opts }) => opts.jobId !== 'taken');
  expect((await queue.addBulk(good)).map((job) => job.answer)).toEqual(['fired', 'fired']);
});
