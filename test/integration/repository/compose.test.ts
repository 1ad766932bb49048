import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { parse } from 'yaml';
import { namespaceFor, sharedRedisUrl } from '../../support/namespace.js';
import { spawnNode } from '../../support/node-process.js';
import { startRedis } from '../../support/redis-server.js';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));

interface Service {
  command?: string[];
  entrypoint?: string[];
  volumes?: string[];
}

const { services } = parse(readFileSync(join(ROOT, 'docker-compose.yml'), 'utf8')) as {
  services: Record<'redis' | 'scheduler' | 'worker', Service>;
};

test('the Redis of docker-compose.yml keeps what it is given', async () => {
  const [binary, ...args] = services.redis.command ?? [];
  expect(binary).toBe('redis-server');
  const server = await startRedis({ args });
  const redis = new Redis(server.url);
  onTestFinished(() => redis.disconnect());
  expect(await redis.config('GET', 'appendonly', 'maxmemory-policy', 'appendfsync')).toEqual(
    expect.arrayContaining([
      'appendonly',
      'yes',
      'maxmemory-policy',
      'noeviction',
      'appendfsync',
      'everysec',
    ]),
  );
  // Not ours, which start with the same settings: the file alone must say it.
  expect(args).toEqual(expect.arrayContaining(['--appendonly', 'yes', '--maxmemory-policy', 'noeviction']));
});

test('the worker of docker-compose.yml runs jobs and ends in order', async ({ task }) => {
  const [host, inside] = services.worker.volumes?.[0]?.split(':') ?? [];
  expect(services.worker.entrypoint?.at(-1)).toBe(inside);
  const script = join(ROOT, host ?? '');
  expect(existsSync(script)).toBe(true);

  const queueName = namespaceFor(task);
  const worker = spawnNode(script, [queueName], { REDIS_URL: sharedRedisUrl() });
  await worker.waitForLine(`working on ${queueName}`);
  const queue = new Queue(queueName, { connection: { url: sharedRedisUrl() } });
  onTestFinished(async () => {
    await queue.obliterate({ force: true });
    await queue.close();
  });
  await queue.add('send', { to: 'a@example.com' }, { jobId: 'order-5' });
  const line = await worker.waitForLine('order-5');
  expect(JSON.parse(line)).toEqual({
    queue: queueName,
    id: 'order-5',
    name: 'send',
    data: { to: 'a@example.com' },
  });
  expect(await worker.stop()).toEqual({ code: 0, signal: null });
});
