import { expect, onTestFinished, test } from 'vitest';
import { type Handlers, type Processor, Queue, Worker, type WorkerOptions } from '../../src/index.js';
import { type WorkerFacts, WorkerRegistry } from '../../src/redis/worker-registry.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';

function open(task: { name: string }) {
  const prefix = namespaceFor(task);
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  const registry = new WorkerRegistry(queue.backend.shard);
  const work = async (handlers: Handlers | Processor, options: WorkerOptions = {}) => {
    const worker = new Worker('q', handlers, { connection: sharedRedisUrl(), prefix, ...options });
    worker.on('error', () => undefined);
    onTestFinished(() => worker.close());
    await eventually(async () => expect((await registry.list()).map(({ id }) => id)).toContain(worker.id));
    return worker;
  };
  const effects = (...names: string[]) => registry.effectsOf('q', names);
  return { queue, registry, work, effects };
}

const idempotent = { effects: 'idempotent', handle: () => 1 } as const;

test('what a processor that follows handlers says counts, while it lives and after it', async ({ task }) => {
  const { work, effects } = open(task);
  const first = await work({ a: idempotent });
  expect(await effects('a', 'b')).toEqual(['idempotent', undefined]);
  await first.close();
  expect(await effects('a')).toEqual(['idempotent']);
  const second = await work(async () => 1);
  expect(await effects('a', 'b')).toEqual(['mayRepeat', 'mayRepeat']);
  await second.close();
  expect(await effects('a', 'b')).toEqual(['mayRepeat', 'mayRepeat']);
  const third = await work({ a: idempotent });
  expect(await effects('a')).toEqual(['idempotent']);
  await third.close();
  expect(await effects('a', 'b')).toEqual(['idempotent', undefined]);
});

test('of workers that live the weakest word counts; one that has no such handler says nothing', async ({
  task,
}) => {
  const { work, effects } = open(task);
  await work({ a: idempotent, b: idempotent });
  await work({ a: { effects: 'fenced', handle: () => 1 } });
  expect(await effects('a', 'b')).toEqual(['fenced', 'idempotent']);
  const loose = await work(async () => 1);
  expect(await effects('a', 'b')).toEqual(['mayRepeat', 'mayRepeat']);
  await loose.close();
  await work(async () => 1, { effects: 'fenced' });
  expect(await effects('a', 'b')).toEqual(['fenced', 'fenced']);
});

test('what is remembered of handlers is bounded, however many names come and go', async ({ task }) => {
  const { queue, registry, effects } = open(task);
  const facts = (name: string): WorkerFacts => ({
    id: 'w',
    queue: 'q',
    host: 'h',
    pid: 1,
    startedAt: '',
    concurrency: 1,
    running: 0,
    handlers: { [name]: 'idempotent' },
    draining: false,
  });
  for (let i = 0; i < 450; i++) await registry.beat(facts(`n${i}`));
  await registry.beat(facts('last'), true);
  const { client, keys } = queue.backend.shard;
  expect(await client.hkeys(keys.effects)).toEqual(['q']);
  const kept = JSON.parse((await client.hget(keys.effects, 'q')) ?? '') as object;
  expect(Object.keys(kept).length).toBeLessThanOrEqual(200);
  expect(await effects('n449', 'n0')).toEqual(['idempotent', undefined]);
});
