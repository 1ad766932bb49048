import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { describeJob } from '../../src/cli/job-description.js';
import { Queue, Worker, type WorkerOptions } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';

const FILE = new URL('../fixtures/file-processor.cjs', import.meta.url);
const LOCK = { lockDuration: 3000, lockRenewTime: 1000, stalledInterval: 300 };

function open(task: { name: string }, options: WorkerOptions = {}) {
  const prefix = namespaceFor(task);
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  const work = () => {
    const worker = new Worker('q', FILE, { connection: sharedRedisUrl(), prefix, ...LOCK, ...options });
    worker.on('error', () => undefined);
    onTestFinished(() => worker.close(true));
    return worker;
  };
  const folder = mkdtempSync(join(tmpdir(), 'file-processor-'));
  onCleanup('folder', async () => rmSync(folder, { recursive: true }));
  let jobs = 0;
  /** Adds a job and waits until its process works at it. */
  const begin = async (what: string, attempts = 1) => {
    const jobId = `${what}-${jobs++}`;
    const mark = join(folder, jobId);
    await queue.add('any', { what, mark }, { jobId, attempts });
    await eventually(() => existsSync(mark) && readFileSync(mark, 'utf8').endsWith('\n'), {
      timeout: 20_000,
    });
    return { jobId, pids: () => readFileSync(mark, 'utf8').trim().split('\n').map(Number) };
  };
  return { queue, work, begin };
}

function lives(pid: number | undefined): boolean {
  try {
    return process.kill(pid as number, 0);
  } catch {
    return false;
  }
}

test.each([{ useWorkerThreads: false }, { useWorkerThreads: true }])(
  'a file is a processor like others: its run has a worker and a token, can be cancelled, and stops by its signal (%o)',
  async (options) => {
    const { queue, work, begin } = open(
      { name: `file ${options.useWorkerThreads}` },
      { ...options, concurrency: 2 },
    );
    const worker = work();
    const { jobId } = await begin('stops', 3);
    expect(await describeJob(queue, jobId)).toMatchObject({
      token: expect.stringMatching(/^\d{16}$/),
      worker: { id: worker.id, pid: process.pid },
    });
    await queue.add('any', { what: 'answer' }, { jobId: 'answer' });
    await eventually(async () =>
      expect((await queue.getJob('answer'))?.returnvalue).toMatchObject({
        token: expect.stringContaining(worker.id),
      }),
    );
    expect(await queue.cancel(jobId, { reason: 'wrong list' })).toEqual({ where: 'worker' });
    await eventually(async () => expect(await queue.getJobState(jobId)).toBe('unknown'));
  },
);

test('a process that is told of its time-out and stops has failed; one that does not is killed, and so is one that blocks', async ({
  task,
}) => {
  const { queue, work, begin } = open(task, { timeout: '300ms', concurrency: 3 });
  work();
  const all = await Promise.all([begin('stops'), begin('deaf'), begin('blocks')]);
  for (const { jobId } of all) {
    await eventually(
      async () =>
        expect((await queue.getJob(jobId))?.failedReason).toBe('the attempt took longer than 300 ms'),
      { timeout: 15_000 },
    );
  }
  const [stops, deaf, blocks] = all.map(({ pids }) => pids());
  expect([deaf, blocks].map((pids) => lives(pids?.[0]))).toEqual([false, false]);
  expect(lives(stops?.[0])).toBe(true);
  expect(await queue.dead.list({ reason: 'timeout' })).toHaveLength(3);
});

test('close waits for the grace and no longer: the run is handed back without an attempt, its process has ended', async ({
  task,
}) => {
  const { queue, work, begin } = open(task, { shutdownGrace: '300ms', concurrency: 2 });
  const worker = work();
  const [deaf, stops] = [await begin('deaf'), await begin('stops')];
  const since = performance.now();
  await worker.close();
  expect(performance.now() - since).toBeLessThan(5000);
  for (const { jobId, pids } of [deaf, stops]) {
    expect(await queue.getJobState(jobId)).toBe('waiting');
    expect(await queue.getJob(jobId)).toMatchObject({ attemptsMade: 0 });
    await eventually(() => expect(lives(pids()[0])).toBe(false));
  }
});

test('close(true) ends the processes at once', async ({ task }) => {
  const { work, begin } = open(task);
  const worker = work();
  const { pids } = await begin('deaf');
  const since = performance.now();
  await worker.close(true);
  expect(performance.now() - since).toBeLessThan(5000);
  expect(lives(pids()[0])).toBe(false);
});

test('what a file throws is told like what a handler throws; a process that dies fails the attempt', async ({
  task,
}) => {
  const { queue, work, begin } = open(task);
  work();
  const [fails, nothing, dies] = [await begin('fails', 2), await begin('null', 2), await begin('dies', 2)];
  await eventually(async () => expect(await queue.getFailedCount()).toBe(3), { timeout: 20_000 });
  expect(await queue.dead.get(fails.jobId)).toMatchObject({
    ...{ error: 'cannot send', attempts: 2, reason: 'attempts' },
    errors: [expect.stringContaining("caused by: { code: 'ECONNREFUSED' }"), expect.anything()],
  });
  for (const { jobId } of [nothing, dies]) {
    expect(await queue.dead.get(jobId)).toMatchObject({ reason: 'attempts', attempts: 2 });
  }
  expect((await queue.dead.get(dies.jobId)).error).toContain('exit code: 3');
});

test.each([{ useWorkerThreads: false }, { useWorkerThreads: true }])(
  'what a file throws that is no error is told as the handler’s, and a circle that it returns as what it is (%o)',
  async (options) => {
    const { queue, work } = open({ name: `thrown ${options.useWorkerThreads}` }, options);
    work();
    const told = {
      undefined: 'the handler threw undefined',
      null: 'the handler threw null',
      text: "the handler threw 'the letter box is full'",
      empty: 'Error',
      circle: expect.stringMatching(/circular/),
    };
    for (const [what, error] of Object.entries(told)) {
      await queue.add('any', { what }, { jobId: what });
      await eventually(async () => expect(await queue.getJobState(what)).toBe('failed'), { timeout: 20_000 });
      expect(await queue.dead.get(what)).toMatchObject({ error });
    }
  },
);

test.each([{ useWorkerThreads: false }, { useWorkerThreads: true }])(
  'a process that ends behind what its handler threw takes no other run with it (%o)',
  async (options) => {
    const { queue, work } = open({ name: `behind ${options.useWorkerThreads}` }, options);
    const pairs = Array.from({ length: 5 }, (_, i) => [
      { name: 'any', data: { what: 'undefined' }, opts: { jobId: `u${i}` } },
      { name: 'any', data: { what: 'answer' }, opts: { jobId: `a${i}` } },
    ]);
    await queue.addBulk(pairs.flat());
    work();
    const ended = async () => expect(await queue.getJobCountByTypes('completed', 'failed')).toBe(10);
    await eventually(ended, { timeout: 25_000 });
    const failed = await queue.dead.list();
    expect(failed.map(({ id, error }) => `${id}: ${error}`).sort()).toEqual(
      pairs.map(([{ opts } = { opts: { jobId: '' } }]) => `${opts.jobId}: the handler threw undefined`),
    );
  },
);
