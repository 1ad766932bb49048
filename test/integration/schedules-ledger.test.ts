import { describe, expect, test } from 'vitest';
import type { ScheduleDefinition } from '../../src/domain/schedule.js';
import { HandWorker, runIdOf } from '../support/hand-worker.js';
import { QUEUE, ScheduleWorld } from '../support/schedule-world.js';
import { expectHealthy } from '../support/spine-doctor.js';

const at = (time: string) => `2026-01-15T${time}Z`;
const minutely: ScheduleDefinition = { cron: '* * * * *', missed: 'skip', overlap: 'allow' };
const minutes = (from: number, to: number) =>
  Array.from({ length: to - from + 1 }, (_, i) => at(`12:${String(from + i).padStart(2, '0')}:00`));

async function worldOf(task: { name: string }, definition: ScheduleDefinition = minutely) {
  const world = await ScheduleWorld.at(at('11:59:30'), task);
  await world.schedules.upsert('s', definition);
  await world.startScheduler();
  return { world, s: world.schedules.get('s'), key: world.spine.keys.ledger(`${QUEUE}:s`) };
}

describe('the ledger', () => {
  test('is a ring of the last N rows, one a tick', async ({ task }) => {
    const { world, s, key } = await worldOf(task, { ...minutely, keepRuns: 3 });
    await world.passBy(60_000, at('12:04:30'));
    await world.passTo(at('12:04:30'));
    expect(await world.ledger('s')).toEqual(minutes(2, 4).map((time) => `dispatched ${time}`));
    expect(await world.spine.client.hlen(key)).toBe(3);
    expect((await s.runs(2)).map(({ scheduledFor }) => scheduledFor)).toEqual(
      minutes(3, 4).map((time) => Date.parse(time)),
    );
    expect(await s.describe()).toMatchObject({ count: 5, recent: { length: 3 } });
  });

  test('an owed row takes the oldest one’s place before it is written', async ({ task }) => {
    const world = await ScheduleWorld.at(at('11:59:30'), task);
    await world.schedules.upsert('s', { ...minutely, keepRuns: 3 });
    const scheduler = await world.startScheduler();
    for (const minute of minutes(0, 3)) await world.passTo(minute);
    await scheduler.stop();
    // The pop alone from here on, without a planner after it.
    const { spine } = world;
    await spine.client.del(spine.keys.fence);
    const owned = await spine.lead();
    await spine.setClock(Date.parse(at('12:04:00')));
    expect(await spine.pop(owned)).toMatchObject({ popped: 1 });
    expect(await spine.client.hlen(spine.keys.ledger(`${QUEUE}:s`))).toBe(3);
    expect((await world.schedules.get('s').runs()).map(({ scheduledFor }) => scheduledFor)).toEqual(
      minutes(2, 4).map((time) => Date.parse(time)),
    );
  });

  test('a key of another type in its place stops nothing, and doctor names it', async ({ task }) => {
    const { world, key } = await worldOf(task);
    await world.spine.client.set(key, 'x');
    for (const minute of minutes(0, 3)) await world.passTo(minute);
    expect(await world.runIds()).toHaveLength(4);
    expect(await world.spine.client.get(key)).toBe('x');
    await expect(expectHealthy(world.spine, 'leader')).rejects.toMatchObject({
      actual: [{ check: 'key', subject: key }],
    });
  });

  test('keeps fifty when nothing is said', async ({ task }) => {
    const { world, s } = await worldOf(task, { ...minutely, maxOpenRuns: 64 });
    await world.passTo(at('12:00:00'));
    for (const minute of minutes(1, 52)) {
      await world.passTo(minute);
      await world.endRuns();
    }
    expect(await world.ledger('s')).toEqual(minutes(3, 52).map((time) => `dispatched ${time}`));
    expect((await s.describe())?.recent).toHaveLength(10);
  });

  test('keepRuns 0 keeps none; another number keeps the newest rows, as many as both hold', async ({
    task,
  }) => {
    const { world, key } = await worldOf(task, { ...minutely, keepRuns: 0 });
    await world.passTo(at('12:00:00'));
    expect(await world.spine.client.exists(key)).toBe(0);
    await world.schedules.upsert('s', { ...minutely, keepRuns: 2 });
    for (const minute of minutes(1, 3)) await world.passTo(minute);
    expect(await world.ledger('s')).toEqual(minutes(2, 3).map((time) => `dispatched ${time}`));
    await world.schedules.upsert('s', { ...minutely, keepRuns: 5 });
    await world.passTo(at('12:04:00'));
    expect(await world.ledger('s')).toEqual(minutes(2, 4).map((time) => `dispatched ${time}`));
    await world.schedules.upsert('s', { ...minutely, keepRuns: 0 });
    await world.passTo(at('12:05:00'));
    expect(await world.spine.client.exists(key)).toBe(0);
    await expectHealthy(world.spine, 'leader');
  });

  test('a ring that is resized goes on where it was, full or not', async ({ task }) => {
    const { world, key } = await worldOf(task, { ...minutely, keepRuns: 4, maxOpenRuns: 64 });
    const rowsTo = (first: number, last: number) => minutes(first, last).map((time) => `dispatched ${time}`);
    // Each time with the row of the last tick owed, and its slots turned by what came before.
    let minute = 0;
    for (const [keepRuns, ticks, kept] of [
      [4, 7, 4],
      [6, 1, 5],
      [3, 0, 3],
      [3, 2, 3],
      [255, 3, 6],
      [5, 0, 5],
      [1, 0, 1],
      [2, 3, 2],
    ] as const) {
      await world.schedules.upsert('s', { ...minutely, keepRuns, maxOpenRuns: 64 });
      for (let i = 0; i < ticks; i++) await world.passTo(minutes(minute, minute++)[0] as string);
      expect(await world.ledger('s')).toEqual(rowsTo(minute - kept, minute - 1));
    }
    expect(await world.spine.client.hlen(key)).toBe(2);
    await expectHealthy(world.spine, 'leader');
  });

  test('a key of another type in its place does not stop a new size', async ({ task }) => {
    const { world, key } = await worldOf(task);
    await world.passTo(at('12:00:00'));
    await world.spine.client.set(key, 'x');
    await world.schedules.upsert('s', { ...minutely, keepRuns: 7 });
    await world.passTo(at('12:01:00'));
    expect(await world.ledger('s')).toEqual([`dispatched ${at('12:01:00')}`]);
  });

  test('is dropped with its schedule; one that is made anew begins its own', async ({ task }) => {
    const { world, s, key } = await worldOf(task);
    await world.passTo(at('12:00:00'));
    expect(await world.spine.client.exists(key)).toBe(1);
    await s.delete();
    expect(await world.spine.client.exists(key)).toBe(0);
    await world.schedules.upsert('s', minutely);
    expect(await s.runs()).toEqual([]);
    await world.passTo(at('12:01:00'));
    expect(await world.ledger('s')).toEqual([`dispatched ${at('12:01:00')}`]);
  });

  test('is joined with BullMQ’s outcome while BullMQ keeps it, and tells how late each run was', async ({
    task,
  }) => {
    const { world, s } = await worldOf(task, { ...minutely, jitter: '30s' });
    const worker = await HandWorker.start(world, { holdAll: true });
    const first = world.schedules.get('s');
    const jitterOf = async () =>
      ((await first.describe())?.nextFireAt ?? 0) - ((await first.describe())?.next ?? 0);
    const jitters: number[] = [];
    for (const time of minutes(0, 3)) {
      jitters.push(await jitterOf());
      await world.passTo(Date.parse(time) + (jitters.at(-1) ?? 0) + 4);
    }
    await worker.started(4);
    await worker.end(runIdOf('s', at('12:00:00')));
    await worker.end(runIdOf('s', at('12:01:00')), 'failed');
    await worker.end(runIdOf('s', at('12:02:00')));
    await world.queue.remove(runIdOf('s', at('12:02:00')));
    expect(await s.runs()).toMatchObject([
      { what: 'dispatched', outcome: 'completed' },
      { what: 'dispatched', outcome: 'failed' },
      { what: 'dispatched', outcome: 'unknown' },
      { what: 'dispatched', outcome: 'active' },
    ]);
    expect((await s.runs()).map(({ lateBy }) => lateBy)).toEqual(jitters.map((jitter) => jitter + 4));
    expect(Math.max(...jitters)).toBeGreaterThan(0);
    await s.pause();
    await world.setClock(at('12:06:30'));
    await s.resume();
    await world.settle();
    expect((await s.runs()).at(-1)).toMatchObject({
      what: 'skipped',
      runId: undefined,
      lateBy: undefined,
      outcome: undefined,
    });
  });

  test('an edit records the overdue ticks that it passes over', async ({ task }) => {
    const world = await ScheduleWorld.at(at('11:59:30'), task);
    for (const id of ['one', 'many', 'none'] as const) await world.schedules.upsert(id, minutely);
    await world.setClock(at('12:00:10'));
    await world.schedules.upsert('one', { ...minutely, cron: '*/7 * * * *' });
    await world.setClock(at('12:03:10'));
    await world.schedules.upsert('many', { ...minutely, cron: '*/7 * * * *' });
    // Where no time changes, no tick is passed over.
    await world.schedules.upsert('none', { ...minutely, tags: ['x'] });
    expect(await world.ledger('one')).toEqual([`skipped ${at('12:00:00')} edited`]);
    expect(await world.ledger('many')).toEqual([
      `skipped ${at('12:03:00')} edited: every tick from 2026-01-15T12:00:00.000Z to 2026-01-15T12:03:00.000Z`,
    ]);
    expect(await world.ledger('none')).toEqual([]);
    await world.startScheduler();
    await world.settle();
    expect(await world.runs()).toEqual([at('12:03:00')]);
  });

  test('runs that are sure to come survive an edit: under their own scheduled times', async ({ task }) => {
    const { world } = await worldOf(task, { ...minutely, overlap: 'bufferAll' });
    for (const minute of minutes(0, 2)) await world.passTo(minute);
    await world.schedules.upsert('s', { ...minutely, cron: '0 * * * *', overlap: 'bufferAll' });
    for (let i = 1; i < 4; i++) {
      await world.endRuns();
      await world.look();
    }
    expect(await world.ledger('s')).toEqual(minutes(0, 2).map((time) => `dispatched ${time}`));
    expect(await world.schedules.get('s').describe()).toMatchObject({
      next: Date.parse(at('13:00:00')),
      waiting: [],
    });
  });
});

describe('delete', () => {
  test('takes what waits for its turn, and leaves what is in the queue', async ({ task }) => {
    const { world, s } = await worldOf(task, { ...minutely, overlap: 'bufferAll' });
    for (const minute of minutes(0, 2)) await world.passTo(minute);
    expect(await s.delete({ reason: 'no more' })).toBe(true);
    await world.endRuns();
    await world.passTo(at('12:05:00'));
    expect(await world.runs()).toEqual([at('12:00:00')]);
    expect(await world.history()).toEqual([`deleted ${at('12:03:00')} no more`]);
    expect(await s.delete()).toBe(false);
    await expectHealthy(world.spine, 'leader', 'orphan');
  });

  test('cancelRuns also takes the runs out of the queue that no worker has fetched', async ({ task }) => {
    const { world, s } = await worldOf(task);
    const worker = await HandWorker.start(world, { holdAll: true, worker: { concurrency: 1 } });
    for (const minute of minutes(0, 2)) await world.passTo(minute);
    await worker.started(1);
    await world.schedules.upsert('other', minutely);
    expect(await s.delete({ cancelRuns: true })).toBe(true);
    const running = runIdOf('s', at('12:00:00'));
    expect((await world.queue.getJobs()).map(({ id }) => id)).toEqual([running]);
    await worker.end(running);
    await world.passTo(at('12:03:00'));
    await worker.started(2);
    expect(worker.starts).toEqual([running, runIdOf('other', at('12:03:00'))]);
    await expectHealthy(world.spine, 'leader');
  });

  test('sent again by its request id it deletes nothing that was made since', async ({ task }) => {
    const { world, s } = await worldOf(task);
    expect(await s.delete({ requestId: 'r' })).toBe(true);
    await world.schedules.upsert('s', minutely);
    expect(await s.delete({ requestId: 'r' })).toBe(true);
    expect(await s.describe()).toMatchObject({ state: 'scheduled' });
  });
});
