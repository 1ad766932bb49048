import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { DeadLetters } from '../../src/client/dead-letters.js';
import {
  type DeadNotice,
  type Handlers,
  Queue,
  type Run,
  Scheduler,
  UnrecoverableError,
  Worker,
  type WorkerOptions,
} from '../../src/index.js';
import { DeadScripts } from '../../src/redis/dead-scripts.js';
import { WorkerRegistry } from '../../src/redis/worker-registry.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';

/** B38: what Lua's JSON would rewrite. */
const DATA = {
  a: [],
  o: {},
  x: [[]],
  n: 9007199254740991,
  m: 1700000000123456,
  f: 0.1,
  s: '\u0000 é 😀',
  nul: null,
};

async function open(task: { name: string }, handlers: Handlers, options: WorkerOptions = {}) {
  const prefix = namespaceFor(task);
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  const worker = new Worker('q', handlers, {
    connection: sharedRedisUrl(),
    prefix,
    lockDuration: 600,
    lockRenewTime: 200,
    stalledInterval: 200,
    ...options,
  });
  worker.on('error', () => undefined);
  onTestFinished(() => worker.close(true));
  return { queue, worker };
}

const failing: Handlers = {
  mail: (run: Run) => {
    throw new Error(`connect ECONNREFUSED, attempt ${run.attempt}`);
  },
  bill: () => {
    throw new UnrecoverableError('no such account');
  },
};

async function dead(queue: Queue, count: number): Promise<void> {
  await eventually(async () => expect(await queue.getJobCountByTypes('failed')).toBe(count));
}

test('list and show: payload, error of each attempt, source, reason', async ({ task }) => {
  const { queue } = await open(task, failing);
  const job = await queue.add('mail', DATA, { jobId: 'm', attempts: 2 });
  await queue.add('bill', {}, { jobId: 'b', attempts: 5 });
  await dead(queue, 2);
  const listed = await queue.dead.list();
  expect(listed).toMatchObject([{ id: expect.any(String) }, { id: expect.any(String) }]);
  expect(await queue.dead.list({ name: 'bill' })).toMatchObject([
    { id: 'b', reason: 'unrecoverable', attempts: 1, error: 'no such account' },
  ]);
  expect(await queue.dead.get('m')).toMatchObject({
    id: 'm',
    reason: 'attempts',
    attempts: 2,
    error: 'connect ECONNREFUSED, attempt 2',
    source: { kind: 'job', id: 'm', scheduledFor: job.scheduledFor },
    data: DATA,
    errors: [expect.stringContaining('attempt 2'), expect.stringContaining('attempt 1')],
  });
  await expect(queue.dead.get('nobody')).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

test('a filter: name, error text, reason, source, time; a bad one is refused', async ({ task }) => {
  const { queue } = await open(task, failing);
  for (const id of ['a', 'b', 'c']) await queue.add('mail', {}, { jobId: id });
  await queue.add('bill', {}, { jobId: 'd', attempts: 3 });
  await dead(queue, 4);
  const ids = async (filter: Parameters<typeof queue.dead.list>[0]) =>
    (await queue.dead.list(filter)).map(({ id }) => id).sort();
  expect(await ids({ text: 'econnrefused' })).toEqual(['a', 'b', 'c']);
  expect(await ids({ reason: 'attempts' })).toEqual(['a', 'b', 'c']);
  expect(await ids({ source: 'b' })).toEqual(['b']);
  expect(await ids({ to: new Date(1000) })).toEqual([]);
  expect(await ids({ from: new Date(1000) })).toEqual(['a', 'b', 'c', 'd']);
  for (const filter of [
    { reason: 'bored' },
    { nmae: 'x' },
    { text: 5 },
    { text: '' },
    { from: 'yesterday' },
  ]) {
    await expect(queue.dead.list(filter as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' });
  }
});

test('B38 requeue: alive again with all attempts and the same payload, byte for byte; or with another one', async ({
  task,
}) => {
  let broken = true;
  const seen: unknown[] = [];
  const { queue } = await open(task, {
    mail(run: Run) {
      if (broken) throw new Error('no');
      seen.push([run.attempt, run.data]);
      return 'sent';
    },
  });
  await queue.add('mail', DATA, { jobId: 'm', attempts: 2 });
  await queue.add('mail', { to: 'an' }, { jobId: 'typo' });
  await dead(queue, 2);
  const { client, base } = queue.backend.shard;
  const before = await client.hget(`${base}q:m`, 'data');
  broken = false;
  await queue.dead.requeue('m');
  await eventually(async () => expect((await queue.getJob('m'))?.returnvalue).toBe('sent'));
  expect(await client.hget(`${base}q:m`, 'data')).toBe(before);
  expect(before).toBe(JSON.stringify(DATA));
  await queue.dead.requeue('typo', { data: { to: 'ann' } });
  await eventually(() =>
    expect(seen).toEqual([
      [1, DATA],
      [1, { to: 'ann' }],
    ]),
  );
  await expect(queue.dead.requeue('m')).rejects.toMatchObject({ code: 'NOT_FOUND' });
});

test('many: dry run first, then by filter, at a rate; what dies again on the way is not met twice', async ({
  task,
}) => {
  let starts = 0;
  const { queue } = await open(task, {
    mail: () => {
      starts += 1;
      throw new Error('still broken');
    },
    bill: () => {
      throw new UnrecoverableError('no such account');
    },
  });
  await queue.addBulk(
    Array.from({ length: 12 }, (_, i) => ({ name: 'mail', data: {}, opts: { jobId: `m${i}` } })),
  );
  await queue.add('bill', {}, { jobId: 'b' });
  await dead(queue, 13);
  const meant = await queue.dead.requeueAll({ name: 'mail' }, { dryRun: true });
  expect(meant.changed).toHaveLength(12);
  expect(starts).toBe(12);
  const began = performance.now();
  expect((await queue.dead.requeueAll({ name: 'mail' }, { rate: 50 })).changed).toHaveLength(12);
  expect(performance.now() - began).toBeGreaterThan(200);
  await dead(queue, 13);
  expect(starts).toBe(24);
  expect((await queue.dead.discardAll({ name: 'mail' })).changed).toHaveLength(12);
  await queue.dead.discard('b');
  expect(await queue.dead.list()).toEqual([]);
  await expect(queue.dead.requeueAll({ all: true }, { rate: 0 })).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    field: 'rate',
  });
});

test.for([
  [{}, 'filter'],
  [{ name: undefined, text: undefined }, 'filter'],
  [{ all: false }, 'filter'],
  [{ all: 'yes' }, 'filter.all'],
  [{ all: true, name: 'mail' }, 'filter.all'],
  [{ text: '' }, 'filter.text'],
])(
  'a filter that names nothing changes nothing, and { all: true } means every one: %o',
  async ([filter, field], { task }) => {
    const { queue } = await open(task, failing);
    await queue.add('mail', {}, { jobId: 'm' });
    await dead(queue, 1);
    for (const change of ['discardAll', 'requeueAll'] as const) {
      await expect(queue.dead[change](filter as never)).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        field,
      });
    }
    expect(await queue.dead.discardAll({ all: true }, { dryRun: true })).toEqual({
      changed: ['m'],
      skipped: [],
    });
    expect(await queue.dead.discardAll({ all: true })).toEqual({ changed: ['m'], skipped: [] });
  },
);

test('a walk passes none over, though others leave under its feet', async ({ task }) => {
  const { queue, worker } = await open(task, failing, { concurrency: 50 });
  await queue.addBulk(
    Array.from({ length: 450 }, (_, i) => ({ name: 'mail', data: {}, opts: { jobId: `m${i}` } })),
  );
  await dead(queue, 450);
  await worker.close();
  const oldest = await queue.dead.list({}, { limit: 150 });
  let removing: Promise<unknown> | undefined;
  const { shard } = queue.backend;
  const source = {
    name: 'q',
    getJobLogs: queue.getJobLogs.bind(queue),
    async getJob(id: string) {
      const job = await queue.getJob(id);
      // The first page is read: now others discard what it began with.
      removing ??= Promise.all(oldest.map((letter) => queue.dead.discard(letter.id)));
      await removing;
      return job;
    },
  };
  const letters = new DeadLetters(source, new DeadScripts(shard), new WorkerRegistry(shard), 1000);
  const seen = (await letters.list({}, { limit: 1000 })).map(({ id }) => id);
  const left = await queue.dead.list({}, { limit: 1000 });
  expect(left).toHaveLength(300);
  expect(new Set(seen).size).toBe(seen.length);
  expect(left.filter(({ id }) => !seen.includes(id))).toEqual([]);
});

test('two who requeue the same one: one of them does', async ({ task }) => {
  const { queue, worker } = await open(task, failing);
  await queue.add('mail', {}, { jobId: 'm' });
  await dead(queue, 1);
  await worker.close();
  const outcomes = await Promise.allSettled([1, 2, 3].map(() => queue.dead.requeue('m')));
  expect(outcomes.filter(({ status }) => status === 'fulfilled').length).toBeGreaterThan(0);
  expect(await queue.getJobCounts('waiting', 'failed')).toEqual({ waiting: 1, failed: 0 });
});

test('stalled too often is dead with that reason; timed out and unhandled with theirs', async ({ task }) => {
  const { queue, worker } = await open(
    task,
    { slow: { handle: () => new Promise(() => undefined), timeout: '50ms' } },
    { maxStalledCount: 0 },
  );
  await worker.pause();
  await queue.add('slow', {}, { jobId: 'left' });
  // As a worker leaves it that died behind its fetch.
  const { client, base } = queue.backend.shard;
  await client.lmove(`${base}q:wait`, `${base}q:active`, 'RIGHT', 'LEFT');
  await worker.resume();
  await eventually(async () =>
    expect(await queue.dead.list({ reason: 'stalled' })).toMatchObject([{ id: 'left' }]),
  );
  await queue.add('slow', {}, { jobId: 's' });
  await queue.add('nobody', {}, { jobId: 'n' });
  await eventually(async () => expect(await queue.dead.list({ reason: 'unhandled' })).toHaveLength(1));
  await eventually(async () => expect(await queue.dead.list({ reason: 'timeout' })).toHaveLength(1), {
    timeout: 20_000,
  });
});

test('onDead: each is posted, again until the receiver has it, and not again by the next leader', async ({
  task,
}) => {
  const { queue } = await open(task, failing);
  const posts: { key: string | undefined; body: { id: string; error: string; reason: string } }[] = [];
  let refuse = true;
  const receiver = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      posts.push({
        key: request.headers['idempotency-key'] as string,
        body: JSON.parse(Buffer.concat(parts).toString()),
      });
      response.statusCode = refuse ? 503 : 204;
      response.end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    receiver.closeAllConnections();
    receiver.close();
  });
  const { port } = receiver.address() as AddressInfo;
  const { shard } = queue.backend;
  const lead = async () => {
    const scheduler = new Scheduler({
      redis: sharedRedisUrl(),
      namespace: shard.namespace,
      prefix: shard.base.slice(0, -1),
      onDead: `http://127.0.0.1:${port}/dead`,
    });
    onTestFinished(() => scheduler.stop());
    await scheduler.start();
    return scheduler;
  };
  const first = await lead();
  await queue.add('bill', {}, { jobId: 'b', attempts: 3 });
  await eventually(() => expect(posts.length).toBeGreaterThan(0), { timeout: 20_000 });
  expect(posts[0]?.body).toMatchObject({
    queue: 'q',
    id: 'b',
    error: 'no such account',
    reason: 'unrecoverable',
  });
  refuse = false;
  await eventually(
    async () => expect(await shard.client.zscore(shard.keys.deadSeen('q'), 'b')).not.toBeNull(),
    {
      timeout: 20_000,
    },
  );
  expect(new Set(posts.map(({ key }) => key)).size).toBe(1);
  const told = posts.length;
  await first.stop();
  await lead();
  await queue.add('mail', {}, { jobId: 'm' });
  await eventually(() => expect(posts.at(-1)?.body.id).toBe('m'), { timeout: 30_000 });
  expect(posts).toHaveLength(told + 1);
}, 60_000);

test('onDead as a function: called again until it takes the letter', async ({ task }) => {
  const { queue } = await open(task, failing);
  const { shard } = queue.backend;
  const heard: DeadNotice[] = [];
  const scheduler = new Scheduler({
    redis: sharedRedisUrl(),
    namespace: shard.namespace,
    prefix: shard.base.slice(0, -1),
    async onDead(notice) {
      heard.push(notice);
      if (heard.length === 1) throw new Error('not now');
    },
  });
  onTestFinished(() => scheduler.stop());
  await scheduler.start();
  await queue.add('bill', {}, { jobId: 'b' });
  await eventually(() => expect(heard).toHaveLength(2), { timeout: 20_000 });
  expect(heard[1]).toEqual(heard[0]);
  expect(heard[0]).toMatchObject({
    event: 'dead',
    queue: 'q',
    id: 'b',
    source: 'b',
    error: 'no such account',
  });
}, 60_000);

test('onDead must be a URL or a function', () => {
  expect(() => new Scheduler({ onDead: 'mail me' })).toThrow(
    expect.objectContaining({ code: 'INVALID_OPTION', field: 'onDead' }),
  );
});
