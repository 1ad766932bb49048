import { describe, expect, test } from 'vitest';
import { aJob } from '../support/builders.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { QUEUE, ScheduleWorld } from '../support/schedule-world.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { LineLogger } from '../support/spine-scheduler.js';

/** Runs are told by their scheduled times: minutes of one day, `12:00`, or whole ISO texts of others. */
function times(date: string, ...minutes: string[]): string[] {
  return minutes.map((minute) => `${date}T${minute}:00Z`);
}

/** No worker takes the runs of these tests: those of one schedule stand open beside each other. */
const overlap = 'allow';

/**
 * A schedule of each policy and cadence, made at 11:59:30 on Thursday 2026-01-15. The scheduler serves 12:00, goes away
 * at 12:00:30 and is back at `back`.
 */
async function outage(task: { name: string }, back: string) {
  const world = await ScheduleWorld.at('2026-01-15T11:59:30Z', task);
  for (const missed of ['skip', 'latest'] as const) {
    await world.schedules.upsert(`minutely-${missed}`, { cron: '* * * * *', missed, overlap });
    await world.schedules.upsert(`every-${missed}`, { every: '7m', missed, overlap });
    await world.schedules.upsert(`daily-${missed}`, { cron: '10 12 * * *', missed, overlap });
    await world.schedules.upsert(`once-a-week-${missed}`, { cron: '0 13 * * 4', missed, overlap });
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
    const span = (from: string, to: string) =>
      `missed: every tick from ${day}T${from}.000Z to ${day}T${to}.000Z`;
    expect(await world.ledger('minutely-skip')).toEqual([
      'dispatched 2026-01-15T12:00:00Z',
      `skipped 2026-01-15T12:40:00Z ${span('12:01:00', '12:40:00')}`,
      'dispatched 2026-01-15T12:41:00Z',
      'dispatched 2026-01-15T12:42:00Z',
    ]);
    expect(await world.ledger('minutely-latest')).toEqual([
      'dispatched 2026-01-15T12:00:00Z',
      `skipped 2026-01-15T12:39:00Z ${span('12:01:00', '12:39:00')}`,
      'caught up 2026-01-15T12:40:00Z',
      'dispatched 2026-01-15T12:41:00Z',
      'dispatched 2026-01-15T12:42:00Z',
    ]);
    expect(await world.ledger('every-skip')).toEqual([
      `skipped 2026-01-15T12:34:30Z ${span('12:06:30', '12:34:30')}`,
      'dispatched 2026-01-15T12:41:30Z',
    ]);
    expect(await world.ledger('every-latest')).toEqual([
      `skipped 2026-01-15T12:27:30Z ${span('12:06:30', '12:27:30')}`,
      'caught up 2026-01-15T12:34:30Z',
      'dispatched 2026-01-15T12:41:30Z',
    ]);
    expect(await world.ledger('daily-skip')).toEqual(['skipped 2026-01-15T12:10:00Z missed']);
    expect(await world.ledger('daily-latest')).toEqual(['caught up 2026-01-15T12:10:00Z']);
    for (const missed of ['skip', 'latest']) expect(await world.ledger(`once-a-week-${missed}`)).toEqual([]);
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
    // The heartbeat is as old as the last leap of the clock.
    await expectHealthy(world.spine, 'leader');
  });
});

describe('B18 more than a hundred missed ticks stop nothing', () => {
  test('skip goes on at the next tick, latest after one catch-up', async ({ task }) => {
    const world = await outage(task, '2026-01-15T13:41:31Z');
    await world.passTo('2026-01-15T13:42:00Z');
    expect(await world.runs('minutely-skip')).toEqual(times('2026-01-15', '12:00', '13:42'));
    expect(await world.runs('minutely-latest')).toEqual(times('2026-01-15', '12:00', '13:41', '13:42'));
  });

  test('all by onTooMany: refuse runs none, newest the newest ten in order, suspend stops it by choice', async ({
    task,
  }) => {
    const world = await ScheduleWorld.at('2026-01-15T12:00:30Z', task);
    const bounds = { cron: '* * * * *', missed: 'all', maxCatchup: 10, overlap } as const;
    for (const onTooMany of ['refuse', 'newest', 'suspend'] as const)
      await world.schedules.upsert(onTooMany, { ...bounds, onTooMany });
    await world.setClock('2026-01-15T13:41:31Z');
    const logger = new LineLogger();
    await world.startScheduler({ logger });
    await world.settle();
    // One at a time: each waits until the one before it has ended.
    for (let done = 0; done < 10; done++) {
      await world.endRuns();
      await world.look();
    }
    await world.endRuns();
    await world.passTo('2026-01-15T13:42:00Z');
    const day = '2026-01-15';
    expect(await world.runs('refuse')).toEqual(times(day, '13:42'));
    const caughtUp = times(day, ...Array.from({ length: 10 }, (_, i) => `13:${32 + i}`));
    expect(await world.runs('newest')).toEqual([...caughtUp, ...times(day, '13:42')]);
    expect(await world.runs('suspend')).toEqual([]);

    const all = 'too many: every tick from 2026-01-15T12:01:00.000Z to 2026-01-15T13:41:00.000Z';
    expect(await world.ledger('refuse')).toEqual([
      `refused 2026-01-15T13:41:00Z ${all}`,
      'dispatched 2026-01-15T13:42:00Z',
    ]);
    expect(await world.ledger('newest')).toEqual([
      'skipped 2026-01-15T13:31:00Z too many: every tick from 2026-01-15T12:01:00.000Z to 2026-01-15T13:31:00.000Z',
      ...caughtUp.map((time) => `caught up ${time}`),
      'dispatched 2026-01-15T13:42:00Z',
    ]);
    expect(await world.ledger('suspend')).toEqual([`refused 2026-01-15T13:41:00Z ${all}`]);
    const suspended = world.schedules.get('suspend');
    expect(await suspended.describe()).toMatchObject({
      state: 'suspended',
      note: 'more than 10 ticks were missed',
    });
    const alerts = logger.lines.filter((line) => line.startsWith('error'));
    expect(alerts.filter((line) => line.includes('refused to catch up'))).toHaveLength(2);
    expect(alerts.filter((line) => line.includes('suspended a schedule'))).toHaveLength(1);
    // By hand it goes on as after a pause; what was refused stays refused.
    await suspended.resume();
    await world.settle();
    await world.passTo('2026-01-15T13:43:00Z');
    expect(await world.runs('suspend')).toEqual(times(day, '13:42', '13:43'));
  });

  test('a pause of a week: skip runs none of it, latest and all the newest', async ({ task }) => {
    const world = await ScheduleWorld.at('2026-01-15T11:59:30Z', task);
    const policies = ['skip', 'latest', 'all'] as const;
    for (const missed of policies) {
      await world.schedules.upsert(missed, { cron: '* * * * *', missed, overlap });
      await world.schedules.get(missed).pause({ note: 'holidays' });
    }
    await world.setClock('2026-01-22T12:00:15Z');
    await world.startScheduler();
    await world.settle();
    expect(await world.runs()).toEqual([]);
    for (const missed of policies) await world.schedules.get(missed).resume();
    await world.settle();
    // 12:00:00 is within its grace, but it came during the pause.
    expect(await world.runs('skip')).toEqual([]);
    for (const missed of ['latest', 'all'])
      expect(await world.runs(missed)).toEqual(times('2026-01-22', '12:00'));
    await world.passTo('2026-01-22T12:01:00Z');
    expect(await world.runs('skip')).toEqual(times('2026-01-22', '12:01'));
    for (const missed of ['latest', 'all']) {
      expect(await world.runs(missed)).toEqual(times('2026-01-22', '12:00', '12:01'));
      expect(await world.ledger(missed)).toEqual([
        'skipped 2026-01-22T11:59:00Z paused: every tick from 2026-01-15T12:00:00.000Z to 2026-01-22T11:59:00.000Z',
        'caught up 2026-01-22T12:00:00Z',
        'dispatched 2026-01-22T12:01:00Z',
      ]);
    }
    expect(await world.ledger('skip')).toEqual([
      'skipped 2026-01-22T12:00:00Z paused: every tick from 2026-01-15T12:00:00.000Z to 2026-01-22T12:00:00.000Z',
      'dispatched 2026-01-22T12:01:00Z',
    ]);
    // What the pause left out may be run by hand.
    const day = { from: '2026-01-21T11:58:00Z', to: '2026-01-21T12:00:00Z' };
    expect(await world.schedules.get('all').backfill({ ...day, overlap: 'allow' })).toHaveLength(3);
    await world.settle();
    expect((await world.runs('all')).slice(2)).toEqual(times('2026-01-21', '11:58', '11:59', '12:00'));
  });
});

test('B56 a pause of ten minutes outlives a take-over and a restart: no run in it, then by policy', async ({
  task,
}) => {
  const world = await ScheduleWorld.at('2026-01-15T11:59:30Z', task);
  const first = await world.startScheduler();
  for (const missed of ['skip', 'latest'] as const)
    await world.schedules.upsert(missed, { cron: '* * * * *', missed, overlap });
  const [oneTime] = await world.spine.submit(QUEUE, [
    aJob('one-time', { time: Date.parse('2026-01-15T12:05:00Z') }),
  ]);
  expect(oneTime?.answer).toBe('created');
  await world.passTo('2026-01-15T12:00:00Z');
  await world.passTo('2026-01-15T12:00:30Z');
  for (const missed of ['skip', 'latest']) await world.schedules.get(missed).pause({ note: 'moving' });
  await world.spine.jobs.pause(QUEUE, 'one-time', 'moving', 'p');
  await world.passTo('2026-01-15T12:03:00Z');
  // Another takes over while the first still runs; then all are gone for a while.
  const second = await world.startScheduler();
  await world.passTo('2026-01-15T12:06:00Z');
  await first.stop();
  await second.stop();
  await world.setClock('2026-01-15T12:08:00Z');
  await world.startScheduler();
  await world.passTo('2026-01-15T12:10:30Z');
  const before = times('2026-01-15', '12:00');
  for (const id of ['skip', 'latest']) {
    expect(await world.runs(id)).toEqual(before);
    expect(await world.schedules.get(id).describe()).toMatchObject({ state: 'paused', note: 'moving' });
    await world.schedules.get(id).resume();
  }
  await world.spine.jobs.resume(QUEUE, 'one-time', 'r');
  await world.settle();
  await world.passTo('2026-01-15T12:11:00Z');
  expect(await world.runs('skip')).toEqual([...before, ...times('2026-01-15', '12:11')]);
  expect(await world.runs('latest')).toEqual([...before, ...times('2026-01-15', '12:10', '12:11')]);
  expect((await world.runIds()).filter((id) => id === 'one-time')).toHaveLength(1);
  await expectHealthy(world.spine, 'leader');
});

describe('B23 a scheduler or a clock that stands still', () => {
  test('all schedulers away for 40 minutes: once right after, by policy, not 40 minutes after', async ({
    task,
  }) => {
    const world = await ScheduleWorld.at('2026-01-15T13:59:00Z', task);
    await world.schedules.upsert('s', { cron: '*/5 * * * *', missed: 'latest', overlap });
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
    await world.schedules.upsert('s', { cron: '*/5 * * * *', missed: 'latest', overlap });
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

test('Redis is away for longer than a grace, and the leadership outlives it: missed, not late', async ({
  task,
}) => {
  const world = await ScheduleWorld.live(task);
  const proxy = await FaultProxy.start({ port: Number(new URL(world.spine.url).port) });
  const scheduler = await world.startScheduler({ redis: proxy.url, ttl: '60s' });
  await eventually(() => scheduler.readiness().leading);
  const tick = (await world.now()) + 1500;
  for (const missed of ['skip', 'latest'] as const)
    await world.schedules.upsert(missed, { every: '1h', anchor: tick, grace: '2s', missed });
  await proxy.suspend();
  await eventually(async () => (await world.now()) > tick + 6000, { timeout: 20_000 });
  await proxy.resume();
  await world.untilRuns(1);
  await world.settle();
  expect(await world.runIds()).toEqual([`latest@${tick}`]);
  expect(await world.ledger('skip')).toEqual([expect.stringMatching(/^skipped .* missed$/)]);
  expect(await world.ledger('latest')).toEqual([expect.stringMatching(/^caught up /)]);
});

test('a judgement of one outage does not outlive the next', async ({ task }) => {
  const world = await ScheduleWorld.at('2026-01-15T11:59:30Z', task);
  await world.schedules.upsert('s', { cron: '* * * * *', missed: 'latest', overlap });
  await world.setClock('2026-01-15T12:40:45Z');
  // Judged, and then away again before the next pop: 12:40 waits for its turn.
  const owned = await world.spine.lead();
  await world.spine.pop(owned);
  await world.plan(owned);
  expect(await world.schedules.get('s').describe()).toMatchObject({
    next: Date.parse('2026-01-15T12:41:00Z'),
    waiting: [{ scheduledFor: Date.parse('2026-01-15T12:40:00Z'), kind: 'catchUp' }],
  });
  // The scheduler of the test's own hands leaves no fence.
  await world.spine.client.del(world.spine.keys.fence);
  await world.setClock('2026-01-18T12:40:45Z');
  await world.startScheduler();
  await world.settle();
  // What was sure to run runs, and then the newest of the other outage.
  expect(await world.runs()).toEqual([...times('2026-01-15', '12:40'), ...times('2026-01-18', '12:40')]);
});
