import { expect, test } from 'vitest';
import { Queue } from '../../src/index.js';
import { warnOfServer } from '../../src/redis/server-warning.js';
import type { Logger } from '../../src/support/logger.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { startRedis } from '../support/redis-server.js';

/** Keeps the warnings. */
function recorder(): { logger: Logger; lines: string[] } {
  const lines: string[] = [];
  const nothing = () => undefined;
  const logger: Logger = {
    debug: nothing,
    info: nothing,
    error: nothing,
    warn: (first: object | string, message?: string) => lines.push(message ?? String(first)),
    child: () => logger,
  };
  return { logger, lines };
}

test('a Redis that may lose jobs is warned of once a process, and used all the same', async () => {
  const server = await startRedis({ args: ['--appendonly', 'no', '--maxmemory-policy', 'allkeys-lru'] });
  const { logger, lines } = recorder();
  const queues = ['a', 'b'].map((name) => new Queue(name, { connection: server.url, logger }));
  for (const queue of queues) onCleanup('queue', () => queue.close());
  for (const queue of queues) expect((await queue.add('x', {}, { delay: 60_000 })).answer).toBe('created');
  await eventually(() => expect(lines).toHaveLength(2));
  expect(lines).toEqual([expect.stringContaining('maxmemory-policy'), expect.stringContaining('appendonly')]);
  const [queue] = queues;
  if (queue !== undefined) await warnOfServer(queue.backend.shard.client, logger);
  expect(lines).toHaveLength(2);
});

test('a good Redis is not warned of', async () => {
  const server = await startRedis();
  const { logger, lines } = recorder();
  const queue = new Queue('q', { connection: server.url, logger });
  onCleanup('queue', () => queue.close());
  await queue.waitUntilReady();
  await warnOfServer(queue.backend.shard.client, logger);
  await queue.getJobCounts();
  expect(lines).toEqual([]);
});
