import { describe, expect, test } from 'vitest';
import type { ScheduleDefinitionChange } from '../../src/client/schedule-change.js';
import type { ScheduleHandle } from '../../src/client/schedule-handle.js';
import { OVERLAP_CODES, type ScheduleDefinition, type StoredPolicies } from '../../src/domain/schedule.js';
import { CalendarStore } from '../../src/redis/calendar-store.js';
import { aJob, aSchedule } from '../support/builders.js';
import { QUEUE, ScheduleWorld } from '../support/schedule-world.js';
import { changesOf } from '../support/spine-state.js';

const MORNING = '2026-01-15T08:00:30Z';
const HOUR = 3_600_000;
const at = (time: string) => Date.parse(`2026-01-15T${time}Z`);
/** No worker takes the runs of these tests: they stand open beside each other. */
const minutely: ScheduleDefinition = { cron: '* * * * *', missed: 'latest', overlap: 'allow' };
const whole: ScheduleDefinition = {
  cron: '30 9 * * *',
  tz: 'Europe/London',
  missed: 'latest',
  grace: '1m',
  jitter: '2m',
  limit: 100,
  endDate: '2027-01-01T00:00:00Z',
  exclude: ['2026-12-25'],
  onExcluded: 'next',
  tags: ['billing'],
};
const template = { name: 'invoice', data: { kind: 'daily' }, opts: { attempts: 5 } };

async function worldOf(name: string, definition: ScheduleDefinition = whole) {
  const world = await ScheduleWorld.at(MORNING, { name });
  const created = await world.schedules.upsert('s', definition, template);
  return { world, created, s: world.schedules.get('s') };
}

/** The handle of a writer to whom `act` happens between its first reading and its first writing. */
function meeting(world: ScheduleWorld, act: () => Promise<unknown>): ScheduleHandle {
  const store = new CalendarStore(world.spine.shard);
  const named = store.named.bind(store);
  let readings = 0;
  store.named = async (names) => {
    if (readings++ === 0) await act();
    return named(names);
  };
  return world.withCalendars(store).get('s');
}

describe('an update', () => {
  test.for<[string, ScheduleDefinition, ScheduleDefinitionChange, Partial<StoredPolicies>]>([
    ['an option', whole, { jitter: '10m' }, { jitter: 600_000 }],
    ['an option that was not there', whole, { overlap: 'Allow' }, { overlap: 'allow' }],
    ['the time, in its zone', whole, { cron: '0 10 * * *' }, { cron: ['0 10 * * *'] }],
    ['one expression for several', whole, { crons: ['0 9 * * *', '0 10 * * *'] }, { cron: ['0 9 * * *', '0 10 * * *'] }],
    ['several for one by BullMQ’s name', { crons: ['@daily', '@hourly'], missed: 'skip' }, { pattern: '0 9 * * *' }, { cron: ['0 9 * * *'] }],
    ['an interval for an expression', minutely, { every: '15m', anchor: 0 }, { cron: undefined, every: 900_000, anchor: 0 }],
    ['an expression for an interval, whose anchor and phase go', { every: '1h', anchor: 0, phase: '5m', missed: 'skip' }, { cron: '@daily' }, { every: undefined, anchor: undefined, phase: undefined, cron: ['@daily'] }],
    ['the length of an interval', { every: '1h', anchor: 7, phase: '5m', missed: 'skip' }, { every: '2h' }, { every: 2 * HOUR }],
    ['the zone, back to UTC', whole, { tz: null }, { tz: undefined }],
    ['several away', whole, { jitter: null, limit: null, endDate: null, tags: null }, { jitter: undefined, limit: undefined, endDate: undefined, tags: undefined }],
    ['exclusions away, and what becomes of the excluded', whole, { exclude: null }, { exclude: undefined, onExcluded: undefined }],
    ['exclusions away by an empty list', whole, { exclude: [] }, { exclude: undefined, onExcluded: undefined }],
    ['tags whole', whole, { tags: ['b', 'a'] }, { tags: ['a', 'b'] }],
    ['the required policy', whole, { missed: 'all', maxCatchup: 7 }, { missed: 'all', maxCatchup: 7 }],
    ['undefined stays', whole, { grace: undefined, tz: undefined, cron: undefined, limit: 5 }, { limit: 5 }],
    ['null for what takes another’s place', whole, { every: '1h', cron: null, onExcluded: null } as object, { cron: undefined, every: HOUR, onExcluded: undefined }],
  ])('changes what is named and keeps the rest: %s', async ([what, before, changes, expected]) => {
    const { world, created, s } = await worldOf(`update ${what}`, before);
    const updated = await s.update(changes);
    const { differences, repeated, ...info } = updated;
    expect(repeated).toBe(false);
    expect(info.definition).toEqual(
      Object.fromEntries(Object.entries({ ...created.definition, ...expected }).filter(([, value]) => value !== undefined)),
    );
    expect(info.template).toEqual(created.template);
    expect(await world.list()).toEqual([info]);
    expect(differences.length).toBeGreaterThan(0);
  }); // biome-ignore format: a table

  test.for([
    ['the name', { name: 'other' }, { name: 'other' }],
    ['the payload', { data: [1] }, { data: [1] }],
    ['a payload of null', { data: null }, { data: null }],
    ['one option', { opts: { priority: 7 } }, { opts: { attempts: 5, priority: 7 } }],
    ['another value of an option', { opts: { attempts: 2 } }, { opts: { attempts: 2 } }],
    ['an option away', { opts: { attempts: null, lifo: true } }, { opts: { lifo: true } }],
    ['no option', { opts: {} }, { opts: { attempts: 5 } }],
    ['all options away', { opts: null }, { opts: {} }],
    ['two parts', { name: 'n', data: 'd' }, { name: 'n', data: 'd' }],
    ['undefined stays', { name: undefined, data: 5, opts: undefined }, { data: 5 }],
  ] as const)('of the template alone: %s', async ([what, change, expected]) => {
    const { world, created, s } = await worldOf(`template ${what}`);
    const { template: now, definition, next } = await s.update({}, change);
    expect(now).toEqual({ ...created.template, ...expected });
    expect({ definition, next }).toEqual({ definition: created.definition, next: created.next });
    expect((await world.list())[0]?.template).toEqual(now);
  });

  test('tells what became otherwise, as written', async ({ task }) => {
    const { s } = await worldOf(task.name);
    const { differences } = await s.update({ cron: '0 10 * * *', jitter: null }, { data: {} });
    expect(differences).toEqual([
      { option: 'cron', from: '30 9 * * *', to: '0 10 * * *' },
      { option: 'jitter', from: '2m', to: undefined },
      { option: 'data', from: { kind: 'daily' }, to: {} },
    ]);
  });

  test('of nothing, or to what is so already, writes nothing', async ({ task }) => {
    const { world, created, s } = await worldOf(task.name);
    for (const [changes, parts] of [[{}, {}], [whole, template], [{ jitter: 120_000, tags: ['billing', 'billing'] }, {}]] as const) {
      const { result, changes: written } = await changesOf(world.spine, () => s.update(changes, parts));
      expect(written).toEqual({});
      expect(result).toEqual({ ...created, differences: [] });
    }
  }); // biome-ignore format: a table

  test('a dry run tells what would be, and writes nothing', async ({ task }) => {
    const { world, s } = await worldOf(task.name);
    await s.pause({ note: 'audit' });
    const change = () => ({ cron: '0 10 * * *', tz: null }) as const;
    const { result, changes } = await changesOf(world.spine, () =>
      s.update(change(), { data: 1 }, { dryRun: true }),
    );
    expect(changes).toEqual({});
    expect(result).toMatchObject({ state: 'paused', note: 'audit', template: { data: 1 } });
    expect(await s.update(change(), { data: 1 })).toEqual(result);
  });

  test('a size limit counts for a payload that stays, and for a new one', async ({ task }) => {
    const { s } = await worldOf(task.name);
    await expect(s.update({}, { opts: { sizeLimit: 5 } })).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    await s.update({}, { data: 1, opts: { sizeLimit: 5 } });
    await expect(s.update({}, { data: 'longer' })).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    expect((await s.describe())?.template).toMatchObject({ data: 1, opts: { sizeLimit: 5 } });
  });

  test('keeps what BullMQ’s form asked for, but for another interval', async ({ task }) => {
    const { world, s } = await worldOf(task.name);
    const schedulers = world.jobSchedulers();
    await schedulers.upsert('s', { every: HOUR, tz: 'UTC' }, {});
    expect((await s.update({ tags: ['x'] })).definition).toMatchObject({ startsAtOnce: true, tz: 'UTC' });
    expect((await s.update({ every: 2 * HOUR })).definition).toEqual({
      every: 2 * HOUR,
      missed: 'latest',
      overlap: 'allow',
      tags: ['x'],
      tz: 'UTC',
    });
  });
});

test('an update keeps the pattern of BullMQ’s form until its times are others', async ({ task }) => {
  const { world, s } = await worldOf(task.name);
  await world.jobSchedulers().upsert('s', { pattern: '0 9 */2 * 1', tz: 'UTC' }, {});
  expect((await s.update({ tags: ['x'] })).definition.bullmqPattern).toBe('0 9 */2 * 1');
  const { definition } = await s.update({ cron: '0 9 * * 1' });
  expect(definition).toMatchObject({ cron: ['0 9 * * 1'] });
  expect(definition).not.toHaveProperty('bullmqPattern');
});

describe('what is refused, before a key is written', () => {
  test.for<[string, unknown, unknown, string, string]>([
    ['an unknown option', { jiter: '1m' }, {}, 'INVALID_OPTION', 'jiter'],
    ['a name of every object', { constructor: 1 }, {}, 'INVALID_OPTION', 'constructor'],
    ['a prototype', JSON.parse('{"__proto__":{"every":"1h"}}'), {}, 'INVALID_OPTION', '__proto__'],
    ['an unknown option to be taken away', { jiter: null }, {}, 'INVALID_OPTION', 'jiter'],
    ['pausing', { paused: true }, {}, 'INVALID_OPTION', 'paused'],
    ['a bad value', { jitter: -1 }, {}, 'INVALID_DURATION', 'jitter'],
    ['a bad expression', { cron: '61 * * * *' }, {}, 'INVALID_CRON', 'cron'],
    ['missed taken away', { missed: null }, {}, 'INVALID_OPTION', 'missed'],
    ['two sources', { cron: '@daily', every: '1h' }, {}, 'INVALID_OPTION', 'cron'],
    ['the source taken away', { cron: null }, {}, 'INVALID_OPTION', 'cron'],
    ['a phase of an expression', { phase: '1m' }, {}, 'INVALID_OPTION', 'phase'],
    ['what does not go with what stays', { startDate: '2028-01-01T00:00:00Z' }, {}, 'INVALID_OPTION', 'endDate'],
    ['changes that are a list', [], {}, 'INVALID_OPTION', 'changes'],
    ['no changes', undefined, {}, 'INVALID_OPTION', 'changes'],
    ['a template that is a text', {}, 'x', 'INVALID_OPTION', 'template'],
    ['an unknown part of a template', {}, { options: {} }, 'INVALID_OPTION', 'template.options'],
    ['options that are a list', {}, { opts: [] }, 'INVALID_OPTION', 'template.opts'],
    ['an unknown option of jobs', {}, { opts: { atempts: 3 } }, 'INVALID_OPTION', 'atempts'],
    ['an unknown one to be taken away', {}, { opts: { atempts: null } }, 'INVALID_OPTION', 'opts.atempts'],
    ['a delay in the template', {}, { opts: { delay: 5 } }, 'INVALID_OPTION', 'template.opts.delay'],
    ['data beyond the largest payload', {}, { data: 'x'.repeat(1_000_001) }, 'INVALID_OPTION', 'data'],
  ])('%s', async ([what, changes, parts, code, field]) => {
    const { world, s } = await worldOf(`refused ${what}`);
    const { changes: written } = await changesOf(world.spine, () =>
      expect(s.update(changes as object, parts as object)).rejects.toMatchObject({ code, field }),
    );
    expect(written).toEqual({});
  }); // biome-ignore format: a table

  test('NOT_FOUND: an unknown id, a one-time job, a schedule that was deleted', async ({ task }) => {
    const { world, s } = await worldOf(task.name);
    await world.spine.submit(QUEUE, [aJob('job')]);
    await s.delete();
    for (const id of ['none', 'job', 's']) {
      await expect(world.schedules.get(id).update({ tags: ['x'] })).rejects.toMatchObject({
        code: 'NOT_FOUND',
        field: 'scheduleId',
      });
    }
  });

  test('a stored definition that cannot be read; an unknown zone is cured by another one', async ({
    task,
  }) => {
    const world = await ScheduleWorld.at(MORNING, task);
    const now = await world.now();
    const tick = { cur: now + 30_000, curFire: now + 30_000, next: 0, nextFire: 0 };
    for (const [id, policies] of [
      ['text', '{'],
      ['zone', '{"cron":["0 9 * * *"],"tz":"Mars/Olympus","missed":"skip"}'],
    ] as const) {
      const record = aSchedule(now, { ...tick, policies, overlap: OVERLAP_CODES.allow, maxConcurrent: 0 });
      await world.spine.schedules.upsert(QUEUE, id, record, 'r');
    }
    const update = (id: string, changes: ScheduleDefinitionChange) => world.schedules.get(id).update(changes);
    await expect(update('text', { tags: ['x'] })).rejects.toMatchObject({ code: 'BAD_RECORD' });
    await expect(update('zone', { tags: ['x'] })).rejects.toMatchObject({ code: 'INVALID_TIME_ZONE' });
    expect(await update('zone', { tz: 'Europe/London' })).toMatchObject({ next: at('09:00:00') });
  });
});

describe('the rules of edits', () => {
  test('tags, policies and template move no tick, not even an overdue one', async ({ task }) => {
    const { world, s } = await worldOf(task.name, minutely);
    await world.setClock(at('08:01:10'));
    await s.update({ tags: ['a'], grace: '2m' }, { name: 'other' });
    await world.startScheduler();
    await world.settle();
    expect(await world.runs()).toEqual(['2026-01-15T08:01:00Z']);
    expect(await world.ledger('s')).toEqual(['dispatched 2026-01-15T08:01:00Z']);
  });

  test('other times: what is overdue is recorded, nothing fires at an old time or in retrospect', async ({
    task,
  }) => {
    const { world, s } = await worldOf(task.name, minutely);
    await world.setClock(at('08:10:30'));
    expect(await s.update({ cron: '*/2 * * * *' })).toMatchObject({ next: at('08:12:00') });
    await world.startScheduler();
    await world.settle();
    expect(await world.runs()).toEqual([]);
    expect(await world.ledger('s')).toEqual([
      'skipped 2026-01-15T08:10:00Z edited: every tick from 2026-01-15T08:01:00.000Z to 2026-01-15T08:10:00.000Z',
    ]);
    await world.passTo(at('08:11:00'));
    await world.passTo(at('08:12:00'));
    expect(await world.runs()).toEqual(['2026-01-15T08:12:00Z']);
  });

  test('anchors never move', async ({ task }) => {
    const { world, s } = await worldOf(task.name, { every: '1h', missed: 'latest' });
    await world.setClock(at('10:40:00'));
    const edits: ScheduleDefinitionChange[] = [
      { limit: 100 },
      { tags: ['x'] },
      { jitter: '1m' },
      { missed: 'skip' },
      { jitter: null, endDate: '2028-01-01T00:00:00Z' },
    ];
    for (const changes of edits) expect(await s.update(changes)).toMatchObject({ next: at('11:00:30') });
  });

  test('a paused schedule stays paused, with its note, whatever is changed', async ({ task }) => {
    const { world, s } = await worldOf(task.name, minutely);
    await s.pause({ note: 'audit' });
    for (const changes of [{ tags: ['x'] }, { cron: '*/2 * * * *' }]) {
      expect(await s.update(changes)).toMatchObject({ state: 'paused', note: 'audit' });
    }
    await world.startScheduler();
    await world.passBy(60_000, '2026-01-15T08:04:30Z');
    expect(await world.runs()).toEqual([]);
    await s.resume();
    await world.settle();
    await world.passTo(at('08:06:00'));
    expect((await world.runs()).at(-1)).toBe('2026-01-15T08:06:00Z');
  });

  test('other times start an ended or suspended schedule again, nothing else does', async ({ task }) => {
    const { world, s } = await worldOf(task.name, { ...minutely, endDate: '2026-01-01T00:00:00Z' });
    expect(await s.update({ tags: ['x'] })).toMatchObject({ state: 'ended', next: undefined });
    expect(await s.update({ endDate: null })).toMatchObject({ state: 'scheduled', next: at('08:01:00') });

    await world.schedules.upsert('s', { ...minutely, missed: 'all', maxCatchup: 5, onTooMany: 'suspend' });
    await world.setClock(at('08:30:30'));
    await world.startScheduler();
    await world.settle();
    expect(await s.update({ tags: ['y'] })).toMatchObject({ state: 'suspended', note: expect.any(String) });
    expect(await s.update({ cron: '*/5 * * * *' })).toMatchObject({ state: 'scheduled', note: undefined });
  });
});

describe('more writers than one', () => {
  test('a request that is sent again has its effect once', async ({ task }) => {
    const { world, s } = await worldOf(task.name);
    await s.update({ jitter: '5m' }, {}, { requestId: 'one' });
    await s.update({ jitter: '7m' });
    const { result, changes } = await changesOf(world.spine, () =>
      s.update({ jitter: '5m' }, {}, { requestId: 'one' }),
    );
    expect(changes).toEqual({});
    expect(result).toMatchObject({ definition: { jitter: 420_000 }, differences: [] });
  });

  test('an edit between reading and writing is kept', async ({ task }) => {
    const { world, s } = await worldOf(task.name);
    const late = meeting(world, () => s.update({ grace: '3m', cron: '0 7 * * *' }, { data: 2 }));
    const updated = await late.update({ jitter: '5m' }, { name: 'late' });
    expect(updated.definition).toMatchObject({ cron: ['0 7 * * *'], grace: 180_000, jitter: 300_000 });
    expect(updated.template).toMatchObject({ name: 'late', data: 2 });
    expect(updated.differences.map(({ option }) => option)).toEqual(['jitter', 'name']);
  });

  test('one that was deleted meanwhile stays deleted; one that was made anew is changed', async ({
    task,
  }) => {
    const { world, s } = await worldOf(task.name);
    await expect(meeting(world, () => s.delete()).update({ jitter: '5m' })).rejects.toMatchObject({
      code: 'NOT_FOUND',
    });
    expect(await world.list()).toEqual([]);
    await world.schedules.upsert('s', minutely);
    const anew = async () => {
      await s.delete();
      await world.schedules.upsert('s', { every: '1h', missed: 'skip' });
    };
    const { definition } = await meeting(world, anew).update({ jitter: '5m' });
    expect(definition).toEqual({ every: HOUR, missed: 'skip', jitter: 300_000 });
  });

  test('a tick that fires meanwhile does not fire again', async ({ task }) => {
    const { world, s } = await worldOf(task.name, minutely);
    await world.startScheduler();
    const late = meeting(world, () => world.passTo(at('08:01:00')));
    expect(await late.update({ cron: '*/1 8 * * *' })).toMatchObject({ next: at('08:02:00') });
    await world.passTo(at('08:02:00'));
    expect(await world.runs()).toEqual(['2026-01-15T08:01:00Z', '2026-01-15T08:02:00Z']);
    expect(await s.describe()).toMatchObject({ count: 2 });
  });

  test('many at once, each of its own option: none is lost', async ({ task }) => {
    const { s } = await worldOf(task.name, minutely);
    const changes: ScheduleDefinitionChange[] = [
      { jitter: '5s' },
      { grace: '1m' },
      { tags: ['x'] },
      { limit: 9 },
      { tz: 'Europe/London' },
      { keepRuns: 7 },
      { runTimeout: '1h' },
      { pauseOnFailure: 3 },
    ];
    await Promise.all([...changes.map((change) => s.update(change)), s.update({}, { data: 'new' })]);
    expect(await s.describe()).toMatchObject({
      definition: {
        jitter: 5000, grace: 60_000, tags: ['x'], limit: 9, tz: 'Europe/London', keepRuns: 7, runTimeout: HOUR, pauseOnFailure: 3,
      },
      template: { ...template, data: 'new' },
    }); // biome-ignore format: one list
  });
});
