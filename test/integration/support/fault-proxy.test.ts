import { Redis, type RedisOptions } from 'ioredis';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { eventually } from '../../support/eventually.js';
import { FaultProxy } from '../../support/fault-proxy.js';
import { type RedisServer, startRedis } from '../../support/redis-server.js';

let server: RedisServer;
beforeAll(async () => {
  server = await startRedis({ appendfsync: 'no' });
});

function client(url: string, options: RedisOptions = {}): Redis {
  const redis = new Redis(url, { retryStrategy: () => 20, maxRetriesPerRequest: null, ...options });
  redis.on('error', () => undefined);
  onTestFinished(() => redis.disconnect());
  return redis;
}

async function setup(options: RedisOptions = {}) {
  const proxy = await FaultProxy.start({ port: server.port });
  const direct = client(server.url);
  await direct.flushall();
  return { proxy, direct, redis: client(proxy.url, options) };
}

test('passes commands and large values, and counts connections', async () => {
  const { proxy, redis } = await setup();
  const value = 'é'.repeat(300_000);
  await redis.set('k', value);
  expect(await redis.get('k')).toBe(value);
  expect({ open: proxy.connections, accepted: proxy.accepted }).toEqual({ open: 1, accepted: 1 });
  redis.disconnect();
  await eventually(() => proxy.connections === 0);
});

test.each([2, 3] as const)(
  'a dropped reply: carried out, then sent again by the client (RESP%i)',
  async (protocol) => {
    const { proxy, redis, direct } = await setup({ protocol });
    await redis.ping();
    const drop = proxy.dropReplies(1, 'counter');
    const replies = await Promise.all([redis.set('a', '1'), redis.incr('counter'), redis.set('b', '1')]);
    expect(replies).toEqual(['OK', 2, 'OK']);
    expect(await direct.get('counter')).toBe('2');
    expect(drop).toMatchObject({ dropped: 1, remaining: 0 });
    expect(proxy.accepted).toBe(2);
  },
);

test('replies dropped twice: three effects of one call', async () => {
  const { proxy, redis, direct } = await setup();
  await redis.ping();
  proxy.dropReplies(2, /incr/i);
  expect(await redis.incr('counter')).toBe(3);
  expect(await direct.get('counter')).toBe('3');
});

test('a held reply comes after resume, in order', async () => {
  const { proxy, redis, direct } = await setup();
  await redis.ping();
  const drop = proxy.dropReplies(1, 'counter', 'hold');
  const calls = [redis.incr('counter'), redis.get('counter')];
  await eventually(() => drop.dropped === 1);
  await eventually(async () => (await direct.get('counter')) === '1');
  expect(await Promise.race([...calls, direct.ping()])).toBe('PONG');
  await proxy.resume();
  expect(await Promise.all(calls)).toEqual([1, '1']);
});

test('a push message is nobody’s reply', async () => {
  const { proxy, redis, direct } = await setup({ protocol: 3 });
  await redis.call('CLIENT', 'TRACKING', 'ON');
  await redis.get('k');
  await direct.set('k', 'v');
  proxy.dropReplies(1, 'counter');
  expect(await redis.incr('counter')).toBe(2);
});

test('suspend resets and refuses; resume serves on the same port', async () => {
  const { proxy, redis } = await setup();
  await redis.set('k', 'v');
  const { port } = proxy;
  await proxy.suspend();
  await eventually(() => redis.status === 'reconnecting');
  await expect(
    client(proxy.url, { retryStrategy: () => null, maxRetriesPerRequest: 0 }).ping(),
  ).rejects.toThrow();
  await proxy.resume();
  expect(proxy.port).toBe(port);
  expect(await redis.get('k')).toBe('v');
});

describe('a one-way black hole', () => {
  test('down: the command arrives, its reply only after resume', async () => {
    const { proxy, redis, direct } = await setup();
    await redis.ping();
    proxy.pause('down');
    const reply = redis.set('k', 'v');
    await eventually(async () => (await direct.get('k')) === 'v');
    expect(await Promise.race([reply, direct.ping()])).toBe('PONG');
    await proxy.resume();
    expect(await reply).toBe('OK');
  });

  test('up: the command does not arrive, nor does the end of the connection', async () => {
    const { proxy, redis, direct } = await setup();
    await redis.client('SETNAME', 'cut-off');
    proxy.pause('up');
    const reply = redis.set('k', 'v').catch(() => 'closed');
    redis.disconnect();
    expect(await reply).toBe('closed');
    await eventually(() => proxy.connections === 0);
    expect(await direct.client('LIST')).toContain('name=cut-off');
    await proxy.resume();
    await eventually(async () => !String(await direct.client('LIST')).includes('name=cut-off'));
  });

  test('a new connection is accepted and silent', async () => {
    const { proxy } = await setup({ lazyConnect: true });
    proxy.pause();
    const late = client(proxy.url, { commandTimeout: 100 });
    await expect(late.ping()).rejects.toThrow('Command timed out');
    expect(proxy.accepted).toBe(1);
  });
});

test('lost bytes never arrive, and their connection ends with the loss', async () => {
  const { proxy, redis, direct } = await setup({ maxRetriesPerRequest: 0 });
  await redis.ping();
  proxy.lose('up');
  const lost = redis.set('k', 'lost');
  expect(await Promise.race([lost, direct.ping()])).toBe('PONG');
  await proxy.resume();
  await expect(lost).rejects.toThrow();
  await eventually(async () => (await redis.ping()) === 'PONG');
  expect(await direct.get('k')).toBeNull();
});

test('a reply that is lost: carried out, unknown to the client', async () => {
  const { proxy, redis, direct } = await setup({ maxRetriesPerRequest: 0 });
  await redis.ping();
  proxy.lose('down');
  const unknown = redis.incr('counter');
  await eventually(async () => (await direct.get('counter')) === '1');
  expect(await Promise.race([unknown, direct.ping()])).toBe('PONG');
  await proxy.resume();
  await expect(unknown).rejects.toThrow();
  expect(await direct.get('counter')).toBe('1');
});

test('a request that is held, and what follows it, arrive after resume; other connections go on', async () => {
  const { proxy, redis, direct } = await setup();
  const other = client(proxy.url);
  await Promise.all([redis.ping(), other.ping()]);
  const held = proxy.hold(/incr/i);
  const calls = [redis.set('a', '1'), redis.incr('counter'), redis.set('b', '1')];
  await eventually(() => held.requests === 1);
  await other.set('c', '1');
  expect(await direct.mget('a', 'counter', 'b', 'c')).toEqual(['1', null, null, '1']);
  await proxy.resume();
  expect(await Promise.all(calls)).toEqual(['OK', 1, 'OK']);
});

test('a connection that lost nothing outlives a loss', async () => {
  const { proxy, redis } = await setup();
  await redis.ping();
  proxy.lose();
  await proxy.resume();
  expect(await redis.ping()).toBe('PONG');
  expect(proxy.accepted).toBe(1);
});

test('delay adds latency each way and keeps the order', async () => {
  const { proxy, redis } = await setup();
  await redis.ping();
  proxy.delay(40);
  const started = performance.now();
  const replies = await Promise.all([redis.incr('n'), redis.incr('n'), redis.incr('n')]);
  expect(performance.now() - started).toBeGreaterThanOrEqual(80);
  expect(replies).toEqual([1, 2, 3]);
  proxy.delay(0);
});

test('reset cuts what is open', async () => {
  const { proxy, redis } = await setup();
  await redis.ping();
  proxy.reset();
  expect(await redis.ping()).toBe('PONG');
  expect(proxy.accepted).toBe(2);
});
