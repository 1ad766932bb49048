import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Worker as BullWorker } from 'bullmq';
import { expect, onTestFinished, test } from 'vitest';
import { Queue, Scheduler } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';

function open(test: { name: string }) {
  const prefix = namespaceFor(test);
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  const { client } = queue.backend.shard;
  const key = (id: string) => `${prefix}:q:${id}`;
  const work = (handler: (job: { id?: string; data: unknown }) => unknown) => {
    const worker = new BullWorker('q', async (job) => handler(job), {
      connection: { url: sharedRedisUrl() },
      prefix,
    });
    worker.on('error', () => undefined);
    onTestFinished(() => worker.close());
    return worker;
  };
  return { queue, client, key, work, prefix };
}

test('a job that stalled too often, put back, runs: it does not die again for the stalls before', async ({
  task,
}) => {
  const { queue, client, key, work } = open(task);
  // As BullMQ leaves a job whose workers vanished once too often: in wait, with the failure that is to come.
  await queue.add('crash', {}, { jobId: 'crash', attempts: 5 });
  await client.hset(key('crash'), 'stc', 2, 'defa', 'job stalled more than allowable limit');
  const ran: string[] = [];
  work((job) => {
    ran.push(job.id ?? '');
  });
  await eventually(async () => expect(await queue.dead.list({ reason: 'stalled' })).toHaveLength(1));
  expect(ran).toEqual([]);
  await queue.dead.requeue('crash');
  await eventually(async () => expect(await queue.getJobState('crash')).toBe('completed'));
  expect(await client.hget(key('crash'), 'stc')).toBeNull();
});

test('onDead tells of a letter that a slower worker wrote behind a later one, and of ids that no header holds', async ({
  task,
}) => {
  const { queue, client, key, prefix } = open(task);
  const told: string[] = [];
  const receiver = createServer((request, response) => {
    let text = '';
    request.on('data', (part) => {
      text += part;
    });
    request.on('end', () => {
      told.push(JSON.parse(text).id);
      response.end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    receiver.closeAllConnections();
    receiver.close();
  });
  // The letters are written by hand: only this tells that there is such a queue.
  await queue.add('n', {}, { jobId: 'later', delay: 3_600_000 });
  const scheduler = new Scheduler({
    redis: sharedRedisUrl(),
    prefix,
    onDead: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
  });
  onTestFinished(() => scheduler.stop());
  await scheduler.start();
  const die = async (id: string, at: number) => {
    await client.hset(key(id), {
      name: 'n',
      data: '{}',
      opts: '{}',
      failedReason: 'no',
      atm: 1,
      timestamp: at,
    });
    await client.zadd(key('failed'), at, id);
  };
  const now = Date.now() + 2000;
  await die('second', now + 5);
  await eventually(() => expect(told).toEqual(['second']), { timeout: 20_000 });
  await die('first', now);
  await die('注文-5', now + 6);
  await eventually(() => expect([...told].sort()).toEqual(['first', 'second', '注文-5']), {
    timeout: 20_000,
  });
});

test('B38 a payload given as text is stored as it is written; the letter is put back in the same step', async ({
  task,
}) => {
  const { queue, client, key, work } = open(task);
  const worker = work(() => {
    throw new Error('no');
  });
  await queue.add('n', { to: 'an' }, { jobId: 'm' });
  await eventually(async () => expect(await queue.dead.list()).toHaveLength(1));
  await worker.close();
  const text = '{"n":9007199254740993,"a":[],"o":{},"f":0.10}';
  await expect(queue.dead.requeue('m', { dataText: '{' })).rejects.toMatchObject({ field: 'dataText' });
  await expect(queue.dead.requeue('m', { dataText: text, data: {} })).rejects.toMatchObject({
    field: 'dataText',
  });
  await queue.dead.requeue('m', { dataText: text });
  expect(await client.hget(key('m'), 'data')).toBe(text);
  expect(await queue.getJobState('m')).toBe('waiting');
});
