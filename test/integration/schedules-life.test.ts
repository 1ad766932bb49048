import { describe, expect, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import type { ScheduleDefinition } from '../../src/domain/schedule.js';
import { nextFireTimes } from '../../src/index.js';
import { QUEUE, ScheduleWorld } from '../support/schedule-world.js';
import { expectHealthy } from '../support/spine-doctor.js';

const HOUR = 3_600_000;
/** No worker takes the runs of these tests: they stand open beside each other. */
const minutely: ScheduleDefinition = { cron: '* * * * *', missed: 'latest', overlap: 'allow' };

/** What a run holds in BullMQ. */
async function runOf(world: ScheduleWorld, id: string, time: string) {
  return world.spine.client.hgetall(world.spine.bull(QUEUE, `${id}@${Date.parse(time)}`));
}

describe('an edit', () => {
  test('B10 moves the pending tick; every run has the latest payload', async ({ task }) => {
    const world = await ScheduleWorld.at('2025-10-15T14:00:05Z', task);
    const tz = 'America/New_York';
    await world.startScheduler();
    await world.schedules.upsert(
      's',
      { cron: '* * * * *', tz, missed: 'skip', overlap: 'allow' },
      { data: 'v1' },
    );
    await world.passTo('2025-10-15T14:00:30Z');
    const edited = await world.schedules.upsert(
      's',
      { cron: '0 8 * * *', tz, missed: 'skip' },
      { data: 'v2' },
    );
    expect(edited.next).toBe(Date.parse('2025-10-16T12:00:00Z'));
    await world.passTo('2025-10-15T14:01:00Z');
    await world.passTo('2025-10-15T14:10:30Z');
    expect(await world.runs()).toEqual([]);
    const back = await world.schedules.upsert(
      's',
      { cron: '* * * * *', tz, missed: 'skip', overlap: 'allow' },
      { data: 'v3' },
    );
    expect(back.next).toBe(Date.parse('2025-10-15T14:11:00Z'));
    await world.passTo('2025-10-15T14:11:00Z');
    // A change of the payload alone, before the hand-over.
    await world.schedules.upsert(
      's',
      { cron: '* * * * *', tz, missed: 'skip', overlap: 'allow' },
      { data: 'v4' },
    );
    await world.passTo('2025-10-15T14:12:00Z');
    expect(await world.runs()).toEqual(['2025-10-15T14:11:00Z', '2025-10-15T14:12:00Z']);
    expect(await runOf(world, 's', '2025-10-15T14:11:00Z')).toMatchObject({ data: '"v3"', name: 's' });
    expect(await runOf(world, 's', '2025-10-15T14:12:00Z')).toMatchObject({ data: '"v4"' });
  });

  test('B12 leaves no timer at the old time, also for another leader', async ({ task }) => {
    const world = await ScheduleWorld.at('2025-03-14T11:00:00Z', task);
    const first = await world.startScheduler();
    await world.schedules.upsert('s', { cron: '0 23 * * *', missed: 'skip', overlap: 'allow' });
    await world.passTo('2025-03-14T12:00:00Z');
    await world.schedules.upsert('s', { cron: '0 5 * * *', missed: 'skip', overlap: 'allow' });
    await world.settle();
    await first.stop();
    await world.startScheduler();
    for (const time of ['14T23:00:00', '14T23:00:30', '15T05:00:00', '16T05:00:00'])
      await world.passTo(`2025-03-${time}Z`);
    expect(await world.runs()).toEqual(['2025-03-15T05:00:00Z', '2025-03-16T05:00:00Z']);
  });

  test('is never retroactive: an overdue tick of the old definition does not run', async ({ task }) => {
    const world = await ScheduleWorld.at('2026-01-15T08:00:30Z', task);
    await world.schedules.upsert('s', minutely);
    await world.setClock('2026-01-15T08:10:30Z');
    await world.schedules.upsert('s', { cron: '*/2 * * * *', missed: 'latest' });
    await world.startScheduler();
    await world.settle();
    expect(await world.runs()).toEqual([]);
    expect(await world.ledger('s')).toEqual([
      'skipped 2026-01-15T08:10:00Z edited: every tick from 2026-01-15T08:01:00.000Z to 2026-01-15T08:10:00.000Z',
    ]);
    await world.passTo('2026-01-15T08:12:00Z');
    expect(await world.runs()).toEqual(['2026-01-15T08:12:00Z']);
  });

  test('of policies and template alone moves no tick, not even an overdue one', async ({ task }) => {
    const world = await ScheduleWorld.at('2026-01-15T08:00:30Z', task);
    await world.schedules.upsert('s', minutely);
    await world.setClock('2026-01-15T08:01:10Z');
    await world.schedules.upsert('s', { ...minutely, tags: ['a'] }, { name: 'other' });
    await world.startScheduler();
    await world.settle();
    expect(await world.runs()).toEqual(['2026-01-15T08:01:00Z']);
    expect(await runOf(world, 's', '2026-01-15T08:01:00Z')).toMatchObject({ name: 'other' });
  });

  test('never moves an anchor', async ({ task }) => {
    const world = await ScheduleWorld.at('2026-01-15T08:07:00Z', task);
    const every = { every: '1h', missed: 'latest' } as const;
    await world.schedules.upsert('s', every);
    await world.setClock('2026-01-15T10:30:00Z');
    const edits: ScheduleDefinition[] = [
      { ...every, limit: 100 },
      { ...every, tags: ['x'] },
      { ...every, jitter: '1m' },
      { ...every, endDate: '2028-01-01T00:00:00Z' },
    ];
    for (const definition of edits) {
      const { next } = await world.schedules.upsert('s', definition);
      expect((next ?? 0) % HOUR).toBe(7 * 60_000);
    }
    // Another interval counts from the edit.
    expect((await world.schedules.upsert('s', { ...every, every: '2h' })).next).toBe(
      Date.parse('2026-01-15T12:30:00Z'),
    );
  });
});

describe('the life of a schedule', () => {
  test('B07 the next tick comes from the one that ran, not from a clock that is 13 ms behind', async ({
    task,
  }) => {
    const world = await ScheduleWorld.at('2026-01-15T17:15:00Z', task);
    await world.startScheduler();
    await world.schedules.upsert('s', { cron: '*/10 * * * *', missed: 'skip', overlap: 'allow' });
    for (const minute of ['20', '30', '40', '50']) {
      const tick = Date.parse(`2026-01-15T17:${minute}:00Z`);
      await world.passTo(tick);
      await world.passTo(tick - 13);
      await world.passTo(tick + 1);
    }
    expect(await world.runs()).toEqual(
      ['20', '30', '40', '50'].map((minute) => `2026-01-15T17:${minute}:00Z`),
    );
  });

  test('B21 restarts every 6 hours move no tick, and lose none', async ({ task }) => {
    const world = await ScheduleWorld.at('2026-01-15T00:00:00Z', task);
    await world.schedules.upsert('cron', { cron: '0 3 * * 0', missed: 'latest', overlap: 'allow' });
    await world.schedules.upsert('every', { every: 604_800_000, missed: 'latest', overlap: 'allow' });
    const start = await world.now();
    for (let hours = 6; hours <= 16 * 24; hours += 6) {
      const time = start + hours * HOUR;
      // One restart spans 2026-01-18T03:00: down at 02:59:30, back at 03:00:30.
      const isSpanning = new Date(time).toISOString().startsWith('2026-01-18T06');
      if (isSpanning) {
        await world.setClock('2026-01-18T03:00:30Z');
        await world.serveOnce();
      }
      await world.setClock(time);
      await world.serveOnce();
    }
    expect(await world.runs('cron')).toEqual(['2026-01-18T03:00:00Z', '2026-01-25T03:00:00Z']);
    expect(await world.runs('every')).toEqual(['2026-01-22T00:00:00Z', '2026-01-29T00:00:00Z']);
  });

  test('limit: so many runs, then ended; a higher limit starts it again', async ({ task }) => {
    const world = await ScheduleWorld.at('2026-01-15T08:00:30Z', task);
    await world.startScheduler();
    await world.schedules.upsert('s', { ...minutely, limit: 2 });
    await world.passBy(60_000, '2026-01-15T08:04:30Z');
    expect(await world.runs()).toEqual(['2026-01-15T08:01:00Z', '2026-01-15T08:02:00Z']);
    expect(await world.schedules.get('s').describe()).toMatchObject({
      state: 'ended',
      next: undefined,
      count: 2,
      last: Date.parse('2026-01-15T08:02:00Z'),
    });
    expect((await world.history()).at(-1)).toBe('ended 2026-01-15T08:02:00Z no tick follows');
    expect(await world.schedules.upsert('s', { ...minutely, limit: 2 })).toMatchObject({ state: 'ended' });
    await world.schedules.upsert('s', { ...minutely, limit: 3 });
    await world.passBy(60_000, '2026-01-15T08:07:30Z');
    expect(await world.runs()).toEqual([
      '2026-01-15T08:01:00Z',
      '2026-01-15T08:02:00Z',
      '2026-01-15T08:05:00Z',
    ]);
  });

  test('startDate and endDate: a tick exactly at either runs', async ({ task }) => {
    const world = await ScheduleWorld.at('2026-01-15T08:00:30Z', task);
    await world.startScheduler();
    const created = await world.schedules.upsert('s', {
      ...minutely,
      startDate: '2026-01-15T08:03:00Z',
      endDate: '2026-01-15T08:04:00Z',
    });
    expect(created.next).toBe(Date.parse('2026-01-15T08:03:00Z'));
    await world.passBy(30_000, '2026-01-15T08:06:00Z');
    expect(await world.runs()).toEqual(['2026-01-15T08:03:00Z', '2026-01-15T08:04:00Z']);
    expect(await world.schedules.get('s').describe()).toMatchObject({ state: 'ended' });
  });

  test('a definition without any tick to come is stored as ended', async ({ task }) => {
    const world = await ScheduleWorld.at('2026-01-15T08:00:30Z', task);
    const past = await world.schedules.upsert('s', { ...minutely, endDate: '2026-01-01T00:00:00Z' });
    expect(past).toMatchObject({ state: 'ended', next: undefined });
    await world.serveOnce();
    expect(await world.schedules.upsert('s', minutely)).toMatchObject({
      state: 'scheduled',
      next: Date.parse('2026-01-15T08:01:00Z'),
    });
  });

  test('pause keeps it from firing, over restarts too; resume goes on', async ({ task }) => {
    const world = await ScheduleWorld.at('2026-01-15T08:00:30Z', task);
    const scheduler = await world.startScheduler();
    const schedule = world.schedules.get('s');
    await world.schedules.upsert('s', { ...minutely, missed: 'skip' });
    await schedule.pause({ note: 'the printer is broken' });
    await world.passTo('2026-01-15T08:01:00Z');
    await scheduler.stop();
    await world.startScheduler();
    await world.passTo('2026-01-15T08:02:30Z');
    expect(await world.runs()).toEqual([]);
    expect(await schedule.describe()).toMatchObject({ state: 'paused', note: 'the printer is broken' });
    // An upsert that a deployment repeats does not resume it.
    await world.schedules.upsert('s', { ...minutely, missed: 'skip', tags: ['x'] });
    await world.schedules.upsert('s', { cron: '*/2 * * * *', missed: 'skip' });
    expect(await schedule.describe()).toMatchObject({ state: 'paused' });
    await schedule.resume();
    await expect(schedule.resume()).rejects.toMatchObject({ code: 'CONFLICT' });
    await world.passTo('2026-01-15T08:04:00Z');
    expect(await world.runs()).toEqual(['2026-01-15T08:04:00Z']);
    expect(await schedule.describe()).toMatchObject({ state: 'scheduled', note: undefined });
  });

  test('an edit between resume and the planner’s answer brings no tick of the pause back', async ({
    task,
  }) => {
    const world = await ScheduleWorld.at('2026-01-15T08:00:30Z', task);
    await world.schedules.upsert('s', { ...minutely, missed: 'skip' });
    await world.schedules.get('s').pause();
    await world.setClock('2026-01-15T08:01:10Z');
    await world.schedules.get('s').resume();
    await world.schedules.upsert('s', { ...minutely, missed: 'skip', tags: ['x'] });
    // 08:01 is within its grace: served now, it would run late if it had not come during the pause.
    await world.startScheduler();
    await world.settle();
    expect(await world.runs()).toEqual([]);
    await expectHealthy(world.spine);
  });

  test('of what was set aside and is released only a tick within its grace runs', async ({ task }) => {
    const world = await ScheduleWorld.at('2026-01-15T08:00:30Z', task);
    const { client, keys } = world.spine;
    const bucket = bucketOf(`${QUEUE}:s`);
    await world.schedules.upsert('s', { ...minutely, missed: 'skip', overlap: 'allow' });
    const record = (await client.hgetBuffer(keys.jobs(bucket), `${QUEUE}:s`)) ?? Buffer.alloc(0);
    const header = Buffer.alloc(8);
    header.writeUIntBE(await world.now(), 0, 6);
    await client.hset(keys.quarantine(bucket), `${QUEUE}:s`, Buffer.concat([header, record]));
    await client.hdel(keys.jobs(bucket), `${QUEUE}:s`);
    await client.zrem(keys.due(bucket), `${QUEUE}:s`);
    await client.hincrby(keys.queues, `${QUEUE}:schedules`, -1);
    await world.startScheduler();
    await world.passTo('2026-01-15T08:05:10Z');
    await world.spine.jobs.releaseQuarantine(QUEUE, 's', 'release', 'r');
    await world.settle();
    expect(await world.runs()).toEqual(['2026-01-15T08:05:00Z']);
    await world.passTo('2026-01-15T08:06:00Z');
    expect(await world.runs()).toEqual(['2026-01-15T08:05:00Z', '2026-01-15T08:06:00Z']);
    await expectHealthy(world.spine, 'leader');
  });

  test('preview and nextFireTimes tell the ticks that come', async ({ task }) => {
    const world = await ScheduleWorld.at('2026-03-28T23:30:00Z', task);
    const definition = { cron: '*/40 0-3 * * *', tz: 'Europe/Berlin', limit: 6 };
    await world.startScheduler();
    await world.schedules.upsert('s', { ...definition, missed: 'skip', overlap: 'allow' });
    const told = await world.schedules.get('s').preview(20);
    const computed = nextFireTimes(definition, { after: '2026-03-28T23:30:00Z', count: 6 });
    expect(told.map(({ at }) => at)).toEqual(computed.map(Number));
    for (const { at } of told) await world.passTo(at);
    expect((await world.runs()).map((time) => Date.parse(time))).toEqual(told.map(({ at }) => at));
    expect(await world.schedules.get('s').preview()).toEqual([]);
  });

  test('delete takes the pending tick with it', async ({ task }) => {
    const world = await ScheduleWorld.at('2026-01-15T08:00:30Z', task);
    await world.startScheduler();
    await world.schedules.upsert('s', minutely);
    expect(await world.schedules.get('s').delete({ reason: 'no more' })).toBe(true);
    expect(await world.schedules.get('s').delete()).toBe(false);
    await world.passTo('2026-01-15T08:01:00Z');
    await world.passTo('2026-01-15T08:02:00Z');
    expect(await world.runs()).toEqual([]);
    expect(await world.schedules.get('s').describe()).toBeUndefined();
  });
});

describe('jitter', () => {
  test('B26 of half a day: 20 runs in 10 days, one a slot, each at its own time and never before', async ({
    task,
  }) => {
    const world = await ScheduleWorld.at('2026-01-15T00:00:00Z', task);
    await world.startScheduler();
    const jittered: ScheduleDefinition = {
      cron: '0 6,18 * * *',
      jitter: '12h',
      missed: 'skip',
      overlap: 'allow',
    };
    await world.schedules.upsert('s', jittered);
    const late: number[] = [];
    for (let run = 1; run <= 20; run++) {
      const { next = 0, nextFireAt = 0 } = (await world.schedules.get('s').describe()) ?? {};
      late.push(nextFireAt - next);
      await world.passTo(nextFireAt - 1);
      expect(await world.runs()).toHaveLength(run - 1);
      await world.passTo(nextFireAt);
    }
    const slots = Array.from({ length: 20 }, (_, i) => new Date(Date.UTC(2026, 0, 15, 6 + i * 12)));
    expect(await world.runs()).toEqual(slots.map((slot) => slot.toISOString().replace('.000Z', 'Z')));
    expect(Math.min(...late)).toBeGreaterThanOrEqual(0);
    expect(Math.max(...late)).toBeLessThan(12 * HOUR);
    expect(new Set(late).size).toBeGreaterThan(15);
  });
});

describe('removed and made again under the same id', () => {
  test('right after a tick: that one does not run again', async ({ task }) => {
    const world = await ScheduleWorld.at('2026-01-15T08:00:30Z', task);
    await world.startScheduler();
    await world.schedules.upsert('s', minutely);
    await world.passTo('2026-01-15T08:01:00Z');
    for (let i = 0; i < 3; i++) {
      await world.schedules.get('s').delete();
      await world.schedules.upsert('s', minutely);
    }
    // TIME a little behind: the tick that ran is still to come by the clock.
    await world.passTo('2026-01-15T08:00:59Z');
    await world.schedules.get('s').delete();
    const again = await world.schedules.upsert('s', minutely);
    expect(again.next).toBe(Date.parse('2026-01-15T08:02:00Z'));
    await world.passTo('2026-01-15T08:01:00Z');
    await world.passTo('2026-01-15T08:02:00Z');
    expect(await world.runs()).toEqual(['2026-01-15T08:01:00Z', '2026-01-15T08:02:00Z']);
  });

  test('before a tick: it runs once, of the new definition; none of the old', async ({ task }) => {
    const world = await ScheduleWorld.at('2026-01-15T08:00:30Z', task);
    await world.startScheduler();
    await world.schedules.upsert('s', minutely, { data: 'old' });
    await world.schedules.get('s').delete();
    await world.schedules.upsert('s', { ...minutely, cron: '*/2 * * * *' }, { data: 'new' });
    await world.passBy(60_000, '2026-01-15T08:04:30Z');
    expect(await world.runs()).toEqual(['2026-01-15T08:02:00Z', '2026-01-15T08:04:00Z']);
    expect(await runOf(world, 's', '2026-01-15T08:02:00Z')).toMatchObject({ data: '"new"' });
  });

  test('the ticks between are of no definition, and never run', async ({ task }) => {
    const world = await ScheduleWorld.at('2026-01-15T08:00:30Z', task);
    await world.startScheduler();
    await world.schedules.upsert('s', minutely);
    await world.schedules.get('s').delete();
    await world.passTo('2026-01-15T08:05:30Z');
    await world.schedules.upsert('s', minutely);
    await world.passTo('2026-01-15T08:06:00Z');
    expect(await world.runs()).toEqual(['2026-01-15T08:06:00Z']);
  });
});

test('no drift: ticks of every 700 ms by the real clock lie on multiples from the anchor (I9)', async ({
  task,
}) => {
  const world = await ScheduleWorld.live(task);
  await world.startScheduler();
  const { next = 0 } = await world.schedules.upsert('s', { every: 700, missed: 'skip', overlap: 'allow' });
  await world.untilRuns(8);
  const ticks = (await world.runs()).map((time) => Date.parse(time));
  // One that was overtaken on a busy machine is recorded.
  const overtaken = (await world.ledger('s')).filter((line) => line.startsWith('skipped')).length;
  expect(ticks[0]).toBe(next);
  expect(new Set(ticks).size).toBe(ticks.length);
  for (const tick of ticks) expect((tick - next) % 700).toBe(0);
  if (overtaken === 0) expect(ticks.at(-1)).toBe(next + (ticks.length - 1) * 700);
});
