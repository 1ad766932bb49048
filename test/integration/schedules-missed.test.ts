import { describe, expect, test } from 'vitest';
import { ScheduleWorld } from '../support/schedule-world.js';

/** Runs are told by their scheduled times: minutes of one day, `12:00`, or whole ISO texts of others. */
function times(date: string, ...minutes: string[]): string[] {
  return minutes.map((minute) => `${date}T${minute}:00Z`);
}

/**
 * A schedule of each policy and cadence, made at 11:59:30 on Thursday 2026-01-15. The scheduler serves 12:00, goes away
 * at 12:00:30 and is back at `back`.
 */
async function outage(task: { name: string }, back: string) {
  const world = await ScheduleWorld.at('2026-01-15T11:59:30Z', task);
  for (const missed of ['skip', 'latest'] as const) {
    await world.schedules.upsert(`minutely-${missed}`, { cron: '* * * * *', missed });
    await world.schedules.upsert(`every-${missed}`, { every: '7m', missed });
    await world.schedules.upsert(`daily-${missed}`, { cron: '10 12 * * *', missed });
    await world.schedules.upsert(`once-a-week-${missed}`, { cron: '0 13 * * 4', missed });
  }
  const before = await world.startScheduler();
  await world.passTo('2026-01-15T12:00:00Z');
  await before.stop();
  await world.setClock(back);
  await world.startScheduler();
  await world.settle();
  return world;
}

describe('an outage of 40 minutes', () => {
  test('skip runs none of its ticks, latest the newest; then all go on', async ({ task }) => {
    const world = await outage(task, '2026-01-15T12:40:45Z');
    await world.passTo('2026-01-15T12:41:00Z');
    await world.passTo('2026-01-15T12:41:30Z');
    await world.passTo('2026-01-15T12:42:00Z');
    const day = '2026-01-15';
    expect(await world.runs('minutely-skip')).toEqual(times(day, '12:00', '12:41', '12:42'));
    expect(await world.runs('minutely-latest')).toEqual(times(day, '12:00', '12:40', '12:41', '12:42'));
    // Anchored at its creation: 12:06:30, 12:13:30, … 12:34:30, 12:41:30.
    expect(await world.runs('every-skip')).toEqual(['2026-01-15T12:41:30Z']);
    expect(await world.runs('every-latest')).toEqual(['2026-01-15T12:34:30Z', '2026-01-15T12:41:30Z']);
    expect(await world.runs('daily-skip')).toEqual([]);
    expect(await world.runs('daily-latest')).toEqual(times(day, '12:10'));
    expect(await world.runs('once-a-week-skip')).toEqual([]);
    expect(await world.runs('once-a-week-latest')).toEqual([]);
    expect((await world.history()).sort()).toEqual([
      'skipped 2026-01-15T12:10:00Z missed',
      'skipped 2026-01-15T12:27:30Z missed: every tick from 2026-01-15T12:06:30.000Z to 2026-01-15T12:27:30.000Z',
      'skipped 2026-01-15T12:34:30Z missed: every tick from 2026-01-15T12:06:30.000Z to 2026-01-15T12:34:30.000Z',
      'skipped 2026-01-15T12:39:00Z missed: every tick from 2026-01-15T12:01:00.000Z to 2026-01-15T12:39:00.000Z',
      'skipped 2026-01-15T12:40:00Z missed: every tick from 2026-01-15T12:01:00.000Z to 2026-01-15T12:40:00.000Z',
    ]);
  });

  test('a tick that is served within its grace runs late, also under skip', async ({ task }) => {
    const world = await outage(task, '2026-01-15T12:40:30Z');
    expect(await world.runs('minutely-skip')).toEqual(times('2026-01-15', '12:00', '12:40'));
    expect(await world.runs('minutely-latest')).toEqual(times('2026-01-15', '12:00', '12:40'));
  });
});

describe('an outage of 3 days', () => {
  test('each policy, exactly; latest runs nothing older than a day', async ({ task }) => {
    const world = await outage(task, '2026-01-18T12:05:45Z');
    await world.passTo('2026-01-18T12:06:00Z');
    await world.passTo('2026-01-18T12:07:00Z');
    await world.passTo('2026-01-18T12:08:30Z');
    await world.passTo('2026-01-18T12:10:00Z');
    const first = times('2026-01-15', '12:00');
    const then = times('2026-01-18', '12:06', '12:07', '12:08', '12:10');
    // Where the clock leapt over 12:09 it came and went while the schedule was served: its next overtook it.
    expect(await world.runs('minutely-skip')).toEqual([...first, ...then]);
    expect(await world.runs('minutely-latest')).toEqual([...first, ...times('2026-01-18', '12:05'), ...then]);
    // Each 7 minutes since 11:59:30 of the 15th: the newest, 12:05:30, is served within its grace.
    for (const missed of ['skip', 'latest'])
      expect(await world.runs(`every-${missed}`)).toEqual(['2026-01-18T12:05:30Z']);
    expect(await world.runs('daily-skip')).toEqual(times('2026-01-18', '12:10'));
    expect(await world.runs('daily-latest')).toEqual([
      ...times('2026-01-17', '12:10'),
      ...times('2026-01-18', '12:10'),
    ]);
    // Thursday 13:00 is almost three days old: beyond the window of a day.
    expect(await world.runs('once-a-week-latest')).toEqual([]);
    expect(await world.runs('once-a-week-skip')).toEqual([]);
    const weekly = await world.schedules.get('once-a-week-latest').describe();
    expect(weekly).toMatchObject({ state: 'scheduled', next: Date.parse('2026-01-22T13:00:00Z') });
  });
});

describe('B18 more than a hundred missed ticks stop nothing', () => {
  test('skip goes on at the next tick, latest after one catch-up', async ({ task }) => {
    const world = await outage(task, '2026-01-15T13:41:31Z');
    await world.passTo('2026-01-15T13:42:00Z');
    expect(await world.runs('minutely-skip')).toEqual(times('2026-01-15', '12:00', '13:42'));
    expect(await world.runs('minutely-latest')).toEqual(times('2026-01-15', '12:00', '13:41', '13:42'));
  });

  test('a pause of a week: skip runs none of it, latest the newest', async ({ task }) => {
    const world = await ScheduleWorld.at('2026-01-15T11:59:30Z', task);
    for (const missed of ['skip', 'latest'] as const) {
      await world.schedules.upsert(missed, { cron: '* * * * *', missed });
      await world.schedules.get(missed).pause({ note: 'holidays' });
    }
    await world.setClock('2026-01-22T12:00:15Z');
    await world.startScheduler();
    await world.settle();
    expect(await world.runs()).toEqual([]);
    for (const missed of ['skip', 'latest']) await world.schedules.get(missed).resume();
    await world.settle();
    // 12:00:00 is within its grace, but it came during the pause.
    expect(await world.runs('skip')).toEqual([]);
    expect(await world.runs('latest')).toEqual(times('2026-01-22', '12:00'));
    await world.passTo('2026-01-22T12:01:00Z');
    expect(await world.runs('skip')).toEqual(times('2026-01-22', '12:01'));
    expect(await world.runs('latest')).toEqual(times('2026-01-22', '12:00', '12:01'));
    expect(await world.history()).toContain(
      'skipped 2026-01-22T12:00:00Z paused or parked: every tick from 2026-01-15T12:00:00.000Z to 2026-01-22T12:00:00.000Z',
    );
  });
});

describe('B23 a scheduler or a clock that stands still', () => {
  test('all schedulers away for 40 minutes: once right after, by policy, not 40 minutes after', async ({
    task,
  }) => {
    const world = await ScheduleWorld.at('2026-01-15T13:59:00Z', task);
    await world.schedules.upsert('s', { cron: '*/5 * * * *', missed: 'latest' });
    await (await world.startScheduler()).stop();
    await world.setClock('2026-01-15T14:39:00Z');
    await world.startScheduler();
    await world.settle();
    expect(await world.runs()).toEqual(times('2026-01-15', '14:35'));
    await world.passTo('2026-01-15T14:40:00Z');
    expect(await world.runs()).toEqual(times('2026-01-15', '14:35', '14:40'));
  });

  test('TIME steps back: nothing runs again, nothing stops', async ({ task }) => {
    const world = await ScheduleWorld.at('2026-01-15T13:59:50Z', task);
    await world.schedules.upsert('s', { cron: '*/5 * * * *', missed: 'latest' });
    await world.startScheduler();
    await world.passTo('2026-01-15T14:00:00Z');
    for (const back of ['2026-01-15T13:59:58Z', '2026-01-15T02:00:00Z']) {
      await world.passTo(back);
      expect(await world.runs()).toEqual(times('2026-01-15', '14:00'));
      expect((await world.schedules.get('s').describe())?.next).toBe(Date.parse('2026-01-15T14:05:00Z'));
    }
    await world.passTo('2026-01-15T14:00:00Z');
    await world.passTo('2026-01-15T14:05:00Z');
    expect(await world.runs()).toEqual(times('2026-01-15', '14:00', '14:05'));
  });
});

test('a judgement of one outage does not outlive the next', async ({ task }) => {
  const world = await ScheduleWorld.at('2026-01-15T11:59:30Z', task);
  await world.schedules.upsert('s', { cron: '* * * * *', missed: 'latest' });
  await world.setClock('2026-01-15T12:40:45Z');
  // Judged, and then away again before the pop: 12:40 is to run, marked as a catch-up.
  const owned = await world.spine.lead();
  await world.spine.pop(owned);
  await world.plan(owned);
  expect(await world.schedules.get('s').describe()).toMatchObject({
    next: Date.parse('2026-01-15T12:40:00Z'),
  });
  // The scheduler of the test's own hands leaves no fence.
  await world.spine.client.del(world.spine.keys.fence);
  await world.setClock('2026-01-18T12:40:45Z');
  await world.startScheduler();
  await world.settle();
  expect(await world.runs()).toEqual(times('2026-01-18', '12:40'));
});
