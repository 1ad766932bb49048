import { type Job, QueueEvents, Worker } from 'bullmq';
import { QueueEvents as QueueEvents5, Worker as Worker5 } from 'bullmq5';
import { expect, onTestFinished, test } from 'vitest';
import { type JobOptions, Queue, Scheduler } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { connection } from './twins.js';

/** A run as a worker sees it. */
interface Run {
  id: string;
  name: string;
  data: unknown;
  opts: Record<string, unknown>;
  attemptsMade: number;
  priority: number | undefined;
  delay: number | undefined;
}

interface Line {
  queue: Queue;
  runs: Run[];
  /** Starts the stock worker; `handle` gets each run, and may throw. */
  work(handle?: (run: Run) => unknown, options?: { concurrency?: number }): Promise<void>;
  /** What QueueEvents of the same version told, in order: `<event> <job id>`. */
  told: string[];
}

/** The classes of 5.81 are used as those of 6.7: what differs between them is not in their types. */
type Version = [name: string, worker: typeof Worker, queueEvents: typeof QueueEvents];
const CURRENT: Version = ['BullMQ 6.7', Worker, QueueEvents];
const VERSIONS: Version[] = [
  CURRENT,
  ['BullMQ 5.81', Worker5 as unknown as typeof Worker, QueueEvents5 as unknown as typeof QueueEvents],
];

/** A queue of ours, a scheduler, and a stock worker that runs what they enqueue. */
async function line(task: { name: string }, [, AnyWorker, AnyQueueEvents]: Version): Promise<Line> {
  const prefix = namespaceFor(task);
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  const scheduler = new Scheduler({ redis: sharedRedisUrl(), prefix });
  onTestFinished(() => scheduler.stop());
  await scheduler.start();
  const events = new AnyQueueEvents('q', { connection: connection(), prefix });
  onCleanup('queue events', () => events.close());
  await events.waitUntilReady();
  const told: string[] = [];
  for (const event of ['added', 'waiting', 'active', 'completed', 'failed', 'delayed', 'removed'] as const) {
    events.on(event, ({ jobId }: { jobId: string }) => told.push(`${event} ${jobId}`));
  }
  const runs: Run[] = [];
  const work: Line['work'] = async (handle = () => undefined, options = {}) => {
    const process = async ({ id = '', name, data, opts, attemptsMade, priority, delay }: Job) => {
      const run: Run = { id, name, data, opts: { ...opts }, attemptsMade, priority, delay };
      runs.push(run);
      return handle(run);
    };
    const worker = new AnyWorker('q', process, {
      connection: connection(),
      prefix,
      ...options,
    }) as Worker;
    onCleanup('worker', () => worker.close());
    await worker.waitUntilReady();
  };
  return { queue, runs, work, told };
}

/** The same job in the timers (due in a moment) and straight into the queue. */
const WAYS: [string, JobOptions][] = [
  ['from a timer', { delay: 30 }],
  ['due at once', {}],
];

for (const version of VERSIONS) {
  const [name] = version;

  test.each(WAYS)(`${name} runs a job %s, its payload and name untouched`, async (_way, time) => {
    const { queue, runs, work } = await line({ name }, version);
    const data = {
      a: [],
      o: {},
      x: [[]],
      n: 9007199254740991,
      m: 1700000000123456,
      f: 0.1,
      s: '\u0000 é 😀',
      nul: null,
    };
    await queue.add('send é', data, { ...time, jobId: 'a' });
    await queue.add('nothing', undefined, { ...time, jobId: 'b' });
    await work();
    await eventually(() => runs.length === 2);
    expect(runs.sort((a, b) => (a.id < b.id ? -1 : 1))).toEqual([
      expect.objectContaining({ id: 'a', name: 'send é', data, delay: 0, attemptsMade: 0 }),
      expect.objectContaining({ id: 'b', name: 'nothing', data: {} }),
    ]);
    const client = queue.backend.shard.client;
    expect(await client.hget(queue.toKey('a'), 'data')).toBe(JSON.stringify(data));
  });

  test.each(WAYS)(`${name} takes priorities, lifo and a paused queue as given, %s`, async (_way, time) => {
    const { queue, runs, work } = await line({ name }, version);
    await queue.pause();
    await work(undefined, { concurrency: 1 });
    const opts: JobOptions[] = [{ priority: 5 }, { priority: 1 }, { priority: 3 }, {}, { lifo: true }];
    for (const [n, own] of opts.entries()) {
      await queue.add('x', {}, { ...time, ...own, jobId: `j${n}` });
      await eventually(async () => (await queue.getJobState(`j${n}`)) !== 'delayed');
    }
    expect(await queue.getJobCounts('waiting', 'prioritized', 'active')).toEqual({
      waiting: 2,
      prioritized: 3,
      active: 0,
    });
    expect(runs).toEqual([]);
    await queue.resume();
    await eventually(() => runs.length === 5);
    expect(runs.map(({ id }) => id)).toEqual(['j4', 'j3', 'j1', 'j2', 'j0']);
    expect(runs.map(({ priority }) => priority)).toEqual([0, 0, 1, 3, 5]);
  });

  test.each(WAYS)(`${name} tries again with backoff, %s`, async (_way, time) => {
    const { queue, runs, work, told } = await line({ name }, version);
    await work(({ id, attemptsMade }) => {
      if (id === 'fails' || attemptsMade < 2) throw new Error(`try ${attemptsMade}`);
      return 'done';
    });
    await queue.add('x', {}, { ...time, jobId: 'recovers', attempts: 3, backoff: 20 });
    const backoff = { type: 'exponential', delay: 10 };
    await queue.add('x', {}, { ...time, jobId: 'fails', attempts: 2, backoff });
    await queue.add('x', {}, { ...time, jobId: 'once' });
    await eventually(() => told.includes('completed recovers') && told.includes('failed fails'));
    await eventually(() => told.includes('failed once'));
    expect(runs.filter(({ id }) => id === 'recovers').map((run) => run.attemptsMade)).toEqual([0, 1, 2]);
    expect(runs.filter(({ id }) => id === 'fails')).toHaveLength(2);
    expect(runs.find(({ id }) => id === 'fails')?.opts).toMatchObject({ attempts: 2, backoff });
    expect(await queue.getJob('recovers')).toMatchObject({ returnvalue: 'done', attemptsMade: 3 });
    expect(await queue.getJob('fails')).toMatchObject({ failedReason: 'try 1' });
    expect(await queue.getJobCounts('completed', 'failed')).toEqual({ completed: 1, failed: 2 });
  });

  test.each(WAYS)(`${name} keeps and removes finished jobs as told, %s`, async (_way, time) => {
    const { queue, work, told } = await line({ name }, version);
    await work(({ data }) => {
      if ((data as { fail?: boolean }).fail) throw new Error('no');
    });
    await queue.add('x', {}, { ...time, jobId: 'gone', removeOnComplete: true });
    await queue.add('x', {}, { ...time, jobId: 'kept', removeOnComplete: false });
    await queue.add('x', { fail: true }, { ...time, jobId: 'failed-gone', removeOnFail: { count: 0 } });
    await queue.add('x', { fail: true }, { ...time, jobId: 'failed-kept', removeOnFail: 10 });
    const ends = ['completed gone', 'completed kept', 'failed failed-gone', 'failed failed-kept'];
    await eventually(() => ends.every((end) => told.includes(end)));
    const states = await Promise.all(
      ['gone', 'kept', 'failed-gone', 'failed-kept'].map((id) => queue.getJobState(id)),
    );
    expect(states).toEqual(['unknown', 'completed', 'unknown', 'failed']);
  });

  test.each(WAYS)(`${name} tells its QueueEvents each step, %s`, async (_way, time) => {
    const { queue, work, told } = await line({ name }, version);
    await work();
    await queue.add('x', {}, { ...time, jobId: 'a' });
    await eventually(() => told.includes('completed a'));
    expect(told).toEqual(['added a', 'waiting a', 'active a', 'completed a']);
  });
}

/** A handler whose runs end when the test says so. */
function byHand() {
  const ends = new Map<string, (failure?: Error) => void>();
  return {
    handle: ({ id }: Run) =>
      new Promise<void>((resolve, reject) => {
        ends.set(id, (failure) => (failure === undefined ? resolve() : reject(failure)));
      }),
    /** The run of this id is under way. */
    isRunning: (id: string) => ends.has(id),
    end(id: string, failure?: Error) {
      ends.get(id)?.(failure);
      ends.delete(id);
    },
  };
}

test('B52: a timer’s priority holds when it comes due, and again for its retry', async ({ task }) => {
  const { queue, runs, work } = await line(task, CURRENT);
  const hand = byHand();
  const low = ['a0', 'a1', 'a2', 'a3'];
  await queue.addBulk(low.map((jobId) => ({ name: 'x', data: {}, opts: { jobId, priority: 2 } })));
  await work(hand.handle, { concurrency: 1 });
  await eventually(() => hand.isRunning('a0'));
  await queue.add('x', {}, { jobId: 'p', priority: 1, delay: 50, attempts: 2, backoff: 100 });
  await eventually(async () => (await queue.getJobState('p')) === 'prioritized');
  hand.end('a0');
  await eventually(() => hand.isRunning('p'));
  hand.end('p', new Error('once'));
  await eventually(() => hand.isRunning('a1'));
  const retryAt = Date.now() + 150;
  await eventually(() => Date.now() > retryAt);
  hand.end('a1');
  for (const id of ['p', 'a2', 'a3']) {
    await eventually(() => hand.isRunning(id));
    hand.end(id);
  }
  expect(runs.map(({ id }) => id)).toEqual(['a0', 'p', 'a1', 'p', 'a2', 'a3']);
});

test('B06: backoff doubles from its delay; without attempts there is one try, as the docs say', async ({
  task,
}) => {
  const { queue, runs, work, told } = await line(task, CURRENT);
  await work(() => {
    throw new Error('no');
  });
  const backoff = { type: 'exponential', delay: 1000 };
  await queue.add('x', {}, { jobId: 'doubles', delay: 20, attempts: 14, backoff });
  const waits: number[] = [];
  for (let attempt = 1; attempt < 14; attempt++) {
    await eventually(async () => {
      const job = await queue.getJob('doubles');
      return job?.attemptsMade === attempt && (await job.getState()) === 'delayed';
    });
    const job = await queue.getJob('doubles');
    waits.push(job?.delay ?? 0);
    await job?.promote();
  }
  expect(waits).toEqual(Array.from({ length: 13 }, (_, n) => 1000 * 2 ** n));
  await eventually(() => told.includes('failed doubles'));

  await queue.add('x', {}, { jobId: 'once', delay: 20, backoff });
  await eventually(() => told.includes('failed once'));
  expect(runs.filter(({ id }) => id === 'once')).toHaveLength(1);
});

test('B56: a paused queue starts nothing; what came due, waited or was retried meanwhile runs once after it', async ({
  task,
}) => {
  const { queue, runs, work } = await line(task, CURRENT);
  let failing = true;
  await work(({ id }) => {
    if (failing && id.startsWith('fails')) throw new Error('not yet');
  });
  const bulk = (stem: string, count: number) =>
    queue.addBulk(
      Array.from({ length: count }, (_, n) => ({ name: 'x', data: {}, opts: { jobId: `${stem}${n}` } })),
    );
  await bulk('fails', 5);
  await eventually(async () => (await queue.getFailedCount()) === 5);
  failing = false;
  await queue.pause();
  const before = runs.length;
  await bulk('waits', 10);
  await queue.add('x', {}, { jobId: 'due', delay: 100 });
  for (const id of ['fails0', 'fails1', 'fails2']) await (await queue.getJob(id))?.retry();
  await eventually(async () => (await queue.getJobState('due')) === 'waiting');
  expect(runs).toHaveLength(before);
  await queue.resume();
  const expected = [
    'due',
    'fails0',
    'fails1',
    'fails2',
    ...Array.from({ length: 10 }, (_, n) => `waits${n}`),
  ];
  await eventually(() => runs.length >= before + expected.length);
  await eventually(async () => (await queue.getCompletedCount()) === expected.length);
  const after = runs.slice(before).map(({ id }) => id);
  expect(after.sort()).toEqual(expected.sort());
  expect(await queue.getJobCounts('waiting', 'active', 'delayed', 'failed')).toEqual({
    waiting: 0,
    active: 0,
    delayed: 0,
    failed: 2,
  });
});

test('B48: every accepted id runs from a timer, and comes back as it was', async ({ task }) => {
  const { queue, runs, work } = await line(task, CURRENT);
  const ids = ['007', 'a:b:c', '日本語', '😀', '\u00e9', 'e\u0301', ' ', 'y'.repeat(1000), '\u0000', 'a\nb'];
  ids.push('__proto__', '*', 'order@5x', '"', '\\', '%s', '{a}');
  await work();
  await queue.addBulk(
    ids.map((jobId, n) => ({ name: jobId.slice(0, 50), data: { n }, opts: { jobId, delay: 50 } })),
  );
  await eventually(() => runs.length === ids.length);
  const byNumber = runs.sort((a, b) => (a.data as { n: number }).n - (b.data as { n: number }).n);
  expect(byNumber.map(({ id }) => id)).toEqual(ids);
  expect(byNumber.map(({ name }) => name)).toEqual(ids.map((id) => id.slice(0, 50)));
  await eventually(async () => (await queue.getCompletedCount()) === ids.length);
  expect(await queue.getFailedCount()).toBe(0);
});

test('a cancel that meets the pop: the run is cancelled or runs, as the answer says', async ({ task }) => {
  const { queue, runs, work } = await line(task, CURRENT);
  await work(undefined, { concurrency: 50 });
  const due = Date.now() + 500;
  const ids = Array.from({ length: 300 }, (_, n) => `j${n}`);
  await queue.addBulk(ids.map((jobId) => ({ name: 'x', data: {}, opts: { jobId, at: due } })));
  await eventually(() => Date.now() >= due - 5, { every: 1 });
  const cancelled = await Promise.all(
    ids.map((id) =>
      queue.cancel(id).then(
        () => id,
        (error) => {
          expect(['CONFLICT', 'UNSUPPORTED']).toContain((error as { code?: string }).code);
        },
      ),
    ),
  );
  const gone = new Set(cancelled.filter((id) => id !== undefined));
  await eventually(async () => {
    expect(await queue.getJobCounts('delayed', 'waiting', 'active')).toEqual({
      delayed: 0,
      waiting: 0,
      active: 0,
    });
  });
  expect(runs.map(({ id }) => id).sort()).toEqual(ids.filter((id) => !gone.has(id)).sort());
});

test('the options of a run are what BullMQ would have stored, without time and id', async ({ task }) => {
  const { queue } = await line(task, CURRENT);
  const { Queue: BullQueue } = await import('bullmq');
  const stock = new BullQueue('stock', { connection: connection(), prefix: queue.opts.prefix });
  const opts: JobOptions[] = [
    {},
    { attempts: 0 },
    { attempts: 5, backoff: 1000 },
    { backoff: { type: 'exponential', delay: 5, jitter: 0.5 } },
    { backoff: { type: 'own' } },
    { removeOnComplete: true, removeOnFail: { age: 3600, count: 10, limit: 100 } },
    { removeOnComplete: -1, removeOnFail: 0 },
    { priority: 2_097_151 },
    { priority: 0, lifo: false },
    { lifo: true },
    { keepLogs: 7, stackTraceLimit: 0, sizeLimit: 1000 },
    { timestamp: 1_700_000_000_000 },
    { telemetry: { metadata: 'm', omitContext: false } },
    { deduplication: { id: 'd', ttl: 500, extend: true } },
  ];
  const client = queue.backend.shard.client;
  const read = async (key: string) => {
    const { opts: text = '', ...hash } = await client.hgetall(key);
    const { carillon: _, jobId: __, ...stored } = JSON.parse(text);
    return { ...hash, opts: stored, timestamp: undefined };
  };
  for (const [n, own] of opts.entries()) {
    await queue.add('x', { n }, { ...own, jobId: `j${n}` });
    await stock.add('x', { n }, { ...own, jobId: `j${n}` });
    expect(await read(queue.toKey(`j${n}`))).toEqual(await read(stock.toKey(`j${n}`)));
  }
  await stock.close();
});
