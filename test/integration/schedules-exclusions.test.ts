import { describe, expect, test } from 'vitest';
import { Calendars } from '../../src/client/calendars.js';
import { CalendarStore } from '../../src/redis/calendar-store.js';
import { ScheduleWorld } from '../support/schedule-world.js';

const HOUR = 3_600_000;

async function open(test: { name: string }, time = '2026-12-23T00:00:00Z') {
  const world = await ScheduleWorld.at(time, test);
  const calendars = new Calendars(new CalendarStore(world.spine.shard));
  return { world, calendars };
}

const DAILY = { cron: '0 9 * * *', missed: 'skip' as const, overlap: 'allow' as const };

describe('what a scheduler runs', () => {
  test('an excluded date is left out, and is no missed tick', async ({ task }) => {
    const { world } = await open(task);
    await world.startScheduler();
    await world.schedules.upsert('s', { ...DAILY, exclude: ['2026-12-25'] });
    await world.passBy(12 * HOUR, '2026-12-27T13:00:00Z');
    expect(await world.runs()).toEqual([
      '2026-12-23T09:00:00Z',
      '2026-12-24T09:00:00Z',
      '2026-12-26T09:00:00Z',
      '2026-12-27T09:00:00Z',
    ]);
  });

  test('next moves past a calendar, and meets the tick that is there', async ({ task }) => {
    const { world, calendars } = await open(task);
    await calendars.set('uk', '2026-12-25 # Christmas Day\n2026-12-26 # Boxing Day');
    await world.startScheduler();
    const exclude = [{ calendar: 'uk' }];
    await world.schedules.upsert('friday', {
      cron: '0 9 * * 5',
      missed: 'skip',
      exclude,
      onExcluded: 'next',
    });
    await world.schedules.upsert('daily', { ...DAILY, exclude, onExcluded: 'next' });
    await world.passBy(12 * HOUR, '2026-12-28T13:00:00Z');
    expect(await world.runs('friday')).toEqual(['2026-12-27T09:00:00Z']);
    expect(await world.runs('daily')).toEqual([
      '2026-12-23T09:00:00Z',
      '2026-12-24T09:00:00Z',
      '2026-12-27T09:00:00Z',
      '2026-12-28T09:00:00Z',
    ]);
  });

  test('after an outage, nothing excluded is caught up', async ({ task }) => {
    const { world } = await open(task);
    await world.schedules.upsert('s', {
      cron: '0 9 * * *',
      missed: 'all',
      catchupWindow: '7d',
      exclude: ['2026-12-25'],
    });
    await world.setClock('2026-12-27T12:00:00Z');
    await world.serveOnce();
    const { waiting, runs } = { waiting: (await world.list())[0], runs: await world.runs() };
    expect(runs[0]).toBe('2026-12-23T09:00:00Z');
    const rows = await world.schedules.get('s').runs();
    expect(rows.map(({ scheduledFor }) => new Date(scheduledFor).toISOString().slice(0, 10))).not.toContain(
      '2026-12-25',
    );
    expect(waiting?.next).toBe(Date.parse('2026-12-28T09:00:00Z'));
  });
});

describe('a calendar that changes', () => {
  test('takes a pending tick away, and gives one back', async ({ task }) => {
    const { world, calendars } = await open(task);
    await calendars.set('c', '2026-01-01');
    await world.startScheduler();
    await world.schedules.upsert('s', { ...DAILY, exclude: [{ calendar: 'c' }] });
    await world.settle();
    const nextOf = async () => new Date((await world.list())[0]?.next ?? 0).toISOString().slice(0, 10);
    expect(await nextOf()).toBe('2026-12-23');
    expect((await calendars.set('c', '2026-12-23\n2026-12-24')).schedules).toBe(1);
    await world.passTo('2026-12-23T00:00:01Z');
    expect(await nextOf()).toBe('2026-12-25');
    await calendars.set('c', '2026-12-24');
    await world.passTo('2026-12-23T00:00:02Z');
    expect(await nextOf()).toBe('2026-12-23');
    await world.passBy(12 * HOUR, '2026-12-26T13:00:00Z');
    expect(await world.runs()).toEqual([
      '2026-12-23T09:00:00Z',
      '2026-12-25T09:00:00Z',
      '2026-12-26T09:00:00Z',
    ]);
  });

  test('makes nothing up: what is free again and has passed does not run', async ({ task }) => {
    const { world, calendars } = await open(task);
    await calendars.set('c', '2026-12-23');
    await world.startScheduler();
    await world.schedules.upsert('s', {
      ...DAILY,
      missed: 'latest',
      exclude: [{ calendar: 'c' }],
      onExcluded: 'next',
    });
    await world.passTo('2026-12-23T12:00:00Z');
    await calendars.set('c', '2026-12-01');
    await world.passBy(12 * HOUR, '2026-12-24T13:00:00Z');
    expect(await world.runs()).toEqual(['2026-12-24T09:00:00Z']);
  });

  test('leaves a tick that is due as it was planned', async ({ task }) => {
    const { world, calendars } = await open(task);
    await calendars.set('c', '2026-12-01');
    await world.schedules.upsert('s', { ...DAILY, grace: '1h', exclude: [{ calendar: 'c' }] });
    const scheduler = await world.startScheduler();
    await world.settle();
    await scheduler.stop();
    await world.setClock('2026-12-23T09:00:10Z');
    await calendars.set('c', '2026-12-23\n2026-12-24');
    await world.serveOnce();
    expect(await world.runs()).toEqual(['2026-12-23T09:00:00Z']);
    expect((await world.list())[0]?.next).toBe(Date.parse('2026-12-25T09:00:00Z'));
  });

  test('is obeyed by what was pending, however late a scheduler comes', async ({ task }) => {
    const { world, calendars } = await open(task);
    await calendars.set('c', '2026-12-01');
    await world.schedules.upsert('s', { ...DAILY, missed: 'latest', exclude: [{ calendar: 'c' }] });
    await world.serveOnce();
    await calendars.set('c', '2026-12-23');
    await world.setClock('2026-12-23T12:00:00Z');
    await world.serveOnce();
    expect(await world.runs()).toEqual([]);
    expect((await world.list())[0]?.next).toBe(Date.parse('2026-12-24T09:00:00Z'));
  });

  test('is followed by a paused schedule when it is resumed', async ({ task }) => {
    const { world, calendars } = await open(task);
    await calendars.set('c', '2026-12-01');
    await world.startScheduler();
    await world.schedules.upsert('s', { ...DAILY, exclude: [{ calendar: 'c' }] });
    await world.settle();
    await world.schedules.get('s').pause();
    await calendars.set('c', '2026-12-23');
    await world.schedules.get('s').resume();
    await world.passBy(12 * HOUR, '2026-12-24T13:00:00Z');
    expect(await world.runs()).toEqual(['2026-12-24T09:00:00Z']);
  });

  test('wakes a schedule that had ended for want of a free date', async ({ task }) => {
    const { world, calendars } = await open(task);
    await calendars.set('c', '2026-12-01..9999-12-31');
    await world.startScheduler();
    const info = await world.schedules.upsert('s', { ...DAILY, exclude: [{ calendar: 'c' }] });
    expect(info.state).toBe('ended');
    await calendars.set('c', '2026-12-23');
    await world.passBy(12 * HOUR, '2026-12-24T13:00:00Z');
    expect(await world.runs()).toEqual(['2026-12-24T09:00:00Z']);
  });

  test('while a schedule is written is followed as well', async ({ task }) => {
    const { world, calendars } = await open(task);
    await calendars.set('c', '2026-12-01');
    await world.startScheduler();
    const store = new CalendarStore(world.spine.shard);
    const named = store.named.bind(store);
    let changes = 0;
    // What another client does between our reading of the calendar and our writing of the schedule.
    store.named = async (names) => {
      const found = await named(names);
      if (changes++ === 0) await calendars.set('c', '2026-12-23');
      return found;
    };
    await world.withCalendars(store).upsert('s', { ...DAILY, exclude: [{ calendar: 'c' }] });
    await world.passBy(12 * HOUR, '2026-12-24T13:00:00Z');
    expect(changes).toBeGreaterThan(1);
    expect(await world.runs()).toEqual(['2026-12-24T09:00:00Z']);
  });
});

describe('a calendar that is not there', () => {
  test('is refused where a schedule is written', async ({ task }) => {
    const { world } = await open(task);
    await expect(
      world.schedules.upsert('s', { ...DAILY, exclude: [{ calendar: 'c' }] }),
    ).rejects.toMatchObject({
      code: 'NOT_FOUND',
      field: 'exclude',
    });
    expect(await world.list()).toEqual([]);
  });

  test('suspends its schedules, with the reason, when it was deleted by force', async ({ task }) => {
    const { world, calendars } = await open(task);
    await calendars.set('c', '2026-12-01');
    await world.startScheduler();
    await world.schedules.upsert('s', { ...DAILY, exclude: [{ calendar: 'c' }] });
    await world.settle();
    await calendars.delete('c', { force: true });
    await world.passBy(20_000, '2026-12-23T00:02:00Z');
    const [info] = await world.list();
    expect(info).toMatchObject({
      state: 'suspended',
      note: expect.stringMatching(/^NOT_FOUND: .*calendar c/),
    });
    await calendars.set('c', '2026-12-23');
    await world.schedules.get('s').resume();
    await world.passBy(12 * HOUR, '2026-12-24T13:00:00Z');
    expect(await world.runs()).toEqual(['2026-12-24T09:00:00Z']);
  });
});

test('a schedule tells what it leaves out, and what was excluded before each tick', async ({ task }) => {
  const { world, calendars } = await open(task);
  await calendars.set('uk', '2026-12-25 # Christmas Day');
  await world.schedules.upsert('s', {
    cron: '0 9 * * 5',
    missed: 'skip',
    exclude: [{ calendar: 'uk' }, '2027-01-01'],
    onExcluded: 'next',
  });
  const [first] = await world.schedules.get('s').preview(2);
  expect(first).toMatchObject({
    wallClock: '2026-12-26T09:00:00+00:00',
    movedFrom: Date.parse('2026-12-25T09:00:00Z'),
    excluded: [{ text: expect.stringContaining('2026-12-25 (Christmas Day) of calendar uk, version 1') }],
  });
  const description = await world.schedules.get('s').describe();
  expect(description?.words.join(' ')).toContain(
    'A tick on the dates of calendar uk, 2027-01-01 runs at the same time on the next date that is free.',
  );
});

test('an edit of what is excluded moves ticks; of its order as well, to the same times', async ({ task }) => {
  const { world } = await open(task);
  const first = await world.schedules.upsert('s', { ...DAILY, exclude: ['2026-12-23', '2026-12-25'] });
  expect(first.next).toBe(Date.parse('2026-12-24T09:00:00Z'));
  const second = await world.schedules.upsert('s', { ...DAILY, exclude: ['2026-12-24'] });
  expect(second.next).toBe(Date.parse('2026-12-23T09:00:00Z'));
  const third = await world.schedules.upsert('s', DAILY);
  expect(third.next).toBe(Date.parse('2026-12-23T09:00:00Z'));
  await expect(
    world.schedules.upsert('s', { every: '1h', missed: 'skip', exclude: ['2026-12-24'], onExcluded: 'next' }),
  ).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    field: 'onExcluded',
  });
});
