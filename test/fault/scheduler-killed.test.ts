import { describe, expect, test } from 'vitest';
import { jobs } from '../support/builders.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { History, SPOTLESS } from '../support/history.js';
import { namespaceFor } from '../support/namespace.js';
import type { NodeProcess } from '../support/node-process.js';
import { startRedis } from '../support/redis-server.js';
import { Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { SchedulerProcess, startMover } from '../support/spine-process.js';
import { CountingWorker } from '../support/spine-worker.js';

const LONG = process.env.CARILLON_LONG === '1';
const HERD = LONG ? 100_000 : 20_000;
const KILLS = LONG ? 30 : 5;
const OVERDUE = LONG ? 200_000 : 20_000;

/** A namespace on a Redis of its own, whose queue `q` keeps all its events. */
async function setup(task: { name: string }, fence: 'on' | 'off') {
  const server = await startRedis();
  const spine = await Spine.open({ url: server.url, namespace: namespaceFor(task), choices: { fence } });
  await History.keep(spine, 'q');
  return { server, spine };
}

/** `count` jobs due at one instant; what must become of them. */
async function herd(spine: Spine, count: number, dueAt: number): Promise<Map<string, number>> {
  await spine.submit(
    'q',
    jobs(count, 'herd-', () => ({ time: dueAt })),
  );
  return new Map(Array.from({ length: count }, (_, i) => [`herd-${i}`, dueAt]));
}

async function pending(spine: Spine): Promise<number> {
  return Number(await spine.client.hget(spine.keys.queues, 'q:scheduled'));
}

/** Any moment of the next `ms`. */
async function randomMoment(ms: number): Promise<void> {
  const until = performance.now() + Math.random() * ms;
  await eventually(() => performance.now() >= until, { every: 2 });
}

describe.each(['on', 'off'] as const)('I1 I3 the scheduler killed, fence check %s', (fence) => {
  test(`kill -9 at random moments of a herd of ${HERD}: nothing lost, nothing enqueued twice`, async ({
    task,
  }) => {
    const { server, spine } = await setup(task, fence);
    const worker = await CountingWorker.start(spine, 'q');
    const expected = await herd(spine, HERD, (await spine.now()) + 1000);
    // A slow line makes the herd last long enough to be killed in the middle of calls.
    const proxy = await FaultProxy.start({ port: server.port });
    proxy.delay(8);
    let kills = 0;
    while ((await pending(spine)) > 0) {
      const scheduler = await SchedulerProcess.start(spine, {
        redis: proxy.url,
        takeOver: true,
        scripts: { fence },
      });
      const before = await pending(spine);
      await eventually(async () => (await pending(spine)) < before || before === 0, { every: 1 });
      await randomMoment(LONG ? 3000 : 1200);
      // The last one may finish.
      if (kills === KILLS) await eventually(async () => (await pending(spine)) === 0, { timeout: 300_000 });
      await scheduler.node.kill9();
      kills += 1;
    }
    await worker.ran(HERD, 300_000);
    const history = await History.read(spine, 'q');
    expect(history.check(expected)).toEqual(SPOTLESS);
    expect(worker.doubled).toEqual([]);
    expect(kills).toBeGreaterThanOrEqual(2);
    await expectHealthy(spine, 'leader');
  }, 600_000);

  test(`B34 ${OVERDUE} overdue, two movers at once, one killed -9 every 2 s: each id reaches the queue once`, async ({
    task,
  }) => {
    const { server, spine } = await setup(task, fence);
    const expected = await herd(spine, OVERDUE, (await spine.now()) + 1000);
    await eventually(async () => (await spine.now()) > ([...expected.values()][0] ?? 0));
    // With the fence on, both hold the same one: two schedulers that believe that they lead.
    let token = 1;
    const proxy = await FaultProxy.start({ port: server.port });
    proxy.delay(4);
    const start = () => startMover(spine, proxy.url, { fence }, fence === 'on' ? 1 : token++);
    const movers: NodeProcess[] = [await start(), await start()];
    let kills = 0;
    while ((await pending(spine)) > 0) {
      await randomMoment(LONG ? 4000 : 400);
      if (kills === KILLS) await eventually(async () => (await pending(spine)) === 0, { timeout: 300_000 });
      await movers.shift()?.kill9();
      movers.push(await start());
      kills += 1;
    }
    for (const mover of movers) await mover.kill9();
    expect((await History.read(spine, 'q')).check(expected)).toEqual(SPOTLESS);
    expect(await spine.client.llen(spine.bull('q', 'wait'))).toBe(OVERDUE);
    expect(kills).toBeGreaterThanOrEqual(2);
    await expectHealthy(spine, 'leader');
  }, 600_000);
});
