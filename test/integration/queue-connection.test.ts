import { Cluster, Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { Queue } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { freePort } from '../support/free-port.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';

const HOUR = 3_600_000;

function shared(): { host: string; port: number } {
  const { hostname, port } = new URL(sharedRedisUrl());
  return { host: hostname, port: Number(port) };
}

test('a queue uses one connection, closes it, and leaves a given client open', async ({ task }) => {
  const prefix = namespaceFor(task);
  const own = new Queue('own', { connection: { ...shared(), connectionName: prefix }, prefix });
  await own.add('x', {}, { delay: HOUR });
  await own.schedules.upsert('s', { cron: '0 0 1 1 *', missed: 'skip' });
  const client = new Redis(sharedRedisUrl());
  onCleanup('client', () => client.disconnect());
  const connections = async () =>
    String(await client.client('LIST'))
      .split('\n')
      .filter((line) => line.includes(`name=${prefix} `)).length;
  expect(await connections()).toBe(1);
  await own.close();
  expect(await connections()).toBe(0);
  const given = new Queue('given', { connection: client, prefix });
  await given.add('x', {}, { delay: HOUR });
  await given.close();
  await given.close();
  expect(client.status).toBe('ready');
  expect(await client.ping()).toBe('PONG');
});

test('a closed queue says that it is closed', async ({ task }) => {
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix: namespaceFor(task) });
  await queue.add('x', {});
  await queue.close();
  await expect(queue.add('x', {})).rejects.toMatchObject({ code: 'CLOSED' });
  await expect(queue.addBulk([{ name: 'x', data: {} }])).rejects.toMatchObject({ code: 'CLOSED' });
});

test('a queue whose Redis is not there closes at once, and tells by its error event', async () => {
  const queue = new Queue('q', { connection: { port: await freePort() } });
  const errors: Error[] = [];
  queue.on('error', (error) => errors.push(error));
  await eventually(() => errors.length > 0);
  expect(errors[0]).toMatchObject({ code: 'ECONNREFUSED' });
  const waiting = queue.add('x', {}, { jobId: 'never' }).catch((error) => error);
  await queue.close();
  expect(await waiting).toMatchObject({ code: 'CLOSED' });
});

test('without an offline queue, the first add waits for the connection, and one without a connection fails at once', async ({
  task,
}) => {
  const proxy = await FaultProxy.start(shared());
  const connection = { url: proxy.url, enableOfflineQueue: false, retryStrategy: () => 20 };
  const queue = new Queue('q', { connection, prefix: namespaceFor(task) });
  queue.on('error', () => undefined);
  onCleanup('queue', () => queue.close());
  expect((await queue.add('x', {}, { jobId: 'first', delay: HOUR })).answer).toBe('created');
  await proxy.suspend();
  await eventually(() => queue.backend.shard.client.status !== 'ready');
  await expect(queue.add('x', {}, { jobId: 'second', delay: HOUR })).rejects.toMatchObject({
    code: 'REDIS_UNAVAILABLE',
    retryable: true,
  });
  await proxy.resume();
  await eventually(() => queue.backend.shard.client.status === 'ready');
  expect((await queue.add('x', {}, { jobId: 'second', delay: HOUR })).answer).toBe('created');
  expect(await queue.getDelayedCount()).toBe(2);
});

test('Redis gone and back: what was added meanwhile is there, once', async ({ task }) => {
  const proxy = await FaultProxy.start(shared());
  const connection = { url: proxy.url, retryStrategy: () => 20, maxRetriesPerRequest: null };
  const queue = new Queue('q', { connection, prefix: namespaceFor(task) });
  queue.on('error', () => undefined);
  onCleanup('queue', () => queue.close());
  await queue.waitUntilReady();
  await proxy.suspend();
  const added = Promise.all([1, 2, 3].map((n) => queue.add('x', {}, { jobId: `j${n}`, delay: n * HOUR })));
  await eventually(() => queue.backend.shard.client.status === 'reconnecting');
  await proxy.resume();
  expect((await added).map(({ answer }) => answer)).toEqual(['created', 'created', 'created']);
  expect(await queue.getRanges(['delayed'], 0, -1, true)).toEqual(['j1', 'j2', 'j3']);
});

test('a client of Cluster is refused, and left as it is', async () => {
  const cluster = new Cluster([{ host: '127.0.0.1', port: 1 }], { lazyConnect: true });
  expect(() => new Queue('q', { connection: cluster as never })).toThrow(
    expect.objectContaining({ code: 'UNSUPPORTED', field: 'connection' }),
  );
  expect(cluster.status).toBe('wait');
});

test('lazyConnect: connected by the queue', async ({ task }) => {
  const client = new Redis(sharedRedisUrl(), { lazyConnect: true });
  onCleanup('client', () => client.disconnect());
  const queue = new Queue('q', { connection: client, prefix: namespaceFor(task) });
  onCleanup('queue', () => queue.close());
  expect((await queue.add('x', {}, { delay: HOUR })).answer).toBe('created');
});
