import { describe, expect, test } from 'vitest';
import type { ScheduleDefinition } from '../../src/domain/schedule.js';
import { aJob } from '../support/builders.js';
import { QUEUE, ScheduleWorld } from '../support/schedule-world.js';
import { changesOf } from '../support/spine-state.js';

const START = '2026-03-27T12:00:30Z';

const DEFINITIONS: Record<string, ScheduleDefinition> = {
  'over a gap': { cron: '30 2 * * *', tz: 'Europe/Berlin', missed: 'skip' },
  'from its identity': { cron: 'H H * * *', missed: 'skip' },
  'an interval from now on': { every: '7m', missed: 'latest' },
  'with jitter': { cron: '*/5 * * * *', jitter: '4m', missed: 'all' },
  'with exclusions': {
    cron: '0 9 * * *',
    exclude: ['2026-03-28', { from: '2026-03-30', to: '2026-04-02' }],
    onExcluded: 'next',
    missed: 'skip',
  },
  'with a limit': { cron: '@hourly', limit: 3, missed: 'skip' },
  'with an end before now': { cron: '@hourly', endDate: '2026-01-01T00:00:00Z', missed: 'skip' },
};

describe('preview of a definition', () => {
  test.each(Object.entries(DEFINITIONS))('%s: what upsert makes of it', async (what, definition) => {
    const world = await ScheduleWorld.at(START, { name: `preview ${what}` });
    const { result, changes } = await changesOf(world.spine, () => world.schedules.preview('s', definition));
    expect(changes).toEqual({});
    const info = await world.schedules.upsert('s', definition);
    expect(await world.schedules.get('s').preview()).toEqual(result);
    const [first] = result;
    expect([info.next, info.nextFireAt]).toEqual([first?.at, first?.fireAt]);
  });

  test('of one that is stored: what the edit would make of it', async ({ task }) => {
    const world = await ScheduleWorld.at(START, task);
    await world.schedules.upsert('s', { every: '7m', missed: 'skip', overlap: 'allow', limit: 5 });
    await world.startScheduler();
    await world.passTo('2026-03-27T12:07:30Z');
    await world.passTo('2026-03-27T12:09:00Z');
    // Its anchor stays, and so does what it has fired of its limit.
    const edited: ScheduleDefinition = {
      every: '7m',
      missed: 'latest',
      overlap: 'allow',
      limit: 4,
      jitter: '1m',
    };
    const told = await world.schedules.preview('s', edited);
    expect(told.map(({ wallClock }) => wallClock.slice(11, 19))).toEqual([
      '12:14:30',
      '12:21:30',
      '12:28:30',
    ]);
    await world.schedules.upsert('s', edited);
    expect(await world.schedules.get('s').preview()).toEqual(told);
  });

  test('jitter, gap and exclusion are marked; a run fires when the preview said', async ({ task }) => {
    const world = await ScheduleWorld.at(START, task);
    const definition: ScheduleDefinition = {
      cron: '30 2 * * *',
      tz: 'Europe/Berlin',
      jitter: '30m',
      exclude: ['2026-03-28'],
      missed: 'skip',
    };
    const [first] = await world.schedules.preview('s', definition, 1);
    expect(first).toMatchObject({
      wallClock: '2026-03-29T03:30:00+02:00',
      notes: [{ change: 'gap', outcome: 'shifted' }],
      excluded: [{ text: expect.stringContaining('2026-03-28') }],
    });
    const fireAt = first?.fireAt ?? 0;
    expect(fireAt).toBeGreaterThan(first?.at ?? 0);
    await world.schedules.upsert('s', definition);
    await world.startScheduler();
    await world.passTo(fireAt - 1);
    expect(await world.runIds()).toEqual([]);
    await world.passTo(fireAt);
    expect(await world.runIds()).toEqual([`s@${first?.at}`]);
  });

  test('refuses what upsert would', async ({ task }) => {
    const world = await ScheduleWorld.at(START, task);
    const { schedules } = world;
    await expect(schedules.preview('s', { cron: '*/90 * * * *', missed: 'skip' })).rejects.toMatchObject({
      code: 'INVALID_CRON',
    });
    await expect(schedules.preview('s', { cron: '@daily' } as ScheduleDefinition)).rejects.toMatchObject({
      field: 'missed',
    });
    await expect(schedules.preview('s', { cron: '@daily', missed: 'skip' }, 0)).rejects.toMatchObject({
      field: 'count',
    });
    const named: ScheduleDefinition = { cron: '@daily', missed: 'skip', exclude: [{ calendar: 'uk' }] };
    await expect(schedules.preview('s', named)).rejects.toMatchObject({ code: 'NOT_FOUND' });
    await world.spine.submit(QUEUE, [aJob('s')]);
    await expect(schedules.preview('s', { cron: '@daily', missed: 'skip' })).rejects.toMatchObject({
      code: 'ID_IN_USE',
    });
  });
});
