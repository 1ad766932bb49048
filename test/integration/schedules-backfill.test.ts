import { describe, expect, test } from 'vitest';
import type { ScheduleDefinition } from '../../src/domain/schedule.js';
import { HandWorker, runIdOf } from '../support/hand-worker.js';
import { ScheduleWorld } from '../support/schedule-world.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { changesOf } from '../support/spine-state.js';

const at = (time: string) => `2026-01-15T${time}Z`;
const hourly: ScheduleDefinition = { cron: '0 * * * *', missed: 'skip' };
const morning = { from: at('08:00:00'), to: at('10:59:59') };
const ticks = ['08', '09', '10'].map((hour) => at(`${hour}:00:00`));

async function worldOf(task: { name: string }, definition: ScheduleDefinition = hourly) {
  const world = await ScheduleWorld.at(at('12:30:00'), task);
  await world.schedules.upsert('s', definition);
  await world.startScheduler();
  return { world, s: world.schedules.get('s') };
}

const iso = (dates: readonly Date[]) => dates.map((date) => date.toISOString().replace('.000Z', 'Z'));

describe('backfill', () => {
  test('dry run: tells the ticks, both ends included, and writes nothing', async ({ task }) => {
    const world = await ScheduleWorld.at(at('12:30:00'), task);
    await world.schedules.upsert('s', hourly);
    const s = world.schedules.get('s');
    const { result, changes } = await changesOf(world.spine, () =>
      s.backfill({ from: at('08:00:00'), to: at('10:00:00'), dryRun: true }),
    );
    expect(iso(result)).toEqual(ticks);
    expect(changes).toEqual({});
    expect(iso(await s.backfill({ from: at('08:00:01'), to: at('08:59:59'), dryRun: true }))).toEqual([]);
  });

  test('runs them one at a time, in order, whatever the overlap policy: none is dropped', async ({
    task,
  }) => {
    const { world, s } = await worldOf(task, { ...hourly, overlap: 'skip' });
    const worker = await HandWorker.start(world, { holdAll: true });
    expect(iso(await s.backfill(morning))).toEqual(ticks);
    for (const tick of ticks) {
      await world.look();
      await worker.idle();
      expect(worker.running).toEqual([runIdOf('s', tick)]);
      await worker.end(runIdOf('s', tick));
    }
    expect(await world.ledger('s')).toEqual(ticks.map((tick) => `backfilled ${tick}`));
    // They count against no limit, and move no tick.
    expect(await s.describe()).toMatchObject({ count: 0, next: Date.parse(at('13:00:00')) });
    await world.passTo(at('13:00:00'));
    await worker.idle();
    expect(worker.running).toEqual([runIdOf('s', at('13:00:00'))]);
  });

  test.for(['allow', 'skip', 'bufferAll'] as const)(
    'overlap allow of a schedule with %s: beside each other, as many as may be open',
    async (own, { task }) => {
      const { world, s } = await worldOf(task, { ...hourly, overlap: own, maxOpenRuns: 2 });
      await s.backfill({ ...morning, overlap: 'allow' });
      await world.settle();
      expect(await world.runs('s')).toEqual(ticks.slice(0, 2));
      await world.endRuns();
      await world.look();
      expect(await world.runs('s')).toEqual(ticks);
      await expectHealthy(world.spine, 'leader', 'orphan');
    },
  );

  test('a to of up to a second after Redis’ time counts as now, and runs no tick that is to come', async ({
    task,
  }) => {
    const world = await ScheduleWorld.at(at('12:59:59.500'), task);
    await world.schedules.upsert('s', hourly);
    const s = world.schedules.get('s');
    const until = (time: string) => s.backfill({ from: at('11:30:00'), to: at(time), dryRun: true });
    expect(iso(await until('13:00:00.500'))).toEqual([at('12:00:00')]);
    expect(await s.backfill({ from: at('13:00:00'), to: at('13:00:00.100'), dryRun: true })).toEqual([]);
    await expect(until('13:00:00.501')).rejects.toMatchObject({ code: 'INVALID_OPTION', field: 'to' });
  });

  test('what ran before does not run again, as the ledger remembers; rerun runs it under another id', async ({
    task,
  }) => {
    const { world, s } = await worldOf(task);
    const worker = await HandWorker.start(world, {
      worker: { removeOnComplete: { count: 0 } },
    });
    await s.backfill({ from: at('09:00:00'), to: at('09:00:00') });
    await world.settle();
    await worker.started(1);
    await worker.idle();
    expect(await world.queue.getJobState(runIdOf('s', at('09:00:00')))).toBe('unknown');
    expect(iso(await s.backfill({ ...morning, dryRun: true }))).toEqual([ticks[0], ticks[2]]);
    expect(iso(await s.backfill({ ...morning, dryRun: true, rerun: true }))).toEqual(ticks);
    await s.backfill({ from: at('09:00:00'), to: at('09:00:00'), rerun: true, requestId: 'again' });
    await world.settle();
    await worker.started(2);
    expect(worker.starts[1]).toMatch(new RegExp(`^${runIdOf('s', at('09:00:00'))}\\+r[0-9a-f]{8}$`));
    // Nor what waits or is open already.
    await s.backfill({ from: at('10:00:00'), to: at('10:00:00') });
    expect(iso(await s.backfill({ ...morning, dryRun: true }))).toEqual([ticks[0]]);
  });

  test('what ran stays known when the ledger is made larger or smaller', async ({ task }) => {
    const world = await ScheduleWorld.at(at('03:30:00'), task);
    await world.schedules.upsert('s', { ...hourly, keepRuns: 50 });
    await world.startScheduler();
    const s = world.schedules.get('s');
    for (let hour = 4; hour <= 10; hour++) {
      await world.passTo(at(`${String(hour).padStart(2, '0')}:00:00`));
      await world.clearRuns();
    }
    const missing = async () =>
      iso(await s.backfill({ from: at('04:00:00'), to: at('10:00:00'), dryRun: true }));
    for (const keepRuns of [50, 100, 255, 7, 60]) {
      await world.schedules.upsert('s', { ...hourly, keepRuns });
      expect(await missing()).toEqual([]);
    }
    // No more than is kept.
    await world.schedules.upsert('s', { ...hourly, keepRuns: 4 });
    expect(await missing()).toEqual([at('04:00:00'), at('05:00:00'), at('06:00:00')]);
    await world.schedules.upsert('s', { ...hourly, keepRuns: 0 });
    // The record still holds the last one.
    expect(await missing()).toHaveLength(6);
  });

  test.for(['plain', 'rerun'])('a tick that ran before by a %s one is left out', async (first, { task }) => {
    const { world, s } = await worldOf(task);
    const tick = { from: at('09:00:00'), to: at('09:00:00') };
    await s.backfill({ ...tick, rerun: first === 'rerun' });
    // It waits for its turn; it is open; the ledger has it.
    expect(await s.backfill({ ...tick, dryRun: true })).toEqual([]);
    const worker = await HandWorker.start(world, { holdAll: true });
    await world.look();
    await worker.idle();
    expect(await s.backfill({ ...tick, dryRun: true })).toEqual([]);
    const [runId = ''] = worker.running;
    await worker.end(runId);
    await world.look();
    await (await world.queue.getJob(runId))?.remove();
    expect(await s.backfill(tick)).toEqual([]);
    expect(iso(await s.backfill(morning))).toEqual([ticks[0], ticks[2]]);
    // Each rerun is a run of its own.
    expect(iso(await s.backfill({ ...morning, rerun: true }))).toEqual(ticks);
  });

  test('a run that was triggered at the time of a tick is none of the tick', async ({ task }) => {
    const { world, s } = await worldOf(task);
    const tick = { from: at('13:00:00'), to: at('13:00:00') };
    await s.pause();
    await world.passTo(at('13:00:00'));
    await s.trigger();
    await world.passTo(at('13:30:00'));
    await s.resume();
    await world.settle();
    expect(await world.ledger('s')).toEqual([
      `triggered ${at('13:00:00')}`,
      `skipped ${at('13:00:00')} paused`,
    ]);
    expect(iso(await s.backfill(tick))).toEqual([at('13:00:00')]);
    expect(await s.backfill(tick)).toEqual([]);
  });

  test('without a ledger BullMQ’s own jobs remember it', async ({ task }) => {
    const { world, s } = await worldOf(task, { ...hourly, keepRuns: 0 });
    await HandWorker.start(world);
    await s.backfill({ from: at('09:00:00'), to: at('09:00:00') });
    await world.settle();
    await world.look();
    expect(iso(await s.backfill({ ...morning, dryRun: true }))).toEqual([ticks[0], ticks[2]]);
    expect(await s.runs()).toEqual([]);
  });

  test('a request that is sent again runs nothing more', async ({ task }) => {
    const { world, s } = await worldOf(task);
    await s.backfill({ ...morning, requestId: 'r' });
    await world.settle();
    const { result, changes } = await changesOf(world.spine, () =>
      s.backfill({ ...morning, requestId: 'r' }),
    );
    expect(iso(result)).toEqual(ticks);
    expect(changes).toEqual({});
    const { changes: rerun } = await changesOf(world.spine, async () => {
      await s.backfill({ ...morning, rerun: true, requestId: 'q' });
      await s.backfill({ ...morning, rerun: true, requestId: 'q' });
    });
    expect(rerun).toMatchObject({ 'jobs q:s': { waiting: { length: 5 } } });
  });

  test('ticks that the schedule has yet to judge are left to it', async ({ task }) => {
    const world = await ScheduleWorld.at(at('09:30:00'), task);
    await world.schedules.upsert('s', { ...hourly, missed: 'latest' });
    await world.setClock(at('12:30:00'));
    const s = world.schedules.get('s');
    const whole = { from: at('08:00:00'), to: at('12:00:00') };
    // 10:00 to 12:00 came while nobody served it.
    expect(iso(await s.backfill({ ...whole, dryRun: true }))).toEqual([ticks[0], ticks[1]]);
    await world.startScheduler();
    await world.settle();
    expect(await world.runs('s')).toEqual([at('12:00:00')]);
    expect(iso(await s.backfill({ ...whole, dryRun: true }))).toEqual([...ticks, at('11:00:00')]);
  });

  test('of a paused schedule they wait until it is resumed; an ended one runs them', async ({ task }) => {
    const { world, s } = await worldOf(task);
    await s.pause();
    await s.backfill(morning);
    await world.passTo(at('12:40:00'));
    expect(await world.runIds()).toEqual([]);
    expect(await s.describe()).toMatchObject({ state: 'paused', waiting: { length: 3 } });
    await s.resume();
    await world.settle();
    expect(await world.runs('s')).toEqual([ticks[0]]);

    const ended = world.schedules.get('ended');
    await world.schedules.upsert('ended', { ...hourly, endDate: at('09:00:00') });
    expect(await ended.describe()).toMatchObject({ state: 'ended' });
    expect(iso(await ended.backfill(morning))).toEqual(ticks.slice(0, 2));
    for (let i = 0; i < 3; i++) {
      await world.settle();
      await world.endRuns();
      await world.look();
    }
    expect(await world.runs('ended')).toEqual(ticks.slice(0, 2));
    expect(await ended.describe()).toMatchObject({ state: 'ended', waiting: [] });
  });

  test('refusals, before anything is written', async ({ task }) => {
    const world = await ScheduleWorld.at(at('12:30:00'), task);
    await world.schedules.upsert('s', hourly);
    const s = world.schedules.get('s');
    const { changes } = await changesOf(world.spine, async () => {
      const refused = (range: object) => expect(s.backfill({ ...morning, ...range })).rejects;
      await refused({ to: at('12:31:00') }).toMatchObject({ code: 'INVALID_OPTION', field: 'to' });
      await refused({ from: at('11:00:00') }).toMatchObject({ code: 'INVALID_OPTION', field: 'to' });
      await refused({ from: 'yesterday' }).toMatchObject({ code: 'INVALID_OPTION', field: 'from' });
      await refused({ from: '2025-01-01T00:00:00Z' }).toMatchObject({ code: 'INVALID_OPTION', field: 'to' });
      await refused({ overlap: 'skip' }).toMatchObject({ code: 'INVALID_OPTION', field: 'overlap' });
      await expect(world.schedules.get('none').backfill(morning)).rejects.toMatchObject({
        code: 'NOT_FOUND',
      });
    });
    expect(changes).toEqual({});
  });

  test('QUOTA: no more than a thousand runs wait; what is too many is refused whole', async ({ task }) => {
    const { world, s } = await worldOf(task, { ...hourly, keepRuns: 5 });
    await s.pause();
    await world.passTo(at('12:30:01'));
    const from = new Date(Date.parse(at('08:00:00')) - 998 * 3_600_000);
    expect(await s.backfill({ from, to: at('07:00:00') })).toHaveLength(998);
    const { changes } = await changesOf(world.spine, () =>
      expect(s.backfill(morning)).rejects.toMatchObject({ code: 'QUOTA', retryable: true }),
    );
    expect(changes).toEqual({});
    expect(await s.backfill({ from: at('08:00:00'), to: at('09:00:00') })).toHaveLength(2);
    await s.resume();
    await world.settle();
    expect(await world.runs('s')).toEqual([from.toISOString().replace('.000Z', 'Z')]);
  });
});
