import { afterAll, expect, test } from 'vitest';
import { Queue } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { namespaceFor } from '../support/namespace.js';
import { type NodeProcess, spawnNode } from '../support/node-process.js';
import { startRedis } from '../support/redis-server.js';
import { Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { fixture } from '../support/spine-process.js';
import { startScheduler } from '../support/spine-scheduler.js';

const LONG = process.env.CARILLON_LONG === '1';
const RUNS = LONG ? 10_000 : 400;
const ROUNDS = LONG ? 10 : 1;
/** A short lock, so that the test need not wait for half a minute at each fault. */
const LOCK = { lockDuration: 1500, lockRenewTime: 500, stalledInterval: 500 };

const told: string[] = [];
afterAll(() => {
  for (const line of told) process.stdout.write(`${line}\n`);
});
async function setup(task: { name: string }) {
  const server = await startRedis();
  const namespace = namespaceFor(task);
  const spine = await Spine.open({ url: server.url, namespace });
  const queue = new Queue('q', { connection: server.url, prefix: spine.prefix, namespace });
  onCleanup('queue', () => queue.close());
  await startScheduler(spine);
  const start = async (url: string, takes: number, worker: object) => {
    const options = {
      url,
      prefix: spine.prefix,
      namespace,
      queue: 'q',
      effects: `${namespace}:e`,
      takes,
      worker,
    };
    const node = spawnNode(fixture('effect-worker'), [JSON.stringify(options)]);
    await node.waitForLine('working', 60_000);
    return node;
  };
  return { server, spine, queue, start, effects: `${namespace}:e` };
}

test(`workers killed -9, stopped past their lock and cut off during ${RUNS} runs: each effect by once is there once`, async ({
  task,
}) => {
  const { server, spine, queue, start, effects } = await setup(task);
  const proxy = await FaultProxy.start({ port: server.port });
  const options = { ...LOCK, concurrency: 10, maxStalledCount: 100 };
  const open = (url = server.url) => start(url, 40, options);
  const cut = await start(`redis://127.0.0.1:${proxy.port}`, 40, options);
  const workers: NodeProcess[] = [await open(), await open()];
  await queue.addBulk(
    Array.from({ length: RUNS }, (_, i) => ({
      name: 'effect',
      data: {},
      opts: { jobId: `run-${i}`, delay: i % 4 === 0 ? 200 : 0, attempts: 50, backoff: 50 },
    })),
  );
  const done = () => spine.client.hlen(`${effects}:once`);
  for (let round = 0; round < ROUNDS; round++) {
    const wanted = (part: number) => Math.floor(((round + part) * RUNS) / (ROUNDS + 1));
    await eventually(async () => (await done()) >= wanted(0.2), { timeout: 60_000, every: 5 });
    await workers.shift()?.kill9();
    workers.push(await open());
    const stopped = workers[0] as NodeProcess;
    process.kill(stopped.pid, 'SIGSTOP');
    proxy.pause();
    // What both had at work ends elsewhere, once their locks have ended.
    const lost = [stopped, cut].flatMap(({ lines }) => startsIn(lines));
    await eventually(
      async () => (await spine.client.hmget(`${effects}:once`, ...lost)).every((times) => times !== null),
      { timeout: 30_000 },
    );
    process.kill(stopped.pid, 'SIGCONT');
    proxy.resume();
  }
  await eventually(async () => expect(await queue.getJobCountByTypes('completed')).toBe(RUNS), {
    timeout: 240_000,
  });

  const once = await spine.client.hgetall(`${effects}:once`);
  expect(Object.keys(once)).toHaveLength(RUNS);
  expect(Object.entries(once).filter(([, times]) => times !== '1')).toEqual([]);
  const raw = Object.values(await spine.client.hgetall(`${effects}:raw`)).map(Number);
  const repeats = raw.reduce((sum, times) => sum + times - 1, 0);
  // Without the helper some were done again: the faults did hit runs at work.
  expect(repeats).toBeGreaterThan(0);
  told.push(`effects: ${RUNS} runs, ${repeats} done again without the helper, none with it`);
  expect(await queue.getJobCountByTypes('failed')).toBe(0);
  await expectHealthy(spine, 'leader');
  for (const worker of [...workers, cut]) await worker.kill9();
}, 900_000);

function startsIn(lines: readonly string[]): string[] {
  return lines.filter((line) => line.startsWith('start ')).map((line) => line.split(' ')[1] as string);
}

test(`the run of a worker that was killed -9 starts again ${LONG ? 'within 36 s' : 'when its lock has ended'}`, async ({
  task,
}) => {
  const { server, spine, queue, start } = await setup(task);
  const settings = LONG ? {} : LOCK;
  const first = await start(server.url, 600_000, settings);
  await queue.add('effect', {}, { jobId: 'r', attempts: 2 });
  await first.waitForLine('start r 1');
  const second = await start(server.url, 0, settings);
  await first.kill9();
  const killed = performance.now();
  await second.waitForLine('start r 1', LONG ? 180_000 : 15_000);
  const after = performance.now() - killed;
  told.push(`killed worker: its run started again after ${Math.round(after)} ms`);
  expect(after).toBeLessThan(LONG ? 36_000 : 5 * 3000);
  await eventually(async () => expect(await queue.getJobState('r')).toBe('completed'));
  await expectHealthy(spine, 'leader');
  await second.kill9();
}, 300_000);
