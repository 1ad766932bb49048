import { expect, onTestFinished, test } from 'vitest';
import { describeJob } from '../../src/cli/job-description.js';
import { Queue, UnrecoverableError, Worker, type WorkerOptions } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';

const HOUR = 3_600_000;
/** What BullMQ multiplies the time by, to keep an order within a millisecond. */
const SCORES = 4096;

function open(task: { name: string }) {
  const prefix = namespaceFor(task);
  const connection = sharedRedisUrl();
  const queue = new Queue('q', { connection, prefix });
  onCleanup('queue', () => queue.close());
  const fail = (options: WorkerOptions = {}, error: () => Error = () => new Error('no')) => {
    const errors: string[] = [];
    const handle = (): never => {
      throw error();
    };
    const worker = new Worker('q', { x: handle }, { connection, prefix, ...options });
    worker.on('error', ({ message }) => void errors.push(message));
    onTestFinished(() => worker.close(true));
    return errors;
  };
  return { queue, fail, client: queue.backend.shard.client, base: `${prefix}:q:` };
}

test('B06 the cap holds in a worker, at failure 1,030 too; without attempts a failure is dead at once, and told', async ({
  task,
}) => {
  const { queue, fail, client, base } = open(task);
  const backoff = { type: 'exponential', delay: 1000, maxDelay: HOUR };
  await queue.add('x', {}, { jobId: 'old', attempts: 2000, backoff });
  await client.hset(`${base}old`, 'atm', 1029);
  await queue.add(
    'x',
    {},
    { jobId: 'default', attempts: 2000, backoff: { type: 'exponential', delay: 1000 } },
  );
  await client.hset(`${base}default`, 'atm', 1029);
  await queue.add('x', {}, { jobId: 'once', backoff });
  fail();
  const delayOf = async (id: string) => {
    const job = await queue.getJob(id);
    expect(await job?.getState()).toBe('delayed');
    return job?.delay;
  };
  await eventually(async () => expect(await delayOf('old')).toBe(HOUR));
  await eventually(async () => expect(await delayOf('default')).toBe(24 * HOUR));
  await eventually(async () => expect(await queue.getJobState('once')).toBe('failed'));
  expect(await describeJob(queue, 'once')).toMatchObject({
    attempts: 1,
    retries: 'none: a failure is dead at once, its backoff has no effect without attempts',
  });
  expect(await describeJob(queue, 'old')).toMatchObject({
    attempts: 1030,
    retries: 'up to 1999 more, 1s after the first failure, doubling to at most 1h',
  });
  // What is stored is what a worker of BullMQ alone reads: its own type, delay and jitter, and one word more.
  expect((await queue.getJob('old'))?.opts.backoff).toEqual({
    type: 'exponential',
    delay: 1000,
    maxDelay: HOUR,
  });
});

test('a strategy of the worker says when; -1 is dead, not at once; one that is broken or missing costs no attempt', async ({
  task,
}) => {
  const { queue, fail } = open(task);
  const asked: unknown[] = [];
  const errors = fail({
    settings: {
      backoffStrategy: (failures, type, error) => {
        asked.push([failures, type, error?.message]);
        if (type === 'stop') return -1;
        if (type === 'throws') throw new Error('bad table');
        return type === 'nan' ? Number.NaN : 5000.4;
      },
    },
  });
  for (const type of ['mine', 'stop', 'throws', 'nan']) {
    await queue.add('x', {}, { jobId: type, attempts: 9, backoff: { type, delay: 7000 } });
  }
  for (const [id, delay] of [
    ['mine', 5000],
    ['throws', 7000],
    ['nan', 7000],
  ] as const) {
    await eventually(async () => expect(await queue.getJobState(id)).toBe('delayed'));
    expect((await queue.getJob(id))?.delay).toBe(delay);
  }
  await eventually(async () => expect(await queue.getJobState('stop')).toBe('failed'));
  expect((await queue.getJob('stop'))?.attemptsMade).toBe(1);
  expect(asked).toContainEqual([1, 'mine', 'no']);
  expect(errors.sort()).toEqual([
    'backoff strategy "nan" gave NaN, which is no time to rest: run nan rests 7000 ms instead',
    'backoff strategy "throws" failed (bad table): run throws rests 7000 ms instead',
  ]);
});

test('a strategy that no worker has, and an error without a way back', async ({ task }) => {
  const { queue, fail } = open(task);
  let failure: Error = new Error('no');
  const errors = fail({}, () => failure);
  await queue.add('x', {}, { jobId: 'tide', attempts: 2, backoff: { type: 'tide' } });
  await eventually(async () => expect(await queue.getJobState('tide')).toBe('delayed'));
  expect((await queue.getJob('tide'))?.delay).toBe(30_000);
  expect(errors).toEqual([expect.stringContaining('Unknown backoff strategy tide')]);
  failure = new UnrecoverableError('no such account');
  await queue.add('x', {}, { jobId: 'lost', attempts: 2, backoff: { type: 'tide' } });
  await eventually(async () => expect(await queue.getJobState('lost')).toBe('failed'));
  expect(errors).toHaveLength(1);
});

test('10,000 runs that fail together, base 30 s, full jitter: no 100 ms holds over 3 % of their retries', async ({
  task,
}) => {
  const { queue, fail, client, base } = open(task);
  const backoff = { type: 'exponential', delay: 30_000, jitter: 1 };
  await queue.addBulk(
    Array.from({ length: 10_000 }, (_, n) => ({
      name: 'x',
      data: {},
      opts: { jobId: `j${n}`, attempts: 2, backoff },
    })),
  );
  fail({ concurrency: 100 });
  await eventually(async () => expect(await client.llen(`${base}wait`)).toBe(0), { timeout: 60_000 });
  await eventually(async () => expect(await client.llen(`${base}active`)).toBe(0));
  const scores = (await client.zrange(`${base}delayed`, '0', '-1', 'WITHSCORES')).filter(
    (_, n) => n % 2 === 1,
  );
  // The rest drew so short a delay that they were retried meanwhile.
  expect(scores.length).toBeGreaterThan(5000);
  const bins = new Map<number, number>();
  for (const score of scores) {
    const bin = Math.floor(Number(score) / SCORES / 100);
    bins.set(bin, (bins.get(bin) ?? 0) + 1);
  }
  expect(Math.max(...bins.values())).toBeLessThan(0.03 * scores.length);
});
