import { expect, onTestFinished, test } from 'vitest';
import { Queue, type Run, Worker, type WorkerOptions } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';

const LOCK = { lockDuration: 3000, lockRenewTime: 1000, stalledInterval: 300 };

/** A queue, and workers beside a proxy or behind it. */
async function open(task: { name: string }) {
  const prefix = namespaceFor(task);
  const proxy = await FaultProxy.start({ port: Number(new URL(sharedRedisUrl()).port) });
  const behind = new URL(sharedRedisUrl());
  behind.port = String(proxy.port);
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  const work = (url: string, handle: (run: Run) => unknown, options: WorkerOptions = {}) => {
    const worker = new Worker('q', { long: handle }, { connection: url, prefix, ...LOCK, ...options });
    worker.on('error', () => undefined);
    onTestFinished(() => worker.close(true));
    return worker;
  };
  return { queue, proxy, work, near: sharedRedisUrl(), behind: behind.href };
}

test('a worker that is cut off for two renewals keeps its run: no abort, no second start', async ({
  task,
}) => {
  const { queue, proxy, work, near, behind } = await open(task);
  let aborted = false;
  let end: () => void = () => undefined;
  work(behind, async (run) => {
    run.signal.addEventListener('abort', () => (aborted = true));
    await new Promise<void>((resolve) => (end = resolve));
    return 'the first';
  });
  await queue.add('long', {}, { jobId: 'l' });
  await eventually(async () => expect(await queue.getJobState('l')).toBe('active'));
  work(near, () => 'another');
  const { client, base } = queue.backend.shard;
  const lockLeft = () => client.pttl(`${base}q:l:lock`);
  // Just renewed: the next renewals are a second and two seconds away, and both are lost.
  await eventually(async () => expect(await lockLeft()).toBeGreaterThan(2900), { every: 5 });
  proxy.pause();
  await eventually(async () => expect(await lockLeft()).toBeLessThan(1000), { every: 5 });
  await proxy.resume();
  await eventually(async () => expect(await lockLeft()).toBeGreaterThan(2000), { every: 5 });
  // Longer than what was left of the lock.
  const since = performance.now();
  await eventually(() => performance.now() - since > LOCK.lockDuration);
  end();
  await eventually(async () => expect((await queue.getJob('l'))?.returnvalue).toBe('the first'));
  expect(aborted).toBe(false);
  expect(await queue.getJob('l')).toMatchObject({ attemptsStarted: 1, stalledCounter: 0 });
});

test('a worker that is cut off stops before another can start its run, and cannot complete it when it is back', async ({
  task,
}) => {
  const { queue, proxy, work, near, behind } = await open(task);
  const at = { started: 0, aborted: 0, other: 0 };
  const seen: Pick<Run, 'attempt' | 'starts' | 'fencingToken'>[] = [];
  let reason: unknown;
  let end: () => void = () => undefined;
  const worker = work(
    behind,
    async (run) => {
      at.started = performance.now();
      seen.push(run);
      run.signal.addEventListener('abort', () => {
        at.aborted = performance.now();
        reason = run.signal.reason;
      });
      await new Promise<void>((resolve) => (end = resolve));
      return 'too late';
    },
    { concurrency: 1 },
  );
  const troubles: string[] = [];
  worker.on('error', (error) => troubles.push(error.message));
  await queue.add('long', {}, { jobId: 'l' });
  await eventually(() => expect(at.started).toBeGreaterThan(0));
  let endOther: () => void = () => undefined;
  work(near, async (run) => {
    at.other = performance.now();
    seen.push(run);
    await new Promise<void>((resolve) => (endOther = resolve));
    return 'in time';
  });
  proxy.pause();
  await eventually(() => expect(at.other).toBeGreaterThan(0), { timeout: 15_000 });
  expect(reason).toMatchObject({ code: 'STALE_RUN' });
  expect(at.aborted).toBeGreaterThan(0);
  expect(at.aborted).toBeLessThan(at.other);
  const [first, second] = seen as [Run, Run];
  expect([first.attempt, second.attempt]).toEqual([1, 1]);
  expect([first.starts, second.starts]).toEqual([1, 2]);
  expect(BigInt(second.fencingToken)).toBeGreaterThan(BigInt(first.fencingToken));
  // Back again, the first returns all the same while the other has the run: BullMQ refuses what has no lock.
  await proxy.resume();
  end();
  await eventually(() =>
    expect(troubles.join()).toMatch(/Missing lock|Lock mismatch|not in the active state|locked by another/i),
  );
  expect(await queue.getJobState('l')).toBe('active');
  endOther();
  await eventually(async () => expect((await queue.getJob('l'))?.returnvalue).toBe('in time'));
});
