import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { Queue } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { namespaceFor } from '../support/namespace.js';
import { type NodeProcess, spawnNode } from '../support/node-process.js';
import { startRedis } from '../support/redis-server.js';

const LONG = process.env.CARILLON_LONG === '1';
const FIXTURE = fileURLToPath(new URL('../support/run-worker.fixture.ts', import.meta.url));
const RUNS = LONG ? 10_000 : 300;
const FAULTS = LONG ? 60 : 3;
/** ms of a run, and runs at a time of a worker: the faults must come in the middle of them. */
const WORK: [number, number] = LONG ? [50, 250] : [100, 400];
const CONCURRENCY = LONG ? 10 : 3;
const LOCK = { lockDuration: 900, lockRenewTime: 300, stalledInterval: 200 };

/** Runs on a Redis of their own, and workers each behind a network of its own. */
async function setup(task: { name: string }, work: [number, number], lock: object, concurrency: number) {
  const server = await startRedis();
  const prefix = namespaceFor(task);
  const queue = new Queue('q', { connection: server.url, prefix });
  onCleanup('queue', () => queue.close());
  const started: NodeProcess[] = [];
  const start = async () => {
    const proxy = await FaultProxy.start({ port: server.port });
    const spawn = async () => {
      const options = { url: proxy.url, prefix, queue: 'q', concurrency, work, lock };
      const worker = spawnNode(FIXTURE, [JSON.stringify(options)]);
      started.push(worker);
      await worker.waitForLine('ready');
      return worker;
    };
    return { proxy, spawn, worker: await spawn() };
  };
  const lines = (word: string) =>
    started.flatMap((worker) => worker.lines).filter((line) => line.startsWith(word));
  return { queue, prefix, start, lines, client: queue.backend.shard.client };
}

async function passed(ms: number): Promise<void> {
  const until = performance.now() + ms;
  await eventually(() => performance.now() >= until, { timeout: ms + 5000 });
}

test(`kill -9, SIGSTOP past the lock and a cut network of workers during ${RUNS} runs: each effect of once is there once`, async ({
  task,
}) => {
  const { queue, prefix, start, lines, client } = await setup(
    task,
    WORK,
    { ...LOCK, maxStalledCount: 100 },
    CONCURRENCY,
  );
  const jobs = Array.from({ length: RUNS }, (_, n) => ({
    name: 'effect',
    data: {},
    opts: { jobId: `r${n}`, attempts: 50 },
  }));
  await queue.addBulk(jobs);
  const sites = await Promise.all([start(), start(), start()]);
  const done = async () => (await queue.getJobCounts('completed')).completed as number;
  let faults = 0;
  while (faults < FAULTS) {
    const before = await done();
    if (RUNS - before < 60) break;
    await eventually(async () => (await done()) >= before + 20, { timeout: 30_000 });
    const site = sites[faults % sites.length] as (typeof sites)[number];
    const kind = (faults + Math.floor(faults / 3)) % 3;
    faults += 1;
    if (kind === 0) {
      await site.worker.kill9();
      site.worker = await site.spawn();
    } else if (kind === 1) {
      site.worker.sigstop();
      await passed(LOCK.lockDuration + 3 * LOCK.stalledInterval);
      site.worker.sigcont();
    } else {
      if (faults % 2 === 0) site.proxy.pause();
      else await site.proxy.suspend();
      await passed(LOCK.lockDuration + 3 * LOCK.stalledInterval);
      await site.proxy.resume();
    }
  }
  await eventually(
    async () =>
      expect(await queue.getJobCounts('completed', 'failed')).toEqual({ completed: RUNS, failed: 0 }),
    { timeout: LONG ? 600_000 : 30_000, every: 100 },
  );
  const once = await client.hgetall(`${prefix}:once`);
  expect(Object.keys(once)).toHaveLength(RUNS);
  expect(Object.entries(once).filter(([, times]) => times !== '1')).toEqual([]);
  const bare = Object.values(await client.hgetall(`${prefix}:bare`)).map(Number);
  const repeats = bare.reduce((sum, times) => sum + times, 0) - RUNS;
  // Faults that hit no run would show nothing: what nothing protects did repeat.
  expect(faults).toBeGreaterThan(2);
  expect(repeats).toBeGreaterThan(0);
  if (LONG) {
    process.stdout.write(
      `${RUNS} runs, ${faults} faults: ${repeats} bare effects repeated, ${lines('stale').length} late ones refused\n`,
    );
  }
}, 900_000);

const PROMISES = [
  { within: LOCK.lockDuration + LOCK.stalledInterval + 1000, given: LOCK },
  // What is promised of the defaults takes its time to be seen.
  ...(LONG ? [{ within: 36_000, given: {} }] : []),
];

test.each(PROMISES)(
  'the run of a killed worker starts again within $within ms',
  async ({ within, given }) => {
    const { queue, start, lines } = await setup({ name: `again-${within}` }, [60_000, 60_000], given, 1);
    const first = await start();
    await queue.add('effect', {}, { jobId: 'r' });
    await first.worker.waitForLine('start r');
    const second = await start();
    // Its lock has just been renewed, or is about to be: either way it must end first.
    await first.worker.kill9();
    const killedAt = performance.now();
    await second.worker.waitForLine('start r', within + 10_000);
    const after = performance.now() - killedAt;
    if (LONG) process.stdout.write(`started again after ${Math.round(after)} ms\n`);
    expect(after).toBeLessThan(within);
    expect(lines('start')).toHaveLength(2);
    const job = await queue.getJob('r');
    expect(job?.attemptsMade).toBe(0);
    expect(job?.stalledCounter).toBe(1);
  },
  120_000,
);
