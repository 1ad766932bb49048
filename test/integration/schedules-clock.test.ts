import { describe, expect, test } from 'vitest';
import type { MissedPolicy } from '../../src/domain/schedule.js';
import { HandWorker, runIdOf } from '../support/hand-worker.js';
import { ScheduleWorld } from '../support/schedule-world.js';
import { expectHealthy } from '../support/spine-doctor.js';

const at = (time: string) => `2026-01-15T${time}Z`;
const MISSED: readonly MissedPolicy[] = ['skip', 'latest', 'all'];
const fives = (from: number, to: number) =>
  Array.from({ length: (to - from) / 5 + 1 }, (_, i) => {
    const minute = from + i * 5;
    return at(`${14 + Math.floor(minute / 60)}:${String(minute % 60).padStart(2, '0')}:00`);
  });

describe.each(['on', 'off'] as const)('I6 TIME steps, fence check %s', (fence) => {
  test('back 2 s and forward 1 h: nothing fires again, each policy goes on', async () => {
    const world = await ScheduleWorld.at(at('13:59:50'), { name: `steps ${fence}` }, { fence });
    await world.startScheduler();
    for (const missed of MISSED)
      await world.schedules.upsert(missed, { cron: '*/5 * * * *', missed, overlap: 'allow' });
    await world.passTo(at('14:00:00'));
    await world.passTo(at('13:59:58'));
    await world.passTo(at('14:00:00'));
    await world.passTo(at('14:00:01'));
    for (const missed of MISSED) expect(await world.runs(missed)).toEqual([at('14:00:00')]);

    // An hour passes at once while they are served: skip and latest run the newest, all runs each, late.
    await world.passTo(at('15:00:01'));
    for (const missed of ['skip', 'latest']) {
      expect(await world.runs(missed)).toEqual([at('14:00:00'), at('15:00:00')]);
      expect((await world.ledger(missed))[1]).toBe(
        `skipped ${at('14:55:00')} missed: every tick from 2026-01-15T14:05:00.000Z to 2026-01-15T14:55:00.000Z`,
      );
    }
    expect(await world.runs('all')).toEqual(fives(0, 60));

    // And back by the hour: what fired is to come by the clock, and does not fire.
    for (const time of ['14:00:01', '14:05:00', '14:30:00', '15:00:00', '15:05:00'])
      await world.passTo(at(time));
    expect(await world.runs('all')).toEqual(fives(0, 65));
    for (const missed of ['skip', 'latest'])
      expect(await world.runs(missed)).toEqual([at('14:00:00'), at('15:00:00'), at('15:05:00')]);
    await expectHealthy(world.spine, 'leader');
  });

  test('back while runs wait for their turn: each starts once, when the clock has come back', async () => {
    const world = await ScheduleWorld.at(at('13:59:50'), { name: `steps and waits ${fence}` }, { fence });
    const worker = await HandWorker.start(world, { holdAll: true });
    await world.startScheduler();
    await world.schedules.upsert('s', { cron: '*/5 * * * *', missed: 'skip', overlap: 'bufferAll' });
    for (const time of fives(0, 10)) await world.passTo(time);
    await worker.started(1);
    await worker.end(runIdOf('s', at('14:00:00')));
    await world.passTo(at('14:09:58'));
    await worker.idle();
    expect(worker.starts).toHaveLength(1);
    for (const [i, time] of fives(5, 10).entries()) {
      await world.look();
      await worker.started(2 + i);
      await worker.end(runIdOf('s', time));
    }
    await world.passTo(at('14:11:00'));
    await worker.idle();
    expect(worker.starts).toEqual(fives(0, 10).map((time) => runIdOf('s', time)));
  });
});

describe('B56 a pause of ten minutes, over a restart of the scheduler', () => {
  test('no start in the window; on resume each policy, and what waited has its turn', async ({ task }) => {
    const world = await ScheduleWorld.at(at('11:59:30'), task);
    const worker = await HandWorker.start(world);
    for (const missed of MISSED) await world.schedules.upsert(missed, { cron: '* * * * *', missed });
    await world.schedules.upsert('waits', { cron: '* * * * *', missed: 'skip', overlap: 'bufferAll' });
    worker.hold('waits', at('12:00:00'));
    const first = await world.startScheduler();
    await world.passTo(at('12:00:00'));
    await world.schedules.get('waits').trigger({ overlap: 'policy' });
    await worker.idle();
    const ids = [...MISSED, 'waits'];
    await world.setClock(at('12:00:30'));
    for (const id of ids) await world.schedules.get(id).pause({ note: 'maintenance' });
    // Ended in the window, it makes room for nothing yet.
    await worker.end(runIdOf('waits', at('12:00:00')));
    await world.passTo(at('12:03:00'));
    await first.stop();
    await world.startScheduler();
    await world.passTo(at('12:07:00'));
    await world.passTo(at('12:10:30'));
    await worker.idle();
    expect(worker.starts.toSorted()).toEqual(ids.map((id) => runIdOf(id, at('12:00:00'))).toSorted());
    await expectHealthy(world.spine, 'leader');

    for (const id of ids) await world.schedules.get(id).resume();
    await world.settle();
    await worker.idle();
    await world.passTo(at('12:11:00'));
    await worker.idle();
    const paused = (to: string) =>
      `skipped ${at(to)} paused: every tick from 2026-01-15T12:01:00.000Z to 2026-01-15T${to}.000Z`;
    expect(await world.ledger('skip')).toEqual([
      `dispatched ${at('12:00:00')}`,
      paused('12:10:00'),
      `dispatched ${at('12:11:00')}`,
    ]);
    for (const id of ['latest', 'all']) {
      expect(await world.ledger(id)).toEqual([
        `dispatched ${at('12:00:00')}`,
        paused('12:09:00'),
        `caught up ${at('12:10:00')}`,
        `dispatched ${at('12:11:00')}`,
      ]);
    }
    const waited = (await world.schedules.get('waits').runs()).map(({ what }) => what);
    expect(waited).toEqual(['dispatched', 'triggered', 'skipped', 'dispatched']);
  });

  test('a broken queue is an outage, not a pause: each policy of missed ticks', async ({ task }) => {
    const world = await ScheduleWorld.at(at('11:59:30'), task);
    await world.startScheduler();
    for (const missed of MISSED)
      await world.schedules.upsert(missed, { cron: '*/5 * * * *', missed, overlap: 'allow' });
    const wait = world.spine.bull('q', 'wait');
    await world.spine.client.set(wait, 'x');
    await world.passTo(at('12:00:00'));
    for (const missed of MISSED) {
      expect(await world.schedules.get(missed).describe()).toMatchObject({ state: 'parked' });
    }
    await world.setClock(at('12:21:00'));
    await world.spine.client.del(wait);
    await world.untilRuns(2);
    await world.settle();
    expect(await world.ledger('skip')).toEqual([
      `skipped ${at('12:20:00')} missed: every tick from 2026-01-15T12:00:00.000Z to 2026-01-15T12:20:00.000Z`,
    ]);
    expect((await world.ledger('latest')).at(-1)).toBe(`caught up ${at('12:20:00')}`);
    expect(await world.schedules.get('all').describe()).toMatchObject({
      open: [{ scheduledFor: Date.parse(at('12:00:00')) }],
      waiting: { length: 4 },
    });
  });
});
