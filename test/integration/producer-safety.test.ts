import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Queue, type QueueOptions } from '../../src/client/queue.js';
import { Outbox } from '../../src/outbox/outbox.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor } from '../support/namespace.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';
import { replicaPair } from '../support/replica-pair.js';

function queueOf(test: { name: string }, server: RedisServer, options: QueueOptions = {}): Queue {
  const namespace = namespaceFor(test);
  const connection = { host: '127.0.0.1', port: server.port };
  const queue = new Queue('q', { connection, namespace, prefix: namespace, ...options });
  queue.on('error', () => undefined);
  onTestFinished(() => queue.close());
  return queue;
}

describe('durability, with a real replica', () => {
  test('a job and a schedule are on the replica when their calls resolve', async ({ task }) => {
    const { master, replica } = await replicaPair();
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
    const { master, replica } = await replicaPair();
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
    const nodes = [
      { queue: 'g', name: 'x', opts: { jobId: 'g1' } },
      { queue: 'g', name: 'x', opts: { jobId: 'g2', after: ['g1'] } },
    ];
    await expect(queue.addGraph(nodes)).rejects.toMatchObject({ code: 'NOT_DURABLE' });
    expect((await queue.addGraph(nodes, { durability: { replicas: 0 } })).length).toBe(2);
    const plain = queueOf(task, master);
    const graph = plain.addGraph(nodes, { durability: { replicas: 1, timeout: 100 } });
    await expect(graph).rejects.toMatchObject({ code: 'NOT_DURABLE' });
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

describe('durability where it means nothing is refused, with the place where it does', () => {
  const durability = { replicas: 1 };
  const cases: Record<string, [(queue: Queue) => unknown, string, string]> = {
    'a job of a bulk': [
      (queue) => queue.addBulk([{ name: 'x', data: {}, opts: { durability } }]),
      'jobs[0].opts.durability',
      'addBulk(jobs, { durability })',
    ],
    'a node': [
      (queue) => queue.addGraph([{ name: 'x', opts: { durability } }]),
      'nodes[0].opts.durability',
      'addGraph(nodes, { durability })',
    ],
    'a template': [
      (queue) => queue.schedules.upsert('s', { cron: '0 3 * * *', missed: 'skip' }, { opts: { durability } }),
      'template.opts.durability',
      'new Queue(name, { durability })',
    ],
    'a template of BullMQ’s form': [
      (queue) => queue.upsertJobScheduler('s', { every: 60_000 }, { opts: { durability } }),
      'template.opts.durability',
      'new Queue(name, { durability })',
    ],
    'a change of a job': [
      (queue) => queue.updateJob('a', { opts: { durability } }),
      'opts.durability',
      'Leave it out',
    ],
    defaults: [
      () => new Queue('q', { defaultJobOptions: { durability } }),
      'defaultJobOptions.durability',
      'Give it to that job',
    ],
    'a row of the outbox': [() => new Outbox().row('q', 'x', {}, { durability }), 'durability', '--replicas'],
  };
  test.each(Object.entries(cases))('%s', async (_what, [call, field, todo]) => {
    const queue = new Queue('q', { connection: { lazyConnect: true, port: 1 } });
    queue.on('error', () => undefined);
    onTestFinished(() => queue.close());
    await expect((async () => call(queue))()).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      field,
      todo: expect.stringContaining(todo),
    });
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

describe('a queue that is not connected yet', () => {
  const bulkOf = (count: number) =>
    Array.from({ length: count }, (_, i) => ({
      name: 'x',
      data: {},
      opts: { jobId: `j${i}`, delay: 3_600_000 },
    }));

  test('waits for a Redis that is well: a bulk above the limit, and as many calls', async ({ task }) => {
    const server = await startRedis();
    const bulk = queueOf(task, server, { offlineQueue: 10 }).addBulk(bulkOf(50));
    expect((await bulk).length).toBe(50);
    const queue = queueOf(task, server, { offlineQueue: 10 });
    const calls = Array.from({ length: 50 }, (_, i) =>
      queue.add('x', {}, { jobId: `c${i}`, delay: 3_600_000 }),
    );
    expect((await Promise.all(calls)).every((job) => job.answer === 'created')).toBe(true);
  });

  test('judges once the first connection has failed', async ({ task }) => {
    const server = await startRedis();
    await server.kill9();
    const queue = queueOf(task, server, { offlineQueue: 2 });
    await expect(queue.addBulk(bulkOf(3))).rejects.toMatchObject({
      code: 'OFFLINE_FULL',
      message: expect.stringContaining('3 jobs in one call'),
    });
    const held = queue.addBulk(bulkOf(2));
    held.catch(() => undefined);
    await expect(queue.add('x', {}, {})).rejects.toMatchObject({
      code: 'OFFLINE_FULL',
      message: expect.stringContaining('2 jobs wait'),
    });
    await server.restart();
    expect((await held).length).toBe(2);
  });

  test('judges when nobody answers the first connection', async ({ task }) => {
    const server = await startRedis();
    server.sigstop();
    onTestFinished(() => server.sigcont());
    const queue = queueOf(task, server, { offlineQueue: 2 });
    await expect(queue.addBulk(bulkOf(3))).rejects.toMatchObject({ code: 'OFFLINE_FULL' });
  });
});

test('graphs and schedules wait within the same bound', async ({ task }) => {
  const server = await startRedis();
  await server.kill9();
  const queue = queueOf(task, server, { offlineQueue: 3 });
  const nodes = ['a', 'b'].map((jobId) => ({ name: 'x', opts: { jobId } }));
  const upsert = () => queue.schedules.upsert('s', { cron: '0 3 * * *', missed: 'skip' }, { name: 'x' });
  const held: Promise<unknown>[] = [queue.addGraph(nodes), upsert()];
  for (const call of held) call.catch(() => undefined);
  await expect(queue.addGraph(nodes)).rejects.toMatchObject({ code: 'OFFLINE_FULL' });
  await expect(upsert()).rejects.toMatchObject({ code: 'OFFLINE_FULL' });
  const bullmqs = queue.upsertJobScheduler('t', { every: 60_000 }, { name: 'x' });
  await expect(bullmqs).rejects.toMatchObject({ code: 'OFFLINE_FULL' });
  await server.restart();
  await Promise.all(held);
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
