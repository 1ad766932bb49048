import { Worker } from 'bullmq';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Queue, type QueueOptions, Scheduler } from '../../src/index.js';
import { aJob } from '../support/builders.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { Spine } from '../support/spine.js';

const HOUR = 3_600_000;

function open(task: { name: string }, options: QueueOptions = {}): { queue: Queue; prefix: string } {
  const prefix = namespaceFor(task);
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix, ...options });
  onCleanup('queue', () => queue.close());
  return { queue, prefix };
}

async function work(prefix: string, handle: (id: string) => void = () => undefined): Promise<void> {
  const { hostname: host, port } = new URL(sharedRedisUrl());
  const connection = { host, port: Number(port), maxRetriesPerRequest: null };
  const worker = new Worker('q', async ({ id = '' }) => handle(id), { connection, prefix });
  onCleanup('worker', () => worker.close());
  await worker.waitUntilReady();
}

async function redisNow(queue: Queue): Promise<number> {
  const [seconds, micros] = (await queue.backend.shard.client.time()) as unknown as [number, number];
  return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
}

test('created, existing, replaced: what a pending id answers', async ({ task }) => {
  const { queue } = open(task);
  const first = await queue.add('x', { v: 1 }, { jobId: 'a', delay: HOUR });
  const again = await queue.add('x', { v: 2 }, { jobId: 'a', delay: 2 * HOUR });
  expect(again).toMatchObject({ id: 'a', answer: 'existing', scheduledFor: first.scheduledFor });
  expect((await queue.getJob('a'))?.data).toEqual({ v: 1 });
  const replaced = await queue.add(
    'x',
    { v: 3 },
    { jobId: 'a', at: first.scheduledFor + HOUR, ifExists: 'replace' },
  );
  expect(replaced).toMatchObject({ answer: 'replaced', scheduledFor: first.scheduledFor + HOUR });
  expect(await queue.getJob('a')).toMatchObject({ data: { v: 3 }, scheduledFor: first.scheduledFor + HOUR });
  expect(await queue.getDelayedCount()).toBe(1);
});

test('replace of a pending job by one that is due now', async ({ task }) => {
  const { queue } = open(task);
  await queue.add('x', { v: 1 }, { jobId: 'a', delay: HOUR });
  expect((await queue.add('x', { v: 2 }, { jobId: 'a', ifExists: 'replace' })).answer).toBe('replaced');
  expect(await queue.getWaiting()).toMatchObject([{ id: 'a', data: { v: 2 } }]);
  expect(await queue.getDelayedCount()).toBe(0);
});

test.each([
  ['kept', false],
  ['removed', true],
])('fired: within the window, the job of BullMQ %s', async (name, removeOnComplete) => {
  const { queue, prefix } = open({ name });
  const ran: string[] = [];
  await work(prefix, (id) => ran.push(id));
  const first = await queue.add('x', {}, { jobId: 'a', removeOnComplete });
  await eventually(
    async () => (await queue.getJobState('a')) === (removeOnComplete ? 'unknown' : 'completed'),
  );
  expect(ran).toEqual(['a']);
  for (const opts of [{}, { delay: HOUR }, { ifExists: 'replace' as const }]) {
    const again = await queue.add('x', {}, { jobId: 'a', ...opts });
    expect(again.answer).toBe('fired');
    expect(again.scheduledFor - first.scheduledFor).toBeLessThan(10_000);
  }
  expect(await queue.getJobCounts('delayed', 'waiting', 'active')).toEqual({
    delayed: 0,
    waiting: 0,
    active: 0,
  });
});

describe.each([
  ['of the queue', { duplicateWindow: 0 }, {}],
  ['of the call', {}, { duplicateWindow: 0 }],
])('a window of 0 %s is BullMQ’s own rule', (_whose, ofQueue, ofCall) => {
  test('the id is free once its hash is gone, and taken while it stands', async ({ task }) => {
    const { queue, prefix } = open(task, ofQueue);
    await work(prefix);
    const opts = { jobId: 'a', ...ofCall };
    await queue.add('x', {}, { ...opts, removeOnComplete: false });
    await eventually(async () => (await queue.getJobState('a')) === 'completed');
    expect((await queue.add('x', {}, { ...opts, delay: HOUR })).answer).toBe('existing');
    await queue.remove('a');
    expect((await queue.add('x', {}, { ...opts, delay: HOUR })).answer).toBe('created');
  });
});

test('an existing job of BullMQ’s own tells when it was due, and QueueEvents of the duplicate', async ({
  task,
}) => {
  const { queue, prefix } = open(task);
  const { Queue: BullQueue, QueueEvents } = await import('bullmq');
  const { hostname: host, port } = new URL(sharedRedisUrl());
  const connection = { host, port: Number(port), maxRetriesPerRequest: null };
  const stock = new BullQueue('q', { connection, prefix });
  const theirs = await stock.add('x', {}, { jobId: 'theirs', delay: HOUR });
  await stock.close();
  const events = new QueueEvents('q', { connection, prefix });
  onCleanup('queue events', () => events.close());
  const duplicated: string[] = [];
  events.on('duplicated', ({ jobId }) => duplicated.push(jobId));
  await events.waitUntilReady();
  const ours = await queue.add('x', {}, { jobId: 'theirs', delay: 5 });
  expect(ours).toMatchObject({ answer: 'existing', scheduledFor: theirs.timestamp + HOUR });
  await queue.add('x', {}, { jobId: 'pending', delay: HOUR });
  await queue.add('x', {}, { jobId: 'pending', delay: HOUR });
  await eventually(() => expect(duplicated).toEqual(['theirs', 'pending']));
});

test('the same jobId in two queues is two jobs', async ({ task }) => {
  const { queue, prefix } = open(task);
  const other = new Queue('other', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => other.close());
  await queue.add('x', { of: 'q' }, { jobId: 'a', delay: HOUR });
  expect((await other.add('x', { of: 'other' }, { jobId: 'a', delay: HOUR })).answer).toBe('created');
  await queue.drain(true);
  expect((await other.getJob('a'))?.data).toEqual({ of: 'other' });
});

test('ID_IN_USE: a schedule’s id is no job’s, and the other way round', async ({ task }) => {
  const { queue } = open(task);
  const nightly = { cron: '0 0 1 1 *', missed: 'skip' } as const;
  await queue.schedules.upsert('nightly', nightly);
  await expect(queue.add('x', {}, { jobId: 'nightly', delay: HOUR })).rejects.toMatchObject({
    code: 'ID_IN_USE',
  });
  await queue.add('x', {}, { jobId: 'job', delay: HOUR });
  await expect(queue.schedules.upsert('job', nightly)).rejects.toMatchObject({ code: 'ID_IN_USE' });
});

test('a bulk answers each job by itself', async ({ task }) => {
  const { queue } = open(task);
  await queue.add('x', {}, { jobId: 'pending', delay: HOUR });
  await queue.add('x', {}, { jobId: 'ran' });
  const ids = ['new', 'pending', 'ran', 'new', 'now', 'now'];
  const added = await queue.addBulk(
    ids.map((jobId, n) => ({
      name: 'x',
      data: { n },
      opts: jobId === 'now' ? { jobId } : { jobId, delay: HOUR + n },
    })),
  );
  expect(added.map(({ id, answer }) => `${id} ${answer}`)).toEqual([
    'new created',
    'pending existing',
    'ran fired',
    'new existing',
    'now created',
    'now fired',
  ]);
  expect(await queue.getJobCounts('delayed', 'waiting')).toEqual({ delayed: 2, waiting: 2 });
});

test('a bulk with windows of its own keeps the order of its answers', async ({ task }) => {
  const { queue } = open(task);
  await queue.add('x', {}, { jobId: 'a' });
  await queue.backend.shard.client.del(queue.toKey('a'));
  const added = await queue.addBulk(
    [undefined, 0, '30m', undefined].map((duplicateWindow, n) => ({
      name: `n${n}`,
      data: {},
      opts: { jobId: n === 3 ? 'b' : 'a', delay: HOUR, duplicateWindow },
    })),
  );
  expect(added.map(({ answer, name }) => `${name} ${answer}`)).toEqual([
    'n0 fired',
    'n1 created',
    'n2 existing',
    'n3 created',
  ]);
});

test('at: a Date, ms, or an ISO text; a time that has passed is due now', async ({ task }) => {
  const { queue } = open(task);
  const at = Date.UTC(2099, 0, 31, 9, 12);
  for (const given of [new Date(at), at, '2099-01-31T09:12:00Z', '2099-01-31T10:12:00+01:00']) {
    const job = await queue.add('x', {}, { at: given });
    expect(job).toMatchObject({ answer: 'created', scheduledFor: at, delay: at - job.timestamp });
  }
  await queue.add('x', {}, { at: 0, jobId: 'past' });
  expect(await queue.getJobState('past')).toBe('waiting');
});

test('a delay counts from an explicit timestamp, as in BullMQ', async ({ task }) => {
  const { queue } = open(task);
  const timestamp = Date.now() - HOUR;
  const job = await queue.add('x', {}, { timestamp, delay: 3 * HOUR, jobId: 'a' });
  expect(job.scheduledFor).toBe(timestamp + 3 * HOUR);
  expect(await queue.getJob('a')).toMatchObject({ timestamp, delay: 3 * HOUR });
  await queue.add('x', {}, { timestamp, delay: HOUR / 2, jobId: 'b' });
  expect(await queue.getJobState('b')).toBe('waiting');
});

const FAR = [
  ['a', 2_147_483_647, '2026-02-08T20:31:23.647Z'],
  ['b', 2_147_483_648, '2026-02-08T20:31:23.648Z'],
  ['c', 4_294_972_296, '2026-03-05T17:02:52.296Z'],
] as const;

test('B01: delays beyond 2^31 and 2^32 ms are accepted for what they are', async ({ task }) => {
  const { queue, prefix } = open(task);
  const scheduler = new Scheduler({ redis: sharedRedisUrl(), prefix });
  onTestFinished(() => scheduler.stop());
  await scheduler.start();
  const before = await redisNow(queue);
  for (const [jobId, delay] of FAR) {
    const { scheduledFor } = await queue.add('x', {}, { jobId, delay });
    expect(scheduledFor - delay - before).toBeGreaterThanOrEqual(0);
    expect(scheduledFor - delay - before).toBeLessThan(10_000);
  }
  await queue.add('x', {}, { jobId: 'soon', delay: 300 });
  await eventually(async () => (await queue.getJobState('soon')) === 'waiting');
  expect(await queue.getJobCounts('delayed', 'waiting')).toEqual({ delayed: 3, waiting: 1 });
});

test('B01: they fire at their millisecond and not before', async ({ task }) => {
  const spine = await Spine.open({
    url: sharedRedisUrl(),
    namespace: namespaceFor(task),
    choices: { clock: 'virtual' },
  });
  await spine.setClock(Date.parse('2026-01-15T00:00:00.000Z'));
  await spine.submit(
    'q',
    FAR.map(([jobId, delay]) => aJob(jobId, { time: delay, relative: true })),
  );
  for (const [jobId, , at] of FAR) {
    const waiting = () => spine.client.lrange(spine.bull('q', 'wait'), 0, 0);
    await spine.setClock(Date.parse(at) - 1);
    expect((await spine.drain(await spine.lead())).popped).toBe(0);
    await spine.setClock(Date.parse(at));
    await spine.drain(await spine.lead());
    expect(await waiting()).toEqual([jobId]);
  }
});
