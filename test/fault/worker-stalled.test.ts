import { fileURLToPath } from 'node:url';
import { Queue } from 'bullmq';
import { expect, onTestFinished, test } from 'vitest';
import { aSchedule, OVERLAPPING } from '../support/builders.js';
import { eventually } from '../support/eventually.js';
import { History } from '../support/history.js';
import { type NodeProcess, spawnNode } from '../support/node-process.js';
import { NOW, Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { startScheduler } from '../support/spine-scheduler.js';

const FIXTURE = fileURLToPath(new URL('../fixtures/blocking-worker.fixture.ts', import.meta.url));
/** Whose workers. */
type Kind = 'BullMQ' | 'Carillon';
const KINDS: Kind[] = ['BullMQ', 'Carillon'];
const MINUTE = 60_000;
const FIRST = `s@${NOW + MINUTE}`;
const SECOND = `s@${NOW + 2 * MINUTE}`;

/** A schedule of every minute in virtual time, and workers in processes of their own that block. */
async function setup(task: { name: string }, block: number[], kind: Kind) {
  const spine = await Spine.virtual(task);
  await History.keep(spine, 'q');
  const port = Number(new URL(spine.url).port);
  const queue = new Queue('q', { prefix: spine.prefix, connection: { host: '127.0.0.1', port } });
  onTestFinished(() => queue.close());
  const options = JSON.stringify({
    ours: kind === 'Carillon',
    port,
    prefix: spine.prefix,
    queue: 'q',
    block,
  });
  const workers = [spawnNode(FIXTURE, [options]), spawnNode(FIXTURE, [options])];
  for (const worker of workers) await worker.waitForLine('ready');
  await spine.schedules.upsert('q', 's', aSchedule(NOW, OVERLAPPING), 'r');
  await startScheduler(spine, { scripts: { clock: 'virtual' }, pollInterval: '50ms' });
  return { spine, queue, workers };
}

function startsOf(workers: NodeProcess[], id: string): number {
  return workers.flatMap(({ lines }) => lines).filter((line) => line === `start ${id}`).length;
}

/** How often each event of a job came. */
async function eventsOf(spine: Spine, id: string): Promise<Record<string, number>> {
  const counts: Record<string, number> = {};
  for (const [, fields] of await spine.client.xrange(spine.bull('q', 'events'), '-', '+')) {
    const event = fields[fields.indexOf('event') + 1] ?? '';
    if (fields[fields.indexOf('jobId') + 1] === id) counts[event] = (counts[event] ?? 0) + 1;
  }
  return counts;
}

test.for(KINDS)(
  'B60 a worker of %s that blocks past its lock: two starts of one run, completed once, the next tick dispatched once',
  { timeout: 60_000 },
  async (kind, { task }) => {
    const { spine, workers } = await setup(task, [3000, 0], kind);
    await spine.setClock(NOW + MINUTE);
    await eventually(() => expect(startsOf(workers, FIRST)).toBe(1));
    await spine.setClock(NOW + 2 * MINUTE);
    await eventually(
      async () => expect(await eventsOf(spine, FIRST)).toMatchObject({ completed: 1, stalled: 1 }),
      {
        timeout: 20_000,
      },
    );
    await eventually(async () => expect(await eventsOf(spine, SECOND)).toMatchObject({ completed: 1 }), {
      timeout: 20_000,
    });
    expect(startsOf(workers, FIRST)).toBeLessThanOrEqual(2);
    expect(await eventsOf(spine, FIRST)).toMatchObject({ added: 1, completed: 1 });
    expect(await eventsOf(spine, SECOND)).toMatchObject({ added: 1 });
    expect((await History.read(spine, 'q')).added).toEqual(
      new Map([
        [FIRST, 1],
        [SECOND, 1],
      ]),
    );
    await expectHealthy(spine);
  },
);

test.for(KINDS)(
  'B17 a run that stalls each time, its schedule deleted after the first: failed as stalled, never again, workers of %s',
  { timeout: 60_000 },
  async (kind, { task }) => {
    const { spine, queue, workers } = await setup(task, [2500], kind);
    await spine.setClock(NOW + MINUTE);
    await eventually(() => expect(startsOf(workers, FIRST)).toBe(1));
    await spine.jobs.cancel('q', 's', 'no more', 'c');
    await eventually(async () => expect((await queue.getJob(FIRST))?.failedReason).toMatch(/stalled/), {
      timeout: 30_000,
    });
    await spine.setClock(NOW + 3 * MINUTE);
    expect(startsOf(workers, FIRST)).toBeLessThanOrEqual(2);
    expect((await History.read(spine, 'q')).added).toEqual(new Map([[FIRST, 1]]));
    await expectHealthy(spine);
  },
);

test.for(KINDS)(
  'B17 the limit holds while the schedule stands, and its later ticks go on, workers of %s',
  { timeout: 90_000 },
  async (kind, { task }) => {
    const { spine, queue, workers } = await setup(task, [2500], kind);
    await spine.setClock(NOW + MINUTE);
    await eventually(async () => expect((await queue.getJob(FIRST))?.failedReason).toMatch(/stalled/), {
      timeout: 30_000,
    });
    expect(startsOf(workers, FIRST)).toBeLessThanOrEqual(2);
    for (const tick of [2, 3]) {
      await spine.setClock(NOW + tick * MINUTE);
      await eventually(() => expect(startsOf(workers, `s@${NOW + tick * MINUTE}`)).toBeGreaterThan(0), {
        timeout: 20_000,
      });
    }
    const { added } = await History.read(spine, 'q');
    expect([...added.values()]).toEqual([1, 1, 1]);
    expect(startsOf(workers, FIRST)).toBeLessThanOrEqual(2);
    await expectHealthy(spine);
  },
);
