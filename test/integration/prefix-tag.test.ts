import { Queue as BullQueue } from 'bullmq';
import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { Queue, Scheduler } from '../../src/index.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';

test('a prefix with a hash tag, as users of a cluster have it, feeds the queues of that prefix', async ({
  task,
}) => {
  const prefix = `{${namespaceFor(task)}}`;
  const connection = sharedRedisUrl();
  const queue = new Queue('q', { connection, prefix });
  const scheduler = new Scheduler({ redis: connection, prefix });
  const stock = new BullQueue('q', { connection: new Redis(connection), prefix });
  onTestFinished(async () => {
    await scheduler.stop();
    await queue.close();
    await stock.close();
    (await stock.getBackend().client).disconnect();
  });
  await scheduler.start();
  await queue.add('n', { a: [] }, { delay: 50, jobId: 'tagged' });
  await eventually(async () => expect(await stock.getJobState('tagged')).toBe('waiting'));
});
