import { describe, expect, test } from 'vitest';
import { Calendars } from '../../src/client/calendars.js';
import { OVERLAP_CODES, type ScheduleDefinition } from '../../src/domain/schedule.js';
import { CalendarStore } from '../../src/redis/calendar-store.js';
import { aJob, aSchedule } from '../support/builders.js';
import { QUEUE, ScheduleWorld } from '../support/schedule-world.js';
import { changesOf } from '../support/spine-state.js';

const MORNING = '2026-01-15T08:00:30Z';
/** No worker takes the runs of these tests: they stand open beside each other. */
const minutely: ScheduleDefinition = { cron: '* * * * *', missed: 'latest', overlap: 'allow' };

describe('an upsert that changes nothing', () => {
  test.each<[string, ScheduleDefinition, ScheduleDefinition]>([
    ['the same', minutely, minutely],
    ['durations', { every: '15m', missed: 'skip', grace: '1m' }, { every: 900_000, missed: 'skip', grace: 60_000 }],
    ['pattern for cron', { ...minutely, tz: 'UTC' }, { pattern: '* * * * *', missed: 'latest', gap: 'shift', overlap: 'AllowAll' }],
    ['the order of tags', { ...minutely, tags: ['b', 'a'] }, { ...minutely, tags: ['a', 'b', 'b'] }],
  ])('writes nothing: %s', async (what, first, second) => {
    const world = await ScheduleWorld.at(MORNING, { name: `no change ${what}` });
    const created = await world.schedules.upsert('s', first, { data: { a: 1 } });
    await world.setClock('2026-01-15T08:01:10Z');
    const { result, changes } = await changesOf(world.spine, () =>
      world.schedules.upsert('s', second, { data: { a: 1 } }),
    );
    expect(changes).toEqual({});
    expect(result).toEqual(created);
  }); // biome-ignore format: a table

  test('moves nothing when the times are the same in other words', async ({ task }) => {
    const world = await ScheduleWorld.at(MORNING, task);
    const { next } = await world.schedules.upsert('s', { cron: '*/5 * * * MON-FRI', missed: 'skip' });
    await world.setClock('2026-01-15T08:07:10Z');
    const { changes } = await changesOf(world.spine, () =>
      world.schedules.upsert('s', { crons: ['*/5 *  * * 1-5'], missed: 'skip' }),
    );
    expect(Object.keys(changes).filter((name) => /^(due|plan|history)/.test(name))).toEqual([]);
    expect(changes).toHaveProperty(['jobs q:s', 'policies']);
    expect(await world.schedules.get('s').describe()).toMatchObject({ next, count: 0 });
  });

  test('starts neither an ended schedule again nor a suspended one', async ({ task }) => {
    const world = await ScheduleWorld.at(MORNING, task);
    const ended = { ...minutely, endDate: '2026-01-01T00:00:00Z' };
    await world.schedules.upsert('s', ended);
    expect(await world.schedules.upsert('s', ended)).toMatchObject({ state: 'ended' });
  });
});

describe('a definition that never fires is stored with a warning', () => {
  const ever = { exclude: [{ from: '2020-01-01', to: '9999-12-31' }] };
  test.each<[string, Partial<ScheduleDefinition>, string]>([
    ['its end', { endDate: '2020-01-01T00:00:00Z' }, 'it never fires: its endDate 2020-01-01T00:00:00.000Z is over'],
    ['a gap', { cron: '0 2 * 3 SUN#2', tz: 'America/Los_Angeles', gap: 'skip' }, "it never fires: the clock of America/Los_Angeles skips each of its times, and gap: 'skip' drops those"],
    ['exclusions', ever, 'it never fires: each of its times is excluded'],
    ['an impossible date', { cron: '0 0 31 2 *' }, 'this expression never fires: no month it names has such a day'],
  ])('%s', async (what, over, sentence) => {
    const world = await ScheduleWorld.at(MORNING, { name: `never fires ${what}` });
    const definition = { ...minutely, ...over };
    const told = { state: 'ended', warnings: [sentence] };
    expect(await world.schedules.upsert('s', definition)).toMatchObject(told);
    expect(await world.schedules.upsert('s', definition)).toMatchObject(told);
    expect(await world.schedules.get('s').describe()).toMatchObject({ ...told, upcoming: [] });
    expect(await world.list()).toMatchObject([told]);
    expect(await world.schedules.upsert('s', minutely)).toMatchObject({ state: 'scheduled', warnings: [] });
    expect(await world.schedules.upsert('s', definition)).toMatchObject(told);
  }); // biome-ignore format: a table

  test('a calendar that leaves it no time', async ({ task }) => {
    const world = await ScheduleWorld.at(MORNING, task);
    await new Calendars(new CalendarStore(world.spine.shard)).set('ever', '2026-12-25');
    const definition = { ...minutely, cron: '0 9 25 12 *', endDate: '2027-01-01T00:00:00Z' };
    const told = { state: 'ended', warnings: ['it never fires: each of its times is excluded'] };
    const excluded = { ...definition, exclude: [{ calendar: 'ever' }] };
    expect(await world.schedules.upsert('s', excluded)).toMatchObject(told);
    expect(await world.schedules.get('s').describe()).toMatchObject(told);
    expect(await world.list()).toMatchObject([told]);
  });

  test('one that fired and came to its end is no reason to warn; an edit that leaves it no tick is', async ({
    task,
  }) => {
    const world = await ScheduleWorld.at(MORNING, task);
    await world.startScheduler();
    await world.schedules.upsert('dated', { ...minutely, endDate: '2026-01-15T08:02:00Z' });
    await world.schedules.upsert('limited', { ...minutely, limit: 2 });
    await world.passTo('2026-01-15T08:01:00Z');
    await world.passTo('2026-01-15T08:02:00Z');
    await world.settle();
    expect(await world.list()).toMatchObject(
      ['dated', 'limited'].map((id) => ({ id, count: 2, state: 'ended', warnings: [] })),
    );
    expect(await world.schedules.upsert('limited', { ...minutely, limit: 1 })).toMatchObject({
      state: 'ended',
      warnings: ['it fires no more: 2 ticks ran, and its limit is 1'],
    });
    expect(
      await world.schedules.upsert('dated', { ...minutely, endDate: '2026-01-15T08:01:30Z' }),
    ).toMatchObject({
      state: 'ended',
      warnings: ['it never fires: its endDate 2026-01-15T08:01:30.000Z is over'],
    });
  });
});

test('a request that is sent again has its effect once', async ({ task }) => {
  const world = await ScheduleWorld.at(MORNING, task);
  await world.schedules.upsert('s', minutely, {}, { requestId: 'one' });
  const { changes } = await changesOf(world.spine, () =>
    world.schedules.upsert('s', { ...minutely, tags: ['late'] }, {}, { requestId: 'one' }),
  );
  expect(changes).toEqual({});
  await world.schedules.get('s').delete({ requestId: 'two' });
  await expect(world.schedules.upsert('s', minutely, {}, { requestId: 'one' })).rejects.toMatchObject({
    code: 'NOT_FOUND',
  });
});

describe('what is refused, before a key is written', () => {
  test.each<[string, string, object, object, string, string]>([
    ['an id that a run would have', 's@123', minutely, {}, 'INVALID_ID', 'scheduleId'],
    ['an empty id', '', minutely, {}, 'INVALID_ID', 'scheduleId'],
    ['an id like BullMQ’s keys', 'repeat:x', minutely, {}, 'INVALID_ID', 'scheduleId'],
    ['a bad definition', 's', { ...minutely, jitter: -1 }, {}, 'INVALID_DURATION', 'jitter'],
    ['a job’s id in the template', 's', minutely, { opts: { jobId: 'x' } }, 'INVALID_OPTION', 'template.opts.jobId'],
    ['a delay in the template', 's', minutely, { opts: { delay: 5 } }, 'INVALID_OPTION', 'template.opts.delay'],
    ['deduplication in the template', 's', minutely, { opts: { deduplication: { id: 'x' } } }, 'INVALID_OPTION', 'template.opts.deduplication'],
    ['a priority out of range', 's', minutely, { opts: { priority: 2_097_153 } }, 'INVALID_OPTION', 'priority'],
    ['an unknown option of jobs', 's', minutely, { opts: { atempts: 3 } }, 'INVALID_OPTION', 'atempts'],
    ['a parent', 's', minutely, { opts: { parent: { id: '1', queue: 'x' } } }, 'UNSUPPORTED', 'parent'],
    ['a name that is no text', 's', minutely, { name: 5 }, 'INVALID_ID', 'template.name'],
    ['data that JSON cannot keep', 's', minutely, { data: 5n }, 'INVALID_OPTION', 'data'],
    ['data beyond the largest payload', 's', minutely, { data: 'x'.repeat(1_000_001) }, 'INVALID_OPTION', 'data'],
    ['an unknown part of a template', 's', minutely, { options: {} }, 'INVALID_OPTION', 'template.options'],
    ['a template that is a list', 's', minutely, [], 'INVALID_OPTION', 'template'],
  ])('%s', async (what, id, definition, template, code, field) => {
    const world = await ScheduleWorld.at(MORNING, { name: `refused ${what}` });
    const { changes } = await changesOf(world.spine, () =>
      expect(world.schedules.upsert(id, definition as ScheduleDefinition, template)).rejects.toMatchObject({
        code,
        field,
      }),
    );
    expect(changes).toEqual({});
  }); // biome-ignore format: a table

  test('ids may be integers and hold colons, as in BullMQ', async ({ task }) => {
    const world = await ScheduleWorld.at(MORNING, task);
    for (const id of ['7', 'a:b', 'a:b:c:d']) await world.schedules.upsert(id, minutely);
    await world.startScheduler();
    await world.passTo('2026-01-15T08:01:00Z');
    const ms = Date.parse('2026-01-15T08:01:00Z');
    expect((await world.runIds()).sort()).toEqual([`7@${ms}`, `a:b:c:d@${ms}`, `a:b@${ms}`]);
  });

  test('ID_IN_USE, both ways', async ({ task }) => {
    const world = await ScheduleWorld.at(MORNING, task);
    await world.spine.submit(QUEUE, [aJob('job')]);
    await world.schedules.upsert('schedule', minutely);
    await expect(world.schedules.upsert('job', minutely)).rejects.toMatchObject({
      code: 'ID_IN_USE',
      field: 'scheduleId',
    });
    const [answer] = await world.spine.submit(QUEUE, [aJob('schedule')]).catch((error) => [error]);
    expect(answer).toMatchObject({ code: 'ID_IN_USE' });
    expect(await world.schedules.get('schedule').describe()).toMatchObject({ state: 'scheduled' });
  });
});

test('many writers of one id at once: each write counts, none is refused', async ({ task }) => {
  const world = await ScheduleWorld.at(MORNING, task);
  const versions = Array.from({ length: 40 }, (_, i) => i);
  await Promise.all(versions.map((version) => world.schedules.upsert('s', minutely, { data: { version } })));
  const schedules = await world.list();
  expect(schedules).toHaveLength(1);
  expect(schedules[0]).toMatchObject({ next: Date.parse('2026-01-15T08:01:00Z') });
  await world.serveOnce();
  await world.startScheduler();
  await world.passTo('2026-01-15T08:01:00Z');
  expect(await world.runs()).toEqual(['2026-01-15T08:01:00Z']);
});

describe('a definition that cannot be compiled', () => {
  /** Stored by others: a client of ours would have refused it. */
  async function planted(task: { name: string }, policies: string) {
    const world = await ScheduleWorld.at(MORNING, task);
    const now = await world.now();
    const tick = { cur: now + 30_000, curFire: now + 30_000, next: 0, nextFire: 0 };
    await world.spine.schedules.upsert(
      QUEUE,
      'bad',
      aSchedule(now, { ...tick, policies, overlap: OVERLAP_CODES.allow, maxConcurrent: 0 }),
      'r',
    );
    await world.schedules.upsert('good', minutely);
    return world;
  }

  test.each([
    ['a zone that this machine does not know', '{"cron":["0 9 * * *"],"tz":"Mars/Olympus","missed":"skip"}', 'INVALID_TIME_ZONE'],
    ['an expression of a later version', '{"cron":["@eclipse"],"missed":"skip"}', 'INVALID_CRON'],
    ['text that is no JSON', '{', 'JSON'],
  ])('%s: that schedule is suspended with the reason, the others go on', async (what, policies, reason) => {
    const world = await planted({ name: what }, policies);
    await world.startScheduler();
    // It is asked for again and again for half a minute; its pending tick runs meanwhile.
    await world.passBy(10_000, '2026-01-15T08:02:10Z');
    const bad = world.schedules.get('bad');
    expect(await bad.describe()).toMatchObject({ state: 'suspended', note: expect.stringContaining(reason) });
    expect(await world.runs('bad')).toEqual(['2026-01-15T08:01:00Z']);
    expect(await world.runs('good')).toEqual(['2026-01-15T08:01:00Z', '2026-01-15T08:02:00Z']);
    expect((await world.list()).map(({ id }) => id)).toEqual(['bad', 'good']);
    expect((await bad.describe())?.warnings[0]).toContain('cannot be read');
    expect((await world.history()).some((line) => line.startsWith('suspended'))).toBe(true);
    // A definition that can be compiled starts it again.
    await world.schedules.upsert('bad', minutely);
    expect(await bad.describe()).toMatchObject({ state: 'scheduled', note: undefined });
    await world.passTo('2026-01-15T08:03:00Z');
    expect((await world.runs('bad')).at(-1)).toBe('2026-01-15T08:03:00Z');
  }); // biome-ignore format: a table

  test('what was cured elsewhere is resumed by hand', async ({ task }) => {
    const world = await planted(task, '{"cron":["0 9 * * *"],"tz":"Mars/Olympus","missed":"skip"}');
    await world.startScheduler();
    await world.passBy(10_000, '2026-01-15T08:02:10Z');
    await world.schedules.get('bad').resume();
    expect(await world.schedules.get('bad').describe()).toMatchObject({ state: 'scheduled' });
    // It is judged anew, and fails anew.
    await world.passBy(10_000, '2026-01-15T08:03:10Z');
    expect(await world.schedules.get('bad').describe()).toMatchObject({ state: 'suspended' });
  });
});
