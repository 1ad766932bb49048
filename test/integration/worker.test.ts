import { DelayedError, Worker as StockWorker } from 'bullmq';
import { expect, onTestFinished, test } from 'vitest';
import {
  type Handlers,
  Queue,
  type Run,
  Scheduler,
  UnrecoverableError,
  Worker,
  type WorkerOptions,
} from '../../src/index.js';
import { RunScripts } from '../../src/redis/run-scripts.js';
import { WorkerRegistry } from '../../src/redis/worker-registry.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';

const LOCK = { lockDuration: 3000, lockRenewTime: 1000, stalledInterval: 300 };

function open(task: { name: string }) {
  const prefix = namespaceFor(task);
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  const work = (handlers: Handlers, options: WorkerOptions = {}) => {
    const worker = new Worker('q', handlers, { connection: sharedRedisUrl(), prefix, ...LOCK, ...options });
    worker.on('error', () => undefined);
    onTestFinished(() => worker.close(true));
    return worker;
  };
  return { queue, prefix, work, namespace: `carillon-${prefix}` };
}

/** Resolves when the signal aborts; then throws its reason, as a handler that stops does. */
function untilStopped(run: Run): Promise<never> {
  return new Promise((_, reject) => {
    run.signal.addEventListener('abort', () => reject(run.signal.reason), { once: true });
  });
}

test('a handler gets the run: who it is, when it was due, which attempt, under which key and token', async ({
  task,
}) => {
  const { queue, work, namespace } = open(task);
  const runs: Run[] = [];
  work({ send: (run: Run) => void runs.push(run) });
  const job = await queue.add('send', { to: 'ann' }, { jobId: 'order-5', delay: 0 });
  await eventually(() => expect(runs).toHaveLength(1));
  const [run] = runs as [Run];
  expect(run).toMatchObject({
    jobId: 'order-5',
    runId: 'order-5',
    name: 'send',
    data: { to: 'ann' },
    scheduledFor: job.scheduledFor,
    attempt: 1,
    idempotencyKey: `${namespace}:q:order-5@${job.scheduledFor}`,
  });
  expect(run.lateBy).toBeLessThan(5000);
  expect(run.fencingToken).toMatch(/^\d{16}$/);
  await eventually(async () => expect(await queue.getJobState('order-5')).toBe('completed'));
});

test('a name without a handler fails clearly, and a processor function works as in BullMQ', async ({
  task,
}) => {
  const { queue, work, prefix } = open(task);
  const first = work({ send: () => 1 });
  await queue.add('sned', {}, { jobId: 'typo' });
  await eventually(async () =>
    expect((await queue.getJob('typo'))?.failedReason).toContain('no handler for jobs named "sned"'),
  );
  await first.close();
  const worker = new Worker('q', async (job, _token, signal) => [job.data.n, signal?.aborted], {
    connection: sharedRedisUrl(),
    prefix,
  });
  onTestFinished(() => worker.close(true));
  await queue.add('any', { n: 7 }, { jobId: 'plain' });
  await eventually(async () => expect((await queue.getJob('plain'))?.returnvalue).toEqual([7, false]));
});

test.each([
  [{ lockDuration: 10_000, lockRenewTime: 5000 }, 'lockDuration', 'INVALID_OPTION'],
  [{ skipLockRenewal: true }, 'skipLockRenewal', 'UNSUPPORTED'],
  [{ shutdownGrace: 'soon' }, 'shutdownGrace', 'INVALID_DURATION'],
  [{ timeout: 0 }, 'timeout', 'INVALID_DURATION'],
  [{ effects: 'none' }, 'effects', 'INVALID_OPTION'],
  [{ concurency: 5 }, 'concurency', 'INVALID_OPTION'],
  [{ connection: { commandTimeout: 1000 } }, 'connection.commandTimeout', 'INVALID_OPTION'],
])('refused before anything is opened: %o', (options, field, code) => {
  expect(() => new Worker('q', { a: () => 1 }, options as WorkerOptions)).toThrow(
    expect.objectContaining({ code, field }),
  );
});

test.each([
  [{}, 'handlers'],
  [{ a: 5 }, 'handlers.a'],
  [{ a: { handle: 5 } }, 'handlers.a.handle'],
  [{ a: { handle: (): number => 1, effects: 'twice' } }, 'handlers.a.effects'],
  [{ a: { handle: (): number => 1, timout: 5 } }, 'handlers.a.timout'],
])('handlers are checked: %o', (handlers, field) => {
  expect(() => new Worker('q', handlers as Handlers)).toThrow(
    expect.objectContaining({ code: 'INVALID_OPTION', field }),
  );
});

test('each attempt has a higher token; a checkpoint outlives a failure, a late one of an earlier attempt is refused', async ({
  task,
}) => {
  const { queue, work } = open(task);
  const runs: Run[] = [];
  work({
    async walk(run: Run) {
      runs.push(run);
      if (run.attempt === 1) {
        await run.checkpoint({ page: 3 });
        throw new Error('broken on page 4');
      }
      await expect(runs[0]?.checkpoint({ page: 1 })).rejects.toMatchObject({ code: 'STALE_RUN' });
      return run.lastCheckpoint();
    },
  });
  await queue.add('walk', {}, { jobId: 'w', attempts: 2 });
  await eventually(async () => expect((await queue.getJob('w'))?.returnvalue).toEqual({ page: 3 }));
  const [first, second] = runs as [Run, Run];
  expect(BigInt(second.fencingToken)).toBeGreaterThan(BigInt(first.fencingToken));
  expect(second.idempotencyKey).toBe(first.idempotencyKey);
});

test('an attempt that takes longer than its timeout is aborted and fails; the job’s own limit wins', async ({
  task,
}) => {
  const { queue, work } = open(task);
  const reasons: unknown[] = [];
  const wait = async (run: Run): Promise<void> => {
    await untilStopped(run).catch((error) => {
      reasons.push(error);
      throw error;
    });
  };
  work({ slow: { handle: wait, timeout: '150ms' }, own: { handle: wait, timeout: '1h' } });
  await queue.add('slow', {}, { jobId: 's' });
  await queue.add('own', {}, { jobId: 'o', timeout: 100 });
  for (const id of ['s', 'o']) {
    await eventually(async () =>
      expect((await queue.getJob(id))?.failedReason).toMatch(/took longer than 1[05]0 ms/),
    );
  }
  expect(reasons).toMatchObject([{ code: 'RUN_TIMEOUT' }, { code: 'RUN_TIMEOUT' }]);
});

test('a running run is cancelled by another process: its signal aborts within a second, the history says why', async ({
  task,
}) => {
  const { queue, work } = open(task);
  let started = 0;
  let aborted: unknown;
  work({
    async long(run: Run) {
      started = Date.now();
      await untilStopped(run).catch((error) => {
        aborted = { after: Date.now() - asked, message: error.message };
        throw error;
      });
    },
  });
  await queue.add('long', {}, { jobId: 'l', attempts: 3 });
  await eventually(() => expect(started).toBeGreaterThan(0));
  const asked = Date.now();
  expect(await queue.cancel('l', { reason: 'wrong list' })).toEqual({ where: 'worker' });
  await eventually(() => expect(aborted).toMatchObject({ message: 'cancelled: wrong list' }));
  expect((aborted as { after: number }).after).toBeLessThan(5000);
  await eventually(async () => expect(await queue.getJobState('l')).toBe('unknown'));
  const history = await queue.backend.shard.client.xrange(queue.backend.shard.keys.history, '-', '+');
  expect(history.at(-1)?.[1]).toEqual(expect.arrayContaining(['q:l', 'cancelled', 'wrong list']));
  expect((await queue.add('long', {}, { jobId: 'l', delay: 1e7 })).answer).toBe('created');
});

test('a handler that returns although it was asked to cancel has completed', async ({ task }) => {
  const { queue, work } = open(task);
  let started = false;
  work({
    async long(run: Run) {
      started = true;
      await untilStopped(run).catch(() => undefined);
      return 'done all the same';
    },
  });
  await queue.add('long', {}, { jobId: 'l' });
  await eventually(() => started);
  await queue.cancel('l');
  await eventually(async () => expect((await queue.getJob('l'))?.returnvalue).toBe('done all the same'));
  expect(
    await queue.backend.shard.client.hget(`${queue.backend.shard.base}q:l`, 'carillon:asked'),
  ).toBeNull();
});

test('a running run is paused: it keeps checkpoint and attempts, stays paused until resumed, and goes on from there', async ({
  task,
}) => {
  const { queue, work } = open(task);
  const seen: [number, unknown][] = [];
  work({
    async walk(run: Run) {
      seen.push([run.attempt, run.lastCheckpoint()]);
      if (seen.length > 1) return 'end';
      await run.checkpoint({ page: 7 });
      return untilStopped(run);
    },
  });
  await queue.add('walk', {}, { jobId: 'w' });
  await eventually(() => expect(seen).toHaveLength(1));
  expect(await queue.pauseJob('w', { note: 'the disk is full' })).toEqual({ where: 'worker' });
  await eventually(async () =>
    expect((await queue.backend.scripts.get('q', 'w')).record).toMatchObject({
      state: 'paused',
      note: 'the disk is full',
    }),
  );
  expect(await queue.getJobCounts('waiting', 'active', 'failed')).toEqual({
    waiting: 0,
    active: 0,
    failed: 0,
  });
  await expect(queue.cancel('other')).rejects.toMatchObject({ code: 'NOT_FOUND' });
  await queue.resumeJob('w');
  await eventually(async () => expect((await queue.getJob('w'))?.returnvalue).toBe('end'));
  expect(seen).toEqual([
    [1, undefined],
    [1, { page: 7 }],
  ]);
  await expect(queue.resumeJob('w')).rejects.toMatchObject({ code: 'CONFLICT' });
  await expect(queue.pauseJob('w')).rejects.toMatchObject({ code: 'CONFLICT' });
});

test('a stock worker cannot be asked, and the answer says so', async ({ task }) => {
  const { queue, prefix } = open(task);
  let end: () => void = () => undefined;
  const url = new URL(sharedRedisUrl());
  const stock = new StockWorker('q', () => new Promise<void>((resolve) => (end = resolve)), {
    connection: { host: url.hostname, port: Number(url.port) },
    prefix,
  });
  onCleanup('stock worker', () => stock.close());
  await queue.add('a', {}, { jobId: 'a' });
  await eventually(async () => expect(await queue.getJobState('a')).toBe('active'));
  await expect(queue.cancel('a')).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    message: /plain BullMQ worker/,
  });
  await expect(queue.pauseJob('a')).rejects.toMatchObject({ code: 'UNSUPPORTED' });
  end();
  await eventually(async () => expect(await queue.getJobState('a')).toBe('completed'));
});

test('close: no more runs, the signal aborts, what does not end in its grace is handed back without an attempt', async ({
  task,
}) => {
  const { queue, work } = open(task);
  const [started, stopped]: [string[], string[]] = [[], []];
  const worker = work(
    {
      async stops(run: Run) {
        started.push(run.name);
        await untilStopped(run).catch((error) => {
          stopped.push(error.message);
          throw error;
        });
      },
      async ends(run: Run) {
        started.push(run.name);
        await untilStopped(run).catch(() => undefined);
        return 'in time';
      },
      deaf(run: Run) {
        started.push(run.name);
        return new Promise(() => undefined);
      },
    },
    { concurrency: 3, shutdownGrace: '300ms' },
  );
  for (const name of ['stops', 'ends', 'deaf']) await queue.add(name, {}, { jobId: name });
  await eventually(() => expect(started).toHaveLength(3));
  await queue.add('stops', {}, { jobId: 'later' });
  await worker.close();
  expect(stopped).toEqual(['the worker shuts down']);
  expect((await queue.getJob('ends'))?.returnvalue).toBe('in time');
  for (const id of ['stops', 'deaf', 'later']) {
    expect(await queue.getJobState(id)).toBe('waiting');
    expect((await queue.getJob(id))?.attemptsMade).toBe(0);
  }
});

test('once: the first result for all attempts and runs, with its Redis commands in the same step', async ({
  task,
}) => {
  const { queue, work, prefix } = open(task);
  let acts = 0;
  work({
    async pay(run: Run<{ invoice: string }>) {
      const receipt = await run.once(run.data.invoice, (effect) => {
        acts += 1;
        effect.command('incrby', `${prefix}:balance`, 10);
        return { receipt: acts };
      });
      await expect(
        run.once('bad', (effect) => effect.command('incrby', `${prefix}:balance`, 'ten')),
      ).rejects.toMatchObject({ code: 'EFFECT_FAILED' });
      await expect(
        run.once('long', (effect) =>
          effect.command('rpush', `${prefix}:list`, ...Array<number>(2000).fill(1)),
        ),
      ).rejects.toMatchObject({ code: 'INVALID_OPTION', field: 'command' });
      if (run.attempt < 3 && run.jobId === 'a') throw new Error('once more');
      return receipt;
    },
  });
  await queue.add('pay', { invoice: 'i-5' }, { jobId: 'a', attempts: 3 });
  await queue.add('pay', { invoice: 'i-5' }, { jobId: 'b' });
  await queue.add('pay', { invoice: 'i-6' }, { jobId: 'c' });
  for (const [id, receipt] of [
    ['a', 1],
    ['b', 1],
    ['c', 2],
  ] as const) {
    await eventually(async () => expect((await queue.getJob(id))?.returnvalue).toEqual({ receipt }));
  }
  expect(await queue.backend.shard.client.get(`${prefix}:balance`)).toBe('20');
});

test('snooze puts a run off without an attempt; UnrecoverableError ends it at once', async ({ task }) => {
  const { queue, work } = open(task);
  let calls = 0;
  work({
    async limited(run: Run) {
      calls += 1;
      if (calls < 3) await run.snooze('50ms');
      return run.attempt;
    },
    never: () => {
      throw new UnrecoverableError('no such account');
    },
  });
  await queue.add('limited', {}, { jobId: 'l' });
  await queue.add('never', {}, { jobId: 'n', attempts: 5 });
  await eventually(async () => expect((await queue.getJob('l'))?.returnvalue).toBe(1));
  await eventually(async () => expect(await queue.getJobState('n')).toBe('failed'));
  expect((await queue.getJob('n'))?.attemptsMade).toBe(1);
});

test('a blocked event loop is logged with the handler’s name, and the lock is not trusted after it', async ({
  task,
}) => {
  const { queue, work } = open(task);
  const lines: { fields: { handlers?: string[] }; message?: string }[] = [];
  const log = (fields: object | string, message?: string) =>
    void lines.push({ fields: fields as never, message });
  const logger = { debug: log, info: log, warn: log, error: log, child: () => logger } as never;
  const aborted: string[] = [];
  work(
    {
      async busy(run: Run) {
        run.signal.addEventListener('abort', () => aborted.push((run.signal.reason as Error).message));
        const until = performance.now() + 700;
        while (performance.now() < until);
        await expect(run.checkpoint(1)).rejects.toMatchObject({ code: 'STALE_RUN' });
      },
    },
    { lockDuration: 600, lockRenewTime: 200, stalledInterval: 60_000, logger },
  );
  await queue.add('busy', {}, { jobId: 'b' });
  await eventually(() => expect(aborted).toEqual(['the lock of this run can no longer be trusted']));
  await eventually(() =>
    expect(lines).toContainEqual(
      expect.objectContaining({
        fields: expect.objectContaining({ handlers: ['busy'] }),
        message: expect.stringContaining('the event loop stood still'),
      }),
    ),
  );
});

test('a later attempt in the same worker keeps its lock when the one that lost it ends', async ({ task }) => {
  const { queue, work } = open(task);
  const starts: number[] = [];
  let secondBegan: () => void = () => undefined;
  const second = new Promise<void>((resolve) => {
    secondBegan = resolve;
  });
  const aborted: string[] = [];
  work(
    {
      async run(run: Run) {
        starts.push(run.attempt);
        if (starts.length === 1) {
          const until = performance.now() + 900;
          while (performance.now() < until);
          await second;
          return 'late';
        }
        run.signal.addEventListener('abort', () => aborted.push((run.signal.reason as Error).message));
        secondBegan();
        const began = performance.now();
        // Longer than three locks.
        await eventually(() => performance.now() - began > 2000, { every: 50 });
        return 'in time';
      },
    },
    { lockDuration: 600, lockRenewTime: 200, stalledInterval: 100, concurrency: 2, maxStalledCount: 3 },
  );
  await queue.add('run', {}, { jobId: 'r' });
  await eventually(async () => expect((await queue.getJob('r'))?.returnvalue).toBe('in time'), {
    timeout: 20_000,
  });
  expect(starts).toHaveLength(2);
  expect(aborted).toEqual([]);
});

test('workers tell that they live, what they handle, and drain when asked', async ({ task }) => {
  const { queue, work } = open(task);
  const registry = new WorkerRegistry(queue.backend.shard);
  let end: () => void = () => undefined;
  const worker = work({
    a: { effects: 'idempotent', handle: () => new Promise<void>((resolve) => (end = resolve)) },
    b: () => 1,
  });
  await eventually(async () =>
    expect(await registry.list()).toMatchObject([
      {
        id: worker.id,
        queue: 'q',
        pid: process.pid,
        handlers: { a: 'idempotent', b: null },
        draining: false,
      },
    ]),
  );
  expect(await registry.effectsOf('q', ['a', 'b', 'c'])).toEqual(['idempotent', 'mayRepeat', undefined]);
  await queue.add('a', {}, { jobId: 'held' });
  await eventually(async () => expect(await queue.getJobState('held')).toBe('active'));
  await registry.drain(worker.id, 'new kernel');
  await eventually(async () => expect(worker.isPaused()).toBe(true));
  await queue.add('b', {}, { jobId: 'left' });
  end();
  await eventually(async () => expect(await queue.getJobState('held')).toBe('completed'));
  expect(await queue.getJobState('left')).toBe('waiting');
  await registry.endDrain(worker.id);
  await eventually(async () => expect(await queue.getJobState('left')).toBe('completed'));
  await worker.close();
  expect(await registry.list()).toEqual([]);
  await expect(registry.drain('nobody', '')).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

test('an order to drain outlives a silence of its worker', async ({ task }) => {
  const { queue } = open(task);
  const { shard } = queue.backend;
  const registry = new WorkerRegistry(shard);
  const facts = (id: string) => ({
    ...{
      id,
      queue: 'q',
      host: 'h',
      pid: 1,
      startedAt: '',
      concurrency: 1,
      running: 0,
      handlers: {},
      draining: false,
    },
  });
  await registry.beat(facts('cut-off'));
  await registry.drain('cut-off', 'new kernel');
  await shard.client.zadd(shard.keys.beats, 1, 'cut-off');
  await registry.beat(facts('other'));
  expect((await registry.list()).map(({ id }) => id)).toEqual(['other']);
  expect(await registry.beat(facts('cut-off'))).toEqual({ drain: { note: 'new kernel' } });
  await registry.beat(facts('cut-off'), true);
  expect(await registry.beat(facts('cut-off'))).toEqual({ drain: undefined });
});

test('a run that lost its lock cannot complete, checkpoint or leave', async ({ task }) => {
  const { queue } = open(task);
  const runs = new RunScripts(queue.backend.shard);
  await queue.add('a', {}, { jobId: 'a' });
  const { client, base } = queue.backend.shard;
  await client.set(`${base}q:a:lock`, 'mine');
  const held = { queue: 'q', runId: 'a', lock: 'mine' };
  const first = await runs.claim(held, 5000, {});
  const second = await runs.claim(held, 5000, {});
  expect(Number(second.token)).toBeGreaterThan(Number(first.token));
  await expect(runs.checkpoint(held, first.token, '1')).rejects.toMatchObject({ code: 'STALE_RUN' });
  await expect(
    runs.record(held, first.token, 'k', 1000, { result: '1', commands: [] }),
  ).rejects.toMatchObject({ code: 'STALE_RUN' });
  await runs.checkpoint(held, second.token, '2');
  await client.set(`${base}q:a:lock`, 'another');
  await expect(runs.leave(held)).rejects.toMatchObject({
    code: 'STALE_RUN',
  });
  await expect(runs.claim(held, 5000, {})).rejects.toMatchObject({ code: 'STALE_RUN' });
});

test('retries rest by the capped rule, with BullMQ’s own options', async ({ task }) => {
  const { queue, work } = open(task);
  let calls = 0;
  const worker = work({
    flaky(run: Run) {
      calls += 1;
      if (run.attempt < 3) throw new Error(`no ${run.attempt}`);
      return calls;
    },
    away: () => {
      throw new Error('not there');
    },
  });
  await queue.add(
    'flaky',
    {},
    {
      jobId: 'f',
      attempts: 3,
      backoff: { type: 'exponential', delay: 3_600_000, maxDelay: 60 },
    },
  );
  await eventually(async () => expect((await queue.getJob('f'))?.returnvalue).toBe(3));
  await queue.add(
    'away',
    {},
    { jobId: 'a', attempts: 2, backoff: { type: 'exponential', delay: 60_000, jitter: 1 } },
  );
  await eventually(async () => expect(await queue.getJobState('a')).toBe('delayed'));
  expect((await queue.getJob('a'))?.delay).toBeLessThanOrEqual(60_000);
  await worker.close();
});

test('cancelOther: the worker that has the run is asked to stop, and the tick that waited comes', async ({
  task,
}) => {
  const { queue, work, prefix } = open(task);
  const scheduler = new Scheduler({ redis: sharedRedisUrl(), prefix });
  onTestFinished(() => scheduler.stop());
  await scheduler.start();
  const reasons: string[] = [];
  const started: number[] = [];
  work(
    {
      async tick(run: Run) {
        started.push(run.scheduledFor);
        if (started.length > 1) return;
        await untilStopped(run).catch((error: Error) => {
          reasons.push(error.message);
          throw error;
        });
      },
    },
    { concurrency: 5 },
  );
  await queue.schedules.upsert(
    's',
    { every: '1s', missed: 'skip', overlap: 'cancelOther' },
    { name: 'tick', data: {} },
  );
  await eventually(() => expect(reasons).toEqual(['cancelled: overlap']), { timeout: 20_000 });
  await eventually(() => expect(started.length).toBeGreaterThan(1), { timeout: 20_000 });
  await queue.schedules.get('s').delete();
});

test('a processor function gets BullMQ’s lock and signal: it can move its job, and cancelJob reaches it', async ({
  task,
}) => {
  const { queue, prefix } = open(task);
  let starts = 0;
  const worker = new Worker(
    'q',
    async (job, token, signal) => {
      starts += 1;
      if (starts === 1) {
        await job.moveToDelayed(Date.now() + 20, token);
        throw new DelayedError();
      }
      await new Promise((_, reject) => signal?.addEventListener('abort', () => reject(signal.reason)));
    },
    { connection: sharedRedisUrl(), prefix, ...LOCK },
  );
  onTestFinished(() => worker.close(true));
  await queue.add('any', {}, { jobId: 'moved' });
  await eventually(() => expect(starts).toBe(2));
  expect(worker.cancelJob('moved', 'not now')).toBe(true);
  await eventually(async () => expect(await queue.getJobState('moved')).toBe('failed'));
});

test('a lock that is not trusted any more, but stands in Redis, costs no attempt', async ({ task }) => {
  const { queue, work } = open(task);
  const { client, base } = queue.backend.shard;
  const attempts: number[] = [];
  let stop: () => void = () => undefined;
  const worker = work({
    async long(run: Run) {
      attempts.push(run.attempt);
      if (attempts.length > 1) return 'second';
      const stopped = untilStopped(run).catch((error) => error);
      const held = await client.get(`${base}q:l:lock`);
      // What a renewal finds then is another's lock; afterwards it is this worker's again.
      await client.set(`${base}q:l:lock`, 'another', 'PX', 60_000);
      const reason = await stopped;
      await client.set(`${base}q:l:lock`, held ?? '', 'PX', 60_000);
      stop();
      throw reason;
    },
  });
  await queue.add('long', {}, { jobId: 'l' });
  await new Promise<void>((resolve) => (stop = resolve));
  await eventually(async () => expect((await queue.getJob('l'))?.returnvalue).toBe('second'));
  expect(attempts).toEqual([1, 1]);
  await worker.close();
});

test('a run that this worker fetches again waits until the attempt that lost it has stopped, and keeps its own lock', async ({
  task,
}) => {
  const { queue, work } = open(task);
  const { client, base } = queue.backend.shard;
  const runs: Run[] = [];
  const at: string[] = [];
  let end: () => void = () => undefined;
  const worker = work(
    {
      async long(run: Run) {
        runs.push(run);
        if (runs.length === 1) {
          await untilStopped(run).catch(() => undefined);
          await eventually(async () => expect(await client.exists(`${base}q:l:lock`)).toBe(1));
          at.push('first stops');
          throw new Error('lost it');
        }
        at.push('second starts');
        await new Promise<void>((resolve) => (end = resolve));
        return run.signal.aborted;
      },
    },
    { concurrency: 2 },
  );
  await queue.add('long', {}, { jobId: 'l' });
  await eventually(() => expect(runs).toHaveLength(1));
  await client.del(`${base}q:l:lock`);
  await eventually(() => expect(at).toEqual(['first stops', 'second starts']));
  // Longer than a lock: only renewals let it live.
  const since = performance.now();
  await eventually(() => performance.now() - since > LOCK.lockDuration + 500);
  expect(await client.exists(`${base}q:l:lock`)).toBe(1);
  end();
  await eventually(async () => expect((await queue.getJob('l'))?.returnvalue).toBe(false));
  await worker.close();
});

test('a time-out counts from the start of the handler, which so always starts', async ({ task }) => {
  const { queue, work } = open(task);
  const started: string[] = [];
  work({
    quick: {
      timeout: 1,
      async handle(run: Run) {
        started.push(run.runId);
        await untilStopped(run);
      },
    },
  });
  await queue.addBulk(
    Array.from({ length: 20 }, (_, i) => ({ name: 'quick', data: {}, opts: { jobId: `r-${i}` } })),
  );
  await eventually(async () => expect(await queue.getJobCountByTypes('failed')).toBe(20));
  expect(started).toHaveLength(20);
});

test('a checkpoint that JSON cannot hold is refused clearly', async ({ task }) => {
  const { queue, work } = open(task);
  const circle: { self?: unknown } = {};
  circle.self = circle;
  work({
    async keep(run: Run) {
      for (const value of [circle, 5n, undefined]) {
        await expect(run.checkpoint(value)).rejects.toMatchObject({
          code: 'INVALID_OPTION',
          field: 'checkpoint',
        });
      }
      return 'refused';
    },
  });
  await queue.add('keep', {}, { jobId: 'k' });
  await eventually(async () => expect((await queue.getJob('k'))?.returnvalue).toBe('refused'));
});

test('a dead run that is sent anew does not stop for an order that was meant for its earlier life', async ({
  task,
}) => {
  const { queue, work } = open(task);
  let starts = 0;
  work({
    slow: {
      timeout: 50,
      async handle(run: Run) {
        starts += 1;
        if (starts > 1) return 'second life';
        await untilStopped(run).catch(() => undefined);
        await queue.cancel(run.jobId, { reason: 'too late: its time is over' });
        throw new Error('over');
      },
    },
  });
  await queue.add('slow', {}, { jobId: 's' });
  await eventually(async () => expect(await queue.getJobState('s')).toBe('failed'));
  const job = await queue.getJob('s');
  await job?.retry('failed', { resetAttemptsMade: true, resetAttemptsStarted: true });
  await eventually(async () => expect((await queue.getJob('s'))?.returnvalue).toBe('second life'));
});

test('a block of just above a third of the lock is logged each time', async ({ task }) => {
  const { queue, work } = open(task);
  const blocked: number[] = [];
  const log = (fields: object | string) => {
    if (typeof fields === 'object' && 'blockedFor' in fields) blocked.push(Number(fields.blockedFor));
  };
  const logger = { debug: log, info: log, warn: log, error: log, child: () => logger } as never;
  work(
    {
      async busy(run: Run<{ ms: number; after: number }>) {
        // At several moments between two looks.
        await new Promise((resolve) => setTimeout(resolve, run.data.after));
        const until = performance.now() + run.data.ms;
        while (performance.now() < until);
      },
    },
    { logger },
  );
  const third = LOCK.lockDuration / 3;
  for (let i = 0; i < 3; i++) {
    const ms = third + 20;
    await queue.add('busy', { ms, after: i * 57 }, { jobId: `b${i}` });
    await eventually(() => expect(blocked.filter((stood) => stood >= ms)).toHaveLength(i + 1));
  }
});
