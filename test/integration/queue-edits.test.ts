import { Worker } from 'bullmq';
import { expect, onTestFinished, test } from 'vitest';
import { type JobOptions, Queue, type QueueOptions, Scheduler } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';

const HOUR = 3_600_000;

function open(task: { name: string }, options: QueueOptions = {}): { queue: Queue; prefix: string } {
  const prefix = namespaceFor(task);
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix, ...options });
  onCleanup('queue', () => queue.close());
  return { queue, prefix };
}

async function schedule(prefix: string): Promise<void> {
  const scheduler = new Scheduler({ redis: sharedRedisUrl(), prefix });
  onTestFinished(() => scheduler.stop());
  await scheduler.start();
}

test('a paused job does not fire; resumed, it runs at once if its time has passed', async ({ task }) => {
  const { queue, prefix } = open(task);
  await schedule(prefix);
  await queue.add('x', {}, { jobId: 'held', delay: 400 });
  await queue.pauseJob('held', { note: 'until the invoice is checked' });
  await queue.add('x', {}, { jobId: 'other', delay: 500 });
  await eventually(async () => (await queue.getJobState('other')) === 'waiting');
  expect(await queue.getJobState('held')).toBe('delayed');
  const { record } = await queue.backend.scripts.get('q', 'held');
  expect(record).toMatchObject({ state: 'paused', note: 'until the invoice is checked' });
  await queue.resumeJob('held');
  await eventually(async () => (await queue.getJobState('held')) === 'waiting');
});

test('resumeJob of a job that is not paused is a CONFLICT', async ({ task }) => {
  const { queue } = open(task);
  await queue.add('x', {}, { jobId: 'a', delay: HOUR });
  await expect(queue.resumeJob('a')).rejects.toMatchObject({ code: 'CONFLICT' });
  await queue.pauseJob('a');
  await queue.pauseJob('a', { note: 'again' });
  await queue.resumeJob('a');
  await expect(queue.resumeJob('a')).rejects.toMatchObject({ code: 'CONFLICT' });
});

const edits: Record<string, (queue: Queue, id: string) => Promise<unknown>> = {
  changeDelay: (queue, id) => queue.changeDelay(id, 5),
  pauseJob: (queue, id) => queue.pauseJob(id),
  resumeJob: (queue, id) => queue.resumeJob(id),
  cancel: (queue, id) => queue.cancel(id),
  updateJob: (queue, id) => queue.updateJob(id, { data: 1 }),
};

test.each(Object.entries(edits))('%s: NOT_FOUND for an unknown id', async (name, edit) => {
  const { queue } = open({ name });
  await expect(edit(queue, 'unknown')).rejects.toMatchObject({ code: 'NOT_FOUND', field: 'jobId' });
  await expect(edit(queue, '')).rejects.toMatchObject({ code: 'INVALID_ID' });
});

test('a cancelled job is not resurrected, and its id is free', async ({ task }) => {
  const { queue, prefix } = open(task);
  await schedule(prefix);
  await queue.add('x', { v: 1 }, { jobId: 'a', delay: 300 });
  await queue.cancel('a', { reason: 'changed my mind' });
  await queue.add('x', {}, { jobId: 'later', delay: 400 });
  await eventually(async () => (await queue.getJobState('later')) === 'waiting');
  expect(await queue.getJobState('a')).toBe('unknown');
  expect((await queue.add('x', { v: 2 }, { jobId: 'a', delay: HOUR })).answer).toBe('created');
  const [, fields = []] =
    (await queue.backend.shard.client.xrange(queue.backend.shard.keys.history, '-', '+'))[0] ?? [];
  expect(fields).toEqual(expect.arrayContaining(['cancelled', 'changed my mind']));
});

test('updateJob replaces what is given and keeps the rest', async ({ task }) => {
  const { queue } = open(task, { defaultJobOptions: { removeOnComplete: 5 } });
  const opts = { jobId: 'a', delay: HOUR, attempts: 2, deduplication: { id: 'd' } };
  const { scheduledFor } = await queue.add('old', { v: 1 }, opts);
  await queue.updateJob('a', { name: 'new' });
  expect(await queue.getJob('a')).toMatchObject({ name: 'new', data: { v: 1 }, opts: { attempts: 2 } });
  await queue.updateJob('a', { data: { v: 2 } });
  await queue.updateJob('a', { opts: { attempts: 7, priority: 3 } });
  const job = await queue.getJob('a');
  expect(job).toMatchObject({ name: 'new', data: { v: 2 }, priority: 3, scheduledFor, deduplicationId: 'd' });
  expect(job?.opts).toMatchObject({
    attempts: 7,
    priority: 3,
    removeOnComplete: 5,
    deduplication: { id: 'd' },
  });
  expect((await queue.add('x', {}, { ...opts, jobId: 'b' })).id).toBe('a');
  for (const [field, change] of [
    ['opts.delay', { opts: { delay: 5 } }],
    ['opts.jobId', { opts: { jobId: 'b' } }],
    ['opts.deduplication', { opts: { deduplication: { id: 'e' } } }],
    ['attempts', { opts: { attempts: -1 } }],
    ['data', { data: 5n }],
    ['name', { name: 'n'.repeat(256) }],
    ['change.priority', { priority: 1 }],
    ['change.payload', { name: 'x', payload: {} }],
    ['change', {}],
    ['change', { opts: {} }],
    ['change', { opts: { attempts: undefined }, name: undefined }],
    ['change', 'x'],
    ['opts', { opts: [] }],
    ['opts.atempts', { opts: { atempts: null } }],
    ['opts.jobId', { opts: { jobId: null } }],
  ] as const) {
    await expect(queue.updateJob('a', change as never)).rejects.toMatchObject({ field });
  }
  await job?.promote();
  expect(await queue.getPrioritized()).toMatchObject([{ id: 'a', name: 'new', data: { v: 2 } }]);
});

const everything = {
  attempts: 5,
  backoff: { type: 'exponential' as const, delay: 50 },
  priority: 4,
  group: 'a',
  timeout: '1m',
  keepLogs: 3,
  telemetry: { metadata: 'm' },
  timestamp: 1_700_000_000_000,
  removeOnFail: true,
};

test.for([
  ['in the timers', { at: Date.now() + HOUR }],
  ['in its queue', {}],
] as const)(
  'updateJob of one option leaves all others, %s; null takes one away',
  async ([, time], { task }) => {
    const { queue } = open(task, {
      defaultJobOptions: { removeOnComplete: 5 },
    });
    await queue.add('x', {}, { ...everything, ...time, jobId: 'a' });
    const optsOf = async () => {
      const { delay: _, ...opts } = ((await queue.getJob('a'))?.opts ?? {}) as JobOptions;
      return opts;
    };
    const before = await optsOf();
    expect(before).toMatchObject({ attempts: 5, group: 'a', removeOnComplete: 5 });
    queue.jobsOpts = { attempts: 9 } as never;
    await queue.updateJob('a', { opts: { priority: 1 } });
    expect(await optsOf()).toEqual({ ...before, priority: 1 });
    expect((await queue.getJob('a'))?.priority).toBe(1);
    await queue.updateJob('a', { opts: { attempts: 0 } });
    expect(await optsOf()).toEqual({ ...before, priority: 1, attempts: 0 });
    expect((await queue.getJob('a'))?.priority).toBe(1);
    await queue.updateJob('a', { opts: { group: null, keepLogs: null, telemetry: null, priority: null } });
    const { group: _1, keepLogs: _2, telemetry: _3, priority: _4, ...rest } = before;
    const { telemetry: _5, ...after } = await optsOf();
    expect(after).toEqual({ ...rest, attempts: 0 });
    expect((await queue.getJob('a'))?.priority).toBe(0);
  },
);

test.for([
  ['in the timers', { delay: HOUR }],
  ['in its queue', {}],
] as const)('updates of different options at once all stand, %s', async ([, time], { task }) => {
  const { queue } = open(task);
  for (let i = 0; i < 10; i++) {
    const jobId = `a${i}`;
    await queue.add('x', {}, { jobId, ...time });
    await Promise.all([
      queue.updateJob(jobId, { opts: { attempts: 3 } }),
      queue.updateJob(jobId, { opts: { backoff: 50 } }),
      queue.updateJob(jobId, { opts: { group: 'b' } }),
    ]);
    expect((await queue.getJob(jobId))?.opts).toMatchObject({
      attempts: 3,
      backoff: { delay: 50 },
      group: 'b',
    });
  }
});

test('changeDelay takes durations as text, and refuses what is none', async ({ task }) => {
  const { queue } = open(task);
  const { scheduledFor } = await queue.add('x', {}, { jobId: 'a', delay: HOUR });
  await queue.changeDelay('a', '2h');
  const moved = (await queue.getJob('a'))?.scheduledFor ?? 0;
  expect(moved - scheduledFor).toBeGreaterThanOrEqual(HOUR);
  for (const delay of ['5', Number.NaN, -1, 1.5, null]) {
    await expect(queue.changeDelay('a', delay as number)).rejects.toMatchObject({ code: 'INVALID_DURATION' });
    await expect((await queue.getJob('a'))?.changeDelay(delay as number)).rejects.toMatchObject({
      field: 'delay',
    });
  }
  expect((await queue.getJob('a'))?.scheduledFor).toBe(moved);
});

test('B38: the payload’s text is the same after every change, every retry and the hand-over', async ({
  task,
}) => {
  const { queue, prefix } = open(task);
  await schedule(prefix);
  const data = JSON.parse(
    '{"a":[],"o":{},"x":[[]],"n":9007199254740991,"m":1700000000123456,"f":0.1,"s":"\\u0000 é 😀","nul":null}',
  );
  const text = JSON.stringify(data);
  await queue.add('x', data, {
    jobId: 'a',
    delay: HOUR,
    attempts: 3,
    backoff: 20,
    deduplication: { id: 'd' },
  });
  await queue.changeDelay('a', 2 * HOUR);
  await queue.updateJob('a', { name: 'y' });
  await (await queue.getJob('a'))?.changePriority({ priority: 4 });
  await queue.pauseJob('a', { note: '[]' });
  await queue.resumeJob('a');
  const seen: string[] = [];
  const { hostname: host, port } = new URL(sharedRedisUrl());
  const worker = new Worker(
    'q',
    async (job) => {
      seen.push(JSON.stringify(job.data));
      if (seen.length < 3) throw new Error('again');
    },
    { connection: { host, port: Number(port), maxRetriesPerRequest: null }, prefix },
  );
  onCleanup('worker', () => worker.close());
  await queue.changeDelay('a', 50);
  await eventually(() => seen.length === 3);
  expect(seen).toEqual([text, text, text]);
  expect(await queue.backend.shard.client.hget(queue.toKey('a'), 'data')).toBe(text);
});
