import { Queue as BullmqQueue } from 'bullmq';
import { describe, expect, test } from 'vitest';
import { Admin, Queue } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { QUEUE, ScheduleWorld } from '../support/schedule-world.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { changesOf } from '../support/spine-state.js';

const HOUR = 3_600_000;
/** More than a record has place for. */
const MANY = [1, 2, 3, 4, 5, 6, 7];
const daily = { cron: '0 3 * * *', missed: 'skip' } as const;

async function worldOf(task: { name: string }) {
  const world = await ScheduleWorld.at('2026-01-15T12:00:30Z', task);
  await world.schedules.upsert('s', daily);
  return { world, s: world.schedules.get('s') };
}

async function queueOf(task: { name: string }): Promise<{ queue: Queue; bullmq: BullmqQueue; admin: Admin }> {
  const prefix = namespaceFor(task);
  const queue = new Queue(QUEUE, { connection: { url: sharedRedisUrl() }, prefix });
  const admin = new Admin({ connection: { url: sharedRedisUrl() }, prefix });
  const bullmq = new BullmqQueue(QUEUE, { connection: { url: sharedRedisUrl() }, prefix });
  onCleanup('queue', () => queue.close());
  onCleanup('BullMQ’s queue', () => bullmq.close());
  onCleanup('admin', () => admin.close());
  return { queue, bullmq, admin };
}

type Handle = Awaited<ReturnType<typeof worldOf>>['s'];

describe('a request that its caller named is remembered, whatever number of others follows', () => {
  test.for<[string, (s: Handle, requestId: string) => Promise<unknown>]>([
    ['trigger', (s, requestId) => s.trigger({ requestId })],
    ['pause', (s, requestId) => s.pause({ requestId })],
    ['update', (s, requestId) => s.update({ grace: '7s' }, {}, { requestId })],
  ])('of a schedule: %s', async ([name, change], { task }) => {
    const { world, s } = await worldOf({ name: `${task.name} ${name}` });
    await change(s, 'deploy-1');
    for (const n of MANY) {
      if (name === 'pause' && n === 1) await s.resume({ requestId: 'other' });
      else await s.update({ grace: `${n}m` }, {}, { requestId: `update-${n}` });
    }
    for (const n of MANY) await s.update({ grace: `${n}s`, jitter: `${n}m` });
    for (const requestId of ['deploy-1', 'update-3']) {
      const { changes } = await changesOf(world.spine, () =>
        requestId === 'deploy-1' ? change(s, requestId) : s.update({ grace: '1h' }, {}, { requestId }),
      );
      expect(changes).toEqual({});
    }
    await expectHealthy(world.spine);
  });

  test('of triggers: one run a request, and each repeat is told of the run of its own', async ({ task }) => {
    const { world, s } = await worldOf(task);
    const runs = new Map<number, string | undefined>();
    for (const n of MANY) runs.set(n, (await s.trigger({ requestId: `deploy-${n}` })).runId);
    // A second run would have another id.
    await world.setClock('2026-01-15T12:00:40Z');
    for (const n of MANY) expect((await s.trigger({ requestId: `deploy-${n}` })).runId).toBe(runs.get(n));
    expect(await world.queue.getWaitingCount()).toBe(MANY.length);
  });

  test('of a schedule that was deleted since: it is not created anew', async ({ task }) => {
    const { world } = await worldOf(task);
    await world.schedules.upsert('t', daily, {}, { requestId: 'create' });
    const t = world.schedules.get('t');
    for (const n of MANY) await t.update({ grace: `${n}m` }, {}, { requestId: `u${n}` });
    await t.delete({ requestId: 'delete' });
    await expect(world.schedules.upsert('t', daily, {}, { requestId: 'create' })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
    await expect(t.update({ grace: '1m' }, {}, { requestId: 'u1' })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
  });

  test('of a job: submitted, replaced, changed and cancelled', async ({ task }) => {
    const { queue } = await queueOf(task);
    const replace = { jobId: 'a', delay: HOUR, ifExists: 'replace', requestId: 'first' } as const;
    expect((await queue.add('x', { v: 1 }, replace)).answer).toBe('created');
    await queue.changeDelay('a', 2 * HOUR, { requestId: 'move' });
    for (const n of MANY) await queue.updateJob('a', { data: { v: n } }, { requestId: `u${n}` });
    expect((await queue.add('x', { v: 1 }, replace)).answer).toBe('created');
    await queue.updateJob('a', { data: { v: 1 } }, { requestId: 'u1' });
    await queue.changeDelay('a', HOUR, { requestId: 'move' });
    const job = await queue.getJob('a');
    expect(job?.data).toEqual({ v: 7 });
    expect(job?.delay).toBeGreaterThanOrEqual(2 * HOUR);

    await queue.cancel('a');
    expect((await queue.add('x', { v: 1 }, replace)).answer).toBe('created');
    expect(await queue.getJobState('a')).toBe('unknown');
    // Another one of the id takes the memory over.
    expect((await queue.add('x', { v: 9 }, { ...replace, requestId: 'second' })).answer).toBe('created');
    await queue.updateJob('a', { data: { v: 1 } }, { requestId: 'u1' });
    expect((await queue.getJob('a'))?.data).toEqual({ v: 9 });
  });

  test.for(['dispatched by us', 'added by BullMQ alone'])('of a job %s', async (how, { task }) => {
    const { queue, bullmq } = await queueOf({ name: `${task.name} ${how}` });
    await (how === 'dispatched by us' ? queue : bullmq).add('x', { v: 0 }, { jobId: 'a' });
    for (const n of MANY) await queue.updateJob('a', { data: { v: n } }, { requestId: `u${n}` });
    await queue.updateJob('a', { data: { v: 1 } }, { requestId: 'u1' });
    expect((await queue.getJob('a'))?.data).toEqual({ v: 7 });
  });

  test('of a calendar', async ({ task }) => {
    const { queue, admin } = await queueOf(task);
    const { calendars } = admin;
    await queue.add('x', {}, { delay: HOUR });
    const day = (n: number) => [`2027-01-0${n}`];
    for (const n of MANY) await calendars.set('c', day(n), { requestId: `c${n}` });
    expect(await calendars.set('c', day(1), { requestId: 'c1' })).toMatchObject({
      version: 1,
      changed: false,
    });
    expect(await calendars.get('c')).toMatchObject({ version: 7 });
    // An operation of its own, and so is the one after it.
    expect(await calendars.delete('c', { requestId: 'c1' })).toMatchObject({ version: 8, changed: true });
  });

  test('for the duplicate window, and not much longer', async ({ task }) => {
    const { world, s } = await worldOf(task);
    const runs = () => world.queue.getWaitingCount();
    for (const n of MANY) await s.trigger({ requestId: `r${n}` });
    const start = await world.now();
    for (const after of [0.99, 1.98]) {
      await world.setClock(start + after * HOUR);
      await world.spine.leader.rotateSpent(HOUR, HOUR, HOUR);
      await s.trigger({ requestId: 'r1' });
      expect(await runs()).toBe(7);
    }
    for (const after of [3, 4.1]) {
      await world.setClock(start + after * HOUR);
      await world.spine.leader.rotateSpent(HOUR, HOUR, HOUR);
    }
    await s.trigger({ requestId: 'r1' });
    expect(await runs()).toBe(8);
  });
});

describe('what the client makes up for its own re-sends leaves no more than the newest few', () => {
  test('of a schedule that is changed and triggered all the time', async ({ task }) => {
    const { world, s } = await worldOf(task);
    for (const n of MANY) await s.update({ grace: `${n}m` });
    for (let n = 0; n < 20; n++) await s.trigger();
    expect(await world.spine.client.keys(`${world.spine.keys.tag}:*:spent:*`)).toEqual([]);
    const { record } = await world.spine.jobs.get(QUEUE, 's');
    expect(record?.requests).toBe(4);
  });

  test('no caller can name one so', async ({ task }) => {
    const { s } = await worldOf(task);
    for (const requestId of ['', '\0made-up', 'x'.repeat(1025)]) {
      await expect(s.trigger({ requestId })).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        field: 'requestId',
      });
    }
  });
});

describe('one request id in two operations is two requests', () => {
  test('of a schedule', async ({ task }) => {
    const { world, s } = await worldOf(task);
    const requestId = 'pipeline-5';
    await world.schedules.upsert('s', { ...daily, grace: '5m' }, {}, { requestId });
    await s.update({ grace: '6m' }, {}, { requestId });
    await s.pause({ requestId });
    expect(await s.describe()).toMatchObject({ state: 'paused', definition: { grace: 360_000 } });
    await s.resume({ requestId });
    expect(await s.describe()).toMatchObject({ state: 'scheduled' });
    expect((await s.trigger({ requestId })).runId).toMatch(/^s@/);
    const morning = { from: '2026-01-14T00:00:00Z', to: '2026-01-15T12:00:00Z', requestId };
    await s.backfill({ ...morning, rerun: true });
    expect((await s.describe())?.waiting).toHaveLength(2);
    expect(await s.delete({ requestId })).toBe(true);
    expect(await s.describe()).toBeUndefined();
  });

  test('of many schedules at once', async ({ task }) => {
    const { world } = await worldOf(task);
    for (const verb of ['pause', 'resume', 'pause'] as const) {
      await world.schedules.change(verb, { text: 's' }, { requestId: 'w' });
    }
    // The third is the first once more.
    expect(await world.list()).toMatchObject([{ id: 's', state: 'scheduled' }]);
  });

  test('of a job', async ({ task }) => {
    const { queue, admin } = await queueOf(task);
    const requestId = 'order-7';
    const job = await queue.add('x', { v: 1 }, { delay: HOUR, requestId });
    const id = job.id as string;
    await queue.pauseJob(id, { requestId });
    expect((await admin.jobs({ queue: QUEUE })).items).toMatchObject([{ id, state: 'paused' }]);
    await queue.updateJob(id, { data: { v: 2 } }, { requestId });
    await queue.changeDelay(id, 2 * HOUR, { requestId });
    await queue.resumeJob(id, { requestId });
    expect(await queue.getJob(id)).toMatchObject({ data: { v: 2 } });
    expect(await queue.getJobState(id)).toBe('delayed');
    await queue.rescheduleJob(id, Date.now() + 5 * HOUR, { requestId });
    expect((await queue.getJob(id))?.delay).toBeGreaterThan(4 * HOUR);
    await queue.cancel(id, { requestId });
    expect(await queue.getJobState(id)).toBe('unknown');
    // Each by itself is still the first once more.
    expect((await queue.add('x', { v: 1 }, { delay: HOUR, requestId })).answer).toBe('created');
    expect(await queue.getJobState(id)).toBe('unknown');
  });

  test('of two runs that wait for their turn in one schedule', async ({ task }) => {
    const { queue } = await queueOf(task);
    await queue.schedules.upsert('s', { every: '1h', missed: 'skip', anchor: '2026-01-01T00:00:00Z' });
    const s = queue.schedules.get('s');
    const now = Date.now();
    await s.backfill({ from: now - 4 * HOUR, to: now });
    const waiting = (await s.describe())?.waiting ?? [];
    const ids = waiting.slice(-2).map(({ scheduledFor }) => `s@${scheduledFor}`);
    for (const id of ids) expect(await queue.cancel(id, { requestId: 'r' })).toEqual({ where: 'timers' });
    expect((await s.describe())?.waiting).toHaveLength(waiting.length - 2);
  });
});

test('an upsert or update that repeats an earlier request says so and changes nothing', async ({ task }) => {
  const { world, s } = await worldOf(task);
  const upsert = (grace: string, requestId?: string) =>
    world.schedules.upsert('s', { ...daily, grace }, {}, { requestId });
  expect((await upsert('1h', 'r')).repeated).toBe(false);
  expect((await upsert('2h')).repeated).toBe(false);
  const again = await upsert('1h', 'r');
  expect(again).toMatchObject({ repeated: true, definition: { grace: 2 * HOUR } });
  // What would change nothing is no repeat.
  expect((await upsert('2h', 'r')).repeated).toBe(false);

  expect(await s.update({ grace: '3h' }, {}, { requestId: 'r' })).toMatchObject({ repeated: false });
  expect(await s.update({ grace: '4h' }, {}, { requestId: 'r' })).toMatchObject({
    repeated: true,
    differences: [],
    definition: { grace: 3 * HOUR },
  });
});
