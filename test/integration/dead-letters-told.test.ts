import { Queue as StockQueue, Worker as StockWorker } from 'bullmq';
import { expect, onTestFinished, test } from 'vitest';
import { Queue, Scheduler, Worker } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';

function open(task: { name: string }) {
  const prefix = namespaceFor(task);
  const heard: string[] = [];
  const queueOf = (name: string) => {
    const queue = new Queue(name, { connection: sharedRedisUrl(), prefix });
    onCleanup(`queue ${name}`, () => queue.close());
    return queue;
  };
  const lead = async () => {
    const onDead = ({ queue, id }: { queue: string; id: string }) => void heard.push(`${queue}:${id}`);
    const scheduler = new Scheduler({ redis: sharedRedisUrl(), prefix, onDead });
    onTestFinished(() => scheduler.stop());
    await scheduler.start();
    return scheduler;
  };
  const fail = () => {
    throw new Error('no');
  };
  const work = (name: string) => {
    const worker = new Worker(name, fail, { connection: sharedRedisUrl(), prefix });
    worker.on('error', () => undefined);
    onTestFinished(() => worker.close(true));
  };
  const workStock = (name: string) => {
    const worker = new StockWorker(name, async () => fail(), {
      connection: { url: sharedRedisUrl() },
      prefix,
    });
    worker.on('error', () => undefined);
    onTestFinished(() => worker.close(true));
  };
  return { prefix, heard, queueOf, lead, work, workStock };
}

test('a queue that comes after the scheduler: its first deaths are told, under either worker', async ({
  task,
}) => {
  const { heard, queueOf, lead, work, workStock } = open(task);
  await lead();
  work('ours');
  workStock('stock');
  const ours = queueOf('ours');
  for (const id of ['1', '2', '3']) await ours.add('a', {}, { jobId: `o${id}` });
  // Due at once, and nobody of ours works it: only the submit tells that there is such a queue.
  await queueOf('stock').addBulk(['s1', 's2'].map((jobId) => ({ name: 'a', data: {}, opts: { jobId } })));
  await eventually(
    () => expect([...heard].sort()).toEqual(['ours:o1', 'ours:o2', 'ours:o3', 'stock:s1', 'stock:s2']),
    { timeout: 20_000 },
  );
});

test('what dies while no scheduler runs is told by the next one, of queues that are new to it too', async ({
  task,
}) => {
  const { heard, queueOf, lead, workStock } = open(task);
  const early = queueOf('early');
  workStock('early');
  await early.add('a', {}, { jobId: 'before' });
  await eventually(async () => expect(await early.getFailedCount()).toBe(1));
  await (await lead()).stop();
  const late = queueOf('late');
  workStock('late');
  await late.add('a', {}, { jobId: 'l' });
  await early.add('a', {}, { jobId: 'e' });
  await eventually(async () => {
    expect(await late.getFailedCount()).toBe(1);
    expect(await early.getFailedCount()).toBe(2);
  });
  await lead();
  // What died before anybody was to be told is not.
  await eventually(() => expect([...heard].sort()).toEqual(['early:e', 'late:l']), { timeout: 20_000 });
});

test('a queue that only producers of BullMQ fill is known by the first worker of ours', async ({ task }) => {
  const { prefix, heard, lead, work } = open(task);
  await lead();
  const stock = new StockQueue('plain', { connection: { url: sharedRedisUrl() }, prefix });
  onCleanup('stock queue', () => stock.close());
  await stock.add('a', {}, { jobId: 'p' });
  work('plain');
  await eventually(() => expect(heard).toEqual(['plain:p']), { timeout: 20_000 });
});
