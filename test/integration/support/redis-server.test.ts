import { Redis } from 'ioredis';
import { afterEach, expect, test, vi } from 'vitest';
import { startRedis } from '../../support/redis-server.js';

const clients: Redis[] = [];
afterEach(() => {
  for (const client of clients.splice(0)) client.disconnect();
});

function client(url: string): Redis {
  const redis = new Redis(url);
  redis.on('error', () => undefined);
  clients.push(redis);
  return redis;
}

test('keeps acknowledged writes over kill -9 with appendfsync always', async () => {
  const server = await startRedis({ appendfsync: 'always' });
  await client(server.url).set('k', 'v');
  const { pid } = server;
  await server.kill9();
  expect(server.running).toBe(false);
  await server.restart();
  expect(server.pid).not.toBe(pid);
  expect(await client(server.url).get('k')).toBe('v');
});

test('arguments win over the defaults', async () => {
  const server = await startRedis({ args: ['--maxmemory', '12mb', '--appendonly', 'no'] });
  const redis = client(server.url);
  expect(await redis.config('GET', 'maxmemory')).toEqual(['maxmemory', String(12 * 1024 * 1024)]);
  expect(await redis.config('GET', 'appendonly')).toEqual(['appendonly', 'no']);
});

test('a bad argument rejects with what the server said', async () => {
  await expect(startRedis({ args: ['--no-such-option', 'x'] })).rejects.toThrow(/no-such-option/);
});

test('without a binary it says how to get one', async () => {
  vi.stubEnv('CARILLON_REDIS_SERVER', '/nowhere/redis-server');
  try {
    await expect(startRedis()).rejects.toThrow(/scripts\/setup\.sh redis.*CARILLON_TEST_REDIS_URL/);
  } finally {
    vi.unstubAllEnvs();
  }
});
