import { Queue as StockQueue } from 'bullmq';
import { Cluster } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { Queue, type Run, Worker, type WorkerOptions } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';

const LOCK = { lockDuration: 900, lockRenewTime: 300, stalledInterval: 200 };

function connectionTo(port: number) {
  return { port, db: Number(new URL(sharedRedisUrl()).pathname.slice(1) || 0) };
}

/** A logger that keeps its lines. */
function keptLog() {
  const lines: { level: string; fields: Record<string, unknown>; message: string }[] = [];
  const at = (level: string) => (fields: object | string, message?: string) =>
    void lines.push({ level, fields: fields as never, message: message ?? String(fields) });
  const logger = { debug: at('debug'), info: at('info'), warn: at('warn'), error: at('error') };
  const whole: WorkerOptions['logger'] = { ...logger, child: () => whole as never } as never;
  return { lines, logger: whole };
}

const HANDLER = { a: (): number => 1 };

test.each<[string, unknown, object]>([
  ['a logger without children', HANDLER, { logger: console }],
  ['no logger', HANDLER, { logger: 5 }],
  ['a place for no run', HANDLER, { concurrency: 0 }],
  ['places for NaN runs', HANDLER, { concurrency: Number.NaN }],
  ['less than no stall', HANDLER, { maxStalledCount: -1 }],
  ['a limit of starts that is a text', HANDLER, { maxStartedAttempts: '5' }],
  ['no rest when drained', HANDLER, { drainDelay: 0 }],
  ['a handler that is none', { a: 5 }, {}],
  ['a file that is not there', '/nowhere/processor.js', {}],
  ['a file URL that is not there', new URL('file:///nowhere/processor.js'), {}],
])('refused with nothing opened and no job taken: %s', async (what, processor, options) => {
  const prefix = namespaceFor({ name: `refused ${what}` });
  const proxy = await FaultProxy.start({ port: Number(new URL(sharedRedisUrl()).port) });
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  await queue.add('a', {}, { jobId: 'a' });
  const connection = connectionTo(proxy.port);
  const make = () =>
    new Worker('q', processor as never, { connection, prefix, ...LOCK, ...options } as never);
  expect(make).toThrow(expect.objectContaining({ name: 'CarillonError', code: 'INVALID_OPTION' }));
  // A worker that was opened all the same would have connected long before this one has done the job.
  const well = new Worker('q', HANDLER, { connection: sharedRedisUrl(), prefix, ...LOCK });
  onTestFinished(() => well.close(true));
  await eventually(async () => expect(await queue.getJobState('a')).toBe('completed'));
  expect((await queue.getJob('a'))?.attemptsStarted).toBe(1);
  expect(proxy.accepted).toBe(0);
});

test('what is no connection is refused with nothing opened', async () => {
  const proxy = await FaultProxy.start({ port: Number(new URL(sharedRedisUrl()).port) });
  const where = { host: '127.0.0.1', port: proxy.port };
  const cluster = new Cluster([where], { lazyConnect: true });
  onTestFinished(() => cluster.disconnect());
  for (const [connection, code] of [
    [`http://127.0.0.1:${proxy.port}`, 'INVALID_OPTION'],
    [{ url: `http://127.0.0.1:${proxy.port}` }, 'INVALID_OPTION'],
    [{ ...where, keyPrefix: 'x:' }, 'INVALID_OPTION'],
    [proxy.port, 'INVALID_OPTION'],
    [cluster, 'UNSUPPORTED'],
  ] as const) {
    const make = () => new Worker('q', HANDLER, { connection, prefix: 'none', ...LOCK } as never);
    expect(make).toThrow(expect.objectContaining({ code }));
  }
  // BullMQ would be at its second or third try by then.
  const since = performance.now();
  await eventually(() => performance.now() - since > 300);
  expect(proxy.accepted).toBe(0);
  expect(cluster.status).toBe('wait');
});

test('a worker whose namespace is laid out for another prefix takes no run, says so, and leaves them to others', async ({
  task,
}) => {
  const [prefix, other] = [namespaceFor(task), `${namespaceFor(task)}-other`];
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  await queue.add('laid out', {}, { delay: 1e7 });
  const { hostname, port } = new URL(sharedRedisUrl());
  const stock = new StockQueue('q', { prefix: other, connection: { host: hostname, port: Number(port) } });
  onCleanup('stock queue', async () => {
    await stock.obliterate({ force: true });
    await stock.close();
  });
  const errors: unknown[] = [];
  const { lines, logger } = keptLog();
  const { namespace } = queue.backend.shard;
  const wrong = new Worker('q', HANDLER, {
    ...{ connection: sharedRedisUrl(), prefix: other, namespace, logger, ...LOCK },
  });
  wrong.on('error', (error) => errors.push(error));
  onTestFinished(() => wrong.close(true));
  await stock.add('a', {}, { jobId: 'a' });
  await eventually(() => expect(errors).toContainEqual(expect.objectContaining({ code: 'WRONG_LAYOUT' })));
  expect(lines).toContainEqual(
    expect.objectContaining({ level: 'error', message: expect.stringContaining('laid out for others') }),
  );
  expect(await stock.getJobState('a')).toBe('waiting');
  const right = new Worker('q', HANDLER, { connection: sharedRedisUrl(), prefix: other, ...LOCK });
  onTestFinished(() => right.close(true));
  await eventually(async () => expect(await stock.getJobState('a')).toBe('completed'));
  expect((await stock.getJob('a'))?.attemptsStarted).toBe(1);
  await wrong.close();
});

test('a run that can never be claimed is handed back without an attempt, told, and not taken again at once', async ({
  task,
}) => {
  const prefix = namespaceFor(task);
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  const { shard } = queue.backend;
  const errors: Error[] = [];
  const { lines, logger } = keptLog();
  const ran: Run[] = [];
  const worker = new Worker(
    'q',
    { a: (run: Run) => void ran.push(run) },
    {
      ...{ connection: sharedRedisUrl(), prefix, logger, ...LOCK },
    },
  );
  worker.on('error', (error) => errors.push(error));
  onTestFinished(() => worker.close(true));
  await queue.add('a', {}, { jobId: 'first' });
  await eventually(() => expect(ran).toHaveLength(1));
  // Under a running worker the counter of tokens becomes something else: a script fails, and will each time.
  const meta = `${shard.keys.tag}:meta`;
  const kept = await shard.client.hgetall(meta);
  await shard.client.del(meta);
  await shard.client.set(meta, 'damaged');
  const stock = new StockQueue('q', {
    prefix,
    connection: { host: new URL(sharedRedisUrl()).hostname, port: Number(new URL(sharedRedisUrl()).port) },
  });
  onCleanup('stock queue', () => stock.close());
  await stock.add('a', {}, { jobId: 'poor' });
  await eventually(() => expect(errors.length).toBeGreaterThan(0));
  await eventually(async () => expect(await stock.getJobState('poor')).toBe('waiting'));
  // A hot loop would take it hundreds of times in a second.
  const since = performance.now();
  await eventually(() => performance.now() - since > 1000);
  const poor = await stock.getJob('poor');
  expect(poor).toMatchObject({ attemptsMade: 0 });
  expect(poor?.attemptsStarted).toBeLessThanOrEqual(2);
  expect(lines.filter(({ message }) => message.includes('cannot be claimed'))).toHaveLength(1);
  expect(lines.filter(({ message }) => message.includes('could not be given back'))).toEqual([]);
  await shard.client.del(meta);
  await shard.client.hset(meta, kept);
  await eventually(async () => expect(await stock.getJobState('poor')).toBe('completed'), {
    timeout: 15_000,
  });
  expect(ran).toHaveLength(2);
});
