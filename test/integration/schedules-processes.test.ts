import { fileURLToPath } from 'node:url';
import { Worker } from 'bullmq';
import { describe, expect, onTestFinished, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import { eventually } from '../support/eventually.js';
import { type NodeProcess, spawnNode } from '../support/node-process.js';
import { QUEUE, ScheduleWorld } from '../support/schedule-world.js';
import { expectHealthy } from '../support/spine-doctor.js';

/** Where no worker takes them, the runs of one schedule stand open beside each other. */
const overlap = 'allow';
const SCHEDULER = fileURLToPath(new URL('../fixtures/scheduler-by-word.ts', import.meta.url));
const UPSERTER = fileURLToPath(new URL('../fixtures/upserter.ts', import.meta.url));

/** A scheduler in a process of its own, on a host in `zone`. */
function schedulerProcess(world: ScheduleWorld, zone: string): NodeProcess {
  return spawnNode(SCHEDULER, [JSON.stringify(world.schedulerOptions)], { TZ: zone });
}

/** Tells a process a word and waits for its answer to it, the `count`th of its kind. */
async function tell(child: NodeProcess, word: 'start' | 'stop', count: number): Promise<void> {
  const answer = { start: 'started', stop: 'stopped' }[word];
  child.writeLine(word);
  await eventually(() => child.lines.filter((line) => line === answer).length >= count, { timeout: 20_000 });
}

test('B62 B26 leadership rotates over hosts in three zones: one run a minute, one H for all', async ({
  task,
}) => {
  const world = await ScheduleWorld.at('2026-01-15T11:59:30Z', task);
  await world.schedules.upsert('s', { cron: '* * * * *', missed: 'latest', overlap });
  await world.schedules.upsert('nightly', { cron: '1 12 * * *', tz: 'UTC', missed: 'latest', overlap });
  const hosts = ['Asia/Dubai', 'America/New_York', 'UTC'].map((zone) => schedulerProcess(world, zone));
  const seeded = await Promise.all(hosts.map((host) => host.waitForLine('ready', 60_000)));
  expect(new Set(seeded).size).toBe(1);
  const turns = hosts.map(() => 0);
  let minute = Date.parse('2026-01-15T12:00:00Z');
  for (let i = 0; i < 10; i++) {
    const host = hosts[i % 3] as NodeProcess;
    turns[i % 3] = (turns[i % 3] ?? 0) + 1;
    await tell(host, 'start', turns[i % 3] ?? 0);
    for (let k = 0; k < 2; k++, minute += 60_000) await world.passTo(minute);
    await tell(host, 'stop', turns[i % 3] ?? 0);
  }
  expect(await world.runs('s')).toEqual(
    Array.from({ length: 20 }, (_, i) => `2026-01-15T12:${String(i).padStart(2, '0')}:00Z`),
  );
  expect(await world.runs('nightly')).toEqual(['2026-01-15T12:01:00Z']);
});

/** How often a schedule stands in its indexes, read in one go; and how many records there are. */
async function placesOf(world: ScheduleWorld, id: string) {
  const { client, keys } = world.spine;
  const bucket = bucketOf(`${QUEUE}:${id}`);
  const read = await client
    .multi()
    .zscore(keys.due(bucket), `${QUEUE}:${id}`)
    .zscore(keys.plan(bucket), `${QUEUE}:${id}`)
    .hlen(keys.jobs(bucket))
    .hget(keys.queues, `${QUEUE}:schedules`)
    .exec();
  const [due, plan, records, count] = (read ?? []).map(([, value]) => value);
  return { due: due !== null, plan: plan !== null, records, count: Number(count ?? 0) };
}

/** Runs a stock worker; gives the scheduled times that it ran, in order. */
async function ranTicks(world: ScheduleWorld): Promise<number[]> {
  const ran: number[] = [];
  const worker = new Worker(QUEUE, async (job) => ran.push(Number(job.id?.split('@').at(-1))), {
    connection: { url: world.spine.url, maxRetriesPerRequest: null },
    prefix: world.spine.prefix,
  });
  onTestFinished(() => worker.close());
  await worker.waitUntilReady();
  return ran;
}

/** Every tick of the grid from the first to the last that ran; one that was overtaken on a busy machine is recorded. */
async function expectEveryTick(world: ScheduleWorld, id: string, ran: readonly number[], every: number) {
  const overtaken = (await world.ledger(id)).filter((line) => line.startsWith('skipped'));
  expect(new Set(ran).size).toBe(ran.length);
  for (const tick of ran) expect(tick % every).toBe(0);
  const [first = 0, last = 0] = [ran[0], ran.at(-1)];
  if (overtaken.length === 0)
    expect(ran).toEqual(Array.from({ length: (last - first) / every + 1 }, (_, i) => first + i * every));
}

test('B08 three processes upsert one schedule twenty times at once, again and again', {
  timeout: 120_000,
}, async ({ task }) => {
  const world = await ScheduleWorld.live(task);
  const { url, prefix } = world.spine;
  const ran = await ranTicks(world);
  await world.startScheduler();
  const definition = { cron: '*/2 * * * * *', missed: 'latest' };
  const call = JSON.stringify({ url, prefix, id: 's1', definition, boots: 4, times: 20 });
  const samples: Awaited<ReturnType<typeof placesOf>>[] = [];
  for (let round = 0; round < 2; round++) {
    const booting = [1, 2, 3].map(() => spawnNode(UPSERTER, [call]));
    const done = Promise.all(booting.map((child) => child.exited));
    let isDone = false;
    void done.then(() => {
      isDone = true;
    });
    const sample = async () => {
      const places = await placesOf(world, 's1');
      if (places.records !== 0) samples.push(places);
      return isDone;
    };
    await eventually(sample, { timeout: 60_000 });
    for (const { code } of await done) expect(code).toBe(0);
  }
  const enough = ran.length + 3;
  await eventually(() => ran.length >= enough, { timeout: 20_000 });
  expect(samples.length).toBeGreaterThan(20);
  for (const { records, count, due, plan } of samples)
    expect({ records, count, isPending: due || plan }).toEqual({ records: 1, count: 1, isPending: true });
  await expectEveryTick(world, 's1', ran, 2000);
  expect((await world.schedules.get('s1').describe())?.count).toBeGreaterThanOrEqual(ran.length);
  await expectHealthy(world.spine);
});

describe('B14 a scheduler that dies between a tick and the next', () => {
  test.each(['after the pop', 'after the planner read'])('%s: the schedule stays on plan', async (when) => {
    const world = await ScheduleWorld.at('2026-01-15T11:59:30Z', { name: when });
    await world.schedules.upsert('s', { cron: '* * * * *', missed: 'latest', overlap });
    await world.setClock('2026-01-15T12:00:00Z');
    const owned = await world.spine.lead();
    expect((await world.spine.pop(owned)).popped).toBe(1);
    if (when === 'after the planner read')
      await world.spine.leader.readPlan([bucketOf(`${QUEUE}:s`)], 10, 1_000_000);
    // Its successor was carried: the next tick is pending, and the one after it is asked for.
    expect(await placesOf(world, 's')).toMatchObject({ due: true, plan: true });
    await world.setClock('2026-01-15T12:01:00Z');
    await world.spine.pop(owned);
    // Two ticks later nothing is pending: but the question stands.
    expect(await placesOf(world, 's')).toMatchObject({ due: false, plan: true });
    await world.spine.client.del(world.spine.keys.fence);
    await world.startScheduler();
    await world.passTo('2026-01-15T12:01:30Z');
    await world.passTo('2026-01-15T12:02:00Z');
    expect(await world.runs()).toEqual([
      '2026-01-15T12:00:00Z',
      '2026-01-15T12:01:00Z',
      '2026-01-15T12:02:00Z',
    ]);
  });

  test('by kill -9 at any moment: never without a pending tick or a place on plan, no tick twice', async ({
    task,
  }) => {
    const world = await ScheduleWorld.live(task);
    const ids = Array.from({ length: 20 }, (_, i) => `s${i}`);
    for (const id of ids) await world.schedules.upsert(id, { every: 500, missed: 'latest', overlap });
    const children = Array.from({ length: 4 }, () => schedulerProcess(world, 'UTC'));
    await Promise.all(children.map((child) => child.waitForLine('ready', 60_000)));
    for (const [round, child] of children.entries()) {
      await tell(child, 'start', 1);
      const before = (await world.runIds()).length;
      const enough = before + 20 + round * 7;
      await eventually(async () => (await world.runIds()).length >= enough, { timeout: 20_000, every: 1 });
      await child.kill9();
      for (const id of ids) {
        const { due, plan } = await placesOf(world, id);
        expect({ id, isPending: due || plan }).toEqual({ id, isPending: true });
      }
    }
    const runs = await world.runIds();
    expect(new Set(runs).size).toBe(runs.length);
    await world.startScheduler();
    await world.untilRuns(runs.length + 20);
    await expectHealthy(world.spine);
  });
});
