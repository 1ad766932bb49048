import { describe, expect, test } from 'vitest';
import { Calendars } from '../../src/client/calendars.js';
import { readCalendar } from '../../src/domain/calendar.js';
import { compileExclusions } from '../../src/domain/exclusions.js';
import { CalendarStore } from '../../src/redis/calendar-store.js';
import type { ScheduleWrite } from '../../src/redis/schedule-scripts.js';
import { aJob, aSchedule } from '../support/builders.js';
import { INC, NOW, Spine } from '../support/spine.js';
import { changesOf, readState } from '../support/spine-state.js';

const MINUTE = 60_000;
const POLICIES = '{"cron":["* * * * *"],"exclude":[{"calendar":"uk"}],"missed":"skip"}';
const CHRISTMAS = readCalendar('2026-12-25 # Christmas "Day"');
const ALL = readCalendar('2026-12-25\n2026-12-26..2026-12-31');

function stored(version: number, entries: string[] | null, requests: string, settled = version): string {
  return JSON.stringify({ version, updatedAt: NOW, settled, requests, entries });
}

async function open(test: { name: string }) {
  const spine = await Spine.virtual(test);
  const store = new CalendarStore(spine.shard);
  return { spine, store, calendars: new Calendars(store) };
}

/** A schedule that names the calendar uk. */
async function schedule(spine: Spine, id: string, over: Partial<ScheduleWrite> = {}): Promise<void> {
  const policies = {
    overlap: 4,
    maxOpen: 32,
    maxConcurrent: 0,
    keptRows: 50,
    pauseAfter: 0,
    policies: POLICIES,
  };
  const { cur = NOW + MINUTE, next = NOW + 2 * MINUTE } = over;
  const write = aSchedule(NOW, { ...policies, cur, curFire: cur, next, nextFire: next, ...over });
  await spine.schedules.upsert('q', id, write, id);
}

/** The requests of a stored calendar, `hash:version` each. */
async function requestsOf({ client, keys }: Spine, name: string): Promise<string> {
  return JSON.parse((await client.hget(keys.calendars, name)) ?? '{}').requests;
}

describe('set-calendar', () => {
  test('set: version 1, and what is stored can be read as JSON', async ({ task }) => {
    const { spine, store } = await open(task);
    const { result, changes } = await changesOf(spine, () => store.set('uk', CHRISTMAS, 'r1'));
    expect(result).toEqual({ version: 1, changed: true });
    const requests = await requestsOf(spine, 'uk');
    expect(requests).toMatch(/^[0-9a-f]{14}:1$/);
    expect(changes).toEqual({
      'calendars uk': stored(1, ['2026-12-25  # Christmas "Day"'], requests),
      'calendars :revision': '1',
    });
    expect(await store.get('uk')).toEqual({
      name: 'uk',
      version: 1,
      updatedAt: NOW,
      settled: true,
      entries: CHRISTMAS,
    });
  });

  test('set: the same dates again are no new version, others are', async ({ task }) => {
    const { spine, store } = await open(task);
    await store.set('uk', CHRISTMAS, 'r1');
    await spine.setClock(NOW + 5);
    expect(await store.set('uk', CHRISTMAS, 'r2')).toEqual({ version: 1, changed: false });
    expect(await store.set('uk', ALL, 'r3')).toEqual({ version: 2, changed: true });
    expect(await store.get('uk')).toMatchObject({
      version: 2,
      updatedAt: NOW + 5,
      settled: false,
      entries: ALL,
    });
  });

  test('set: a call that a library sends again changes nothing, also when others set it since', async ({
    task,
  }) => {
    const { spine, store } = await open(task);
    await store.set('uk', CHRISTMAS, 'r1');
    await store.set('uk', ALL, 'r2');
    const { result, changes } = await changesOf(spine, () => store.set('uk', CHRISTMAS, 'r1'));
    expect(result).toEqual({ version: 1, changed: false });
    expect(changes).toEqual({});
  });

  test('set: the newest four requests are remembered', async ({ task }) => {
    const { spine, store } = await open(task);
    for (let i = 1; i <= 6; i++) await store.set('uk', readCalendar(`2026-12-0${i}`), `r${i}`);
    expect((await requestsOf(spine, 'uk')).split(' ').map((entry) => entry.split(':')[1])).toEqual([
      '6',
      '5',
      '4',
      '3',
    ]);
  });

  test('delete: the version goes on if the name is used again', async ({ task }) => {
    const { spine, store } = await open(task);
    await store.set('uk', CHRISTMAS, 'r1');
    expect(await store.delete('uk', 'r2')).toEqual({ version: 2, changed: true });
    expect(await store.get('uk')).toBeUndefined();
    expect(await readState(spine)).toMatchObject({
      'calendars uk': stored(2, null, await requestsOf(spine, 'uk'), 1),
    });
    const replayed = await changesOf(spine, () => store.delete('uk', 'r2'));
    expect(replayed).toMatchObject({ result: { version: 2, changed: false }, changes: {} });
    await expect(store.delete('uk', 'r3')).rejects.toMatchObject({ code: 'NOT_FOUND', field: 'calendar' });
    expect(await store.set('uk', CHRISTMAS, 'r4')).toEqual({ version: 3, changed: true });
  });

  test('delete: of what never was is NOT_FOUND and writes nothing', async ({ task }) => {
    const { spine, store } = await open(task);
    const { changes } = await changesOf(spine, () =>
      expect(store.delete('uk', 'r')).rejects.toMatchObject({ code: 'NOT_FOUND' }),
    );
    expect(changes).toEqual({});
  });

  test('settle: a change that came meanwhile is not settled with the one before', async ({ task }) => {
    const { store } = await open(task);
    await store.set('uk', CHRISTMAS, 'r1');
    await store.set('uk', ALL, 'r2');
    await store.set('uk', CHRISTMAS, 'r3');
    await store.settle('uk', 2);
    expect(await store.get('uk')).toMatchObject({ version: 3, settled: false });
    await store.settle('uk', 3);
    expect(await store.get('uk')).toMatchObject({ version: 3, settled: true });
  });

  test('a namespace that was laid out otherwise is refused', async ({ task }) => {
    const { spine, store } = await open(task);
    await spine.client.set(spine.keys.layout, '{"shards":2}');
    await spine.client.hset(spine.keys.meta, 'layout', 'other');
    await expect(store.set('uk', CHRISTMAS, 'r')).rejects.toMatchObject({ code: 'WRONG_LAYOUT' });
  });
});

describe('the calendars that schedules are computed with', () => {
  test('are read once, and again after a change; the set is the same object until then', async ({ task }) => {
    const { spine, store } = await open(task);
    await store.set('uk', CHRISTMAS, 'r1');
    const first = await store.named(['uk', 'nowhere']);
    expect(first).toEqual(new Map([['uk', expect.objectContaining({ version: 1, entries: CHRISTMAS })]]));
    // Behind the store's back: what is known is not read again.
    await spine.client.hset(spine.keys.calendars, 'uk', 'damaged');
    expect(await store.named(['uk'])).toBe(first);
    await store.set('us', ALL, 'r2');
    await expect(store.named(['uk'])).rejects.toMatchObject({ code: 'BAD_RECORD' });
    await store.set('uk', ALL, 'r3');
    const second = await store.named(['us', 'uk']);
    expect(second).not.toBe(first);
    expect(second.get('uk')?.entries).toEqual(ALL);
    expect(first.get('uk')?.entries).toEqual(CHRISTMAS);
  });

  test('one that is deleted is not there, and compiling says so', async ({ task }) => {
    const { store } = await open(task);
    await store.set('uk', CHRISTMAS, 'r1');
    expect(compileExclusions([{ calendar: 'uk' }], 'UTC', await store.named(['uk'])).versions).toEqual({
      uk: 1,
    });
    await store.delete('uk', 'r2');
    const set = await store.named(['uk']);
    expect(() => compileExclusions([{ calendar: 'uk' }], 'UTC', set)).toThrow(
      expect.objectContaining({ code: 'NOT_FOUND' }),
    );
  });

  test('10,000 dates are stored and come back in order', async ({ task }) => {
    const { store } = await open(task);
    const dates = Array.from({ length: 10_000 }, (_, i) =>
      new Date((10_000 - i) * 86_400_000).toISOString().slice(0, 10),
    );
    await store.set('many', readCalendar(dates), 'r');
    const entries = (await store.get('many'))?.entries ?? [];
    expect(entries).toHaveLength(10_000);
    expect(entries.map(({ from }) => from)).toEqual(dates.reverse());
  });
});

describe('calendar-users', () => {
  const LATER = NOW + MINUTE;

  /** One schedule of each kind that names the calendar, and what only looks like it. */
  async function planted(test: { name: string }) {
    const { spine, store } = await open(test);
    await schedule(spine, 'future', { cur: LATER, next: LATER + MINUTE });
    await schedule(spine, 'overdue', { cur: NOW, next: LATER });
    await schedule(spine, 'paused', { cur: LATER, next: LATER + MINUTE });
    await spine.jobs.pause('q', 'paused', '', 'p');
    await schedule(spine, 'ended', { cur: 0, next: 0, ends: true });
    await schedule(spine, 'other', { policies: POLICIES.replace('uk', 'uk2') });
    await schedule(spine, 'data', { policies: '{}', data: POLICIES });
    await spine.submit('q', [aJob('job', { data: POLICIES })]);
    return { spine, store };
  }

  test('finds the schedules whose definition names the calendar, and changes nothing', async ({ task }) => {
    const { spine, store } = await planted(task);
    const { result, changes } = await changesOf(spine, async () => {
      const found: string[] = [];
      for await (const identities of store.users('uk')) found.push(...identities);
      return found.sort();
    });
    expect(result).toEqual(['q:ended', 'q:future', 'q:overdue', 'q:paused']);
    expect(changes).toEqual({});
  });

  test('hands pending ticks to the planner; what a person stopped stays stopped', async ({ task }) => {
    const { spine, store } = await planted(task);
    const { result, changes } = await changesOf(spine, () => store.settle('uk', 1));
    expect(result).toBe(4);
    const anew = { ver: expect.any(Number), cur: 0, curFire: 0, next: 0, nextFire: 0, last: NOW };
    expect(changes).toMatchObject({
      'jobs q:future': anew,
      'due q:future': null,
      'plan q:future': NOW,
      // Its time has come: it is run as it was planned, and only what follows is computed anew.
      'jobs q:overdue': { ver: expect.any(Number), next: 0, nextFire: 0 },
      'plan q:overdue': NOW,
      'jobs q:paused': anew,
      'jobs q:ended': { ver: expect.any(Number), state: 'scheduled', last: NOW },
      'plan q:ended': NOW,
    });
    expect(changes).not.toHaveProperty('due q:overdue');
    expect(changes['jobs q:overdue']).not.toHaveProperty('cur');
    expect(Object.keys(changes).filter((name) => /other|data|job |paused/.test(name))).toEqual([
      'jobs q:paused',
    ]);
    const versions = Object.values(changes).flatMap((change) =>
      typeof change === 'object' && change !== null && 'ver' in change ? [change.ver] : [],
    );
    expect(new Set(versions).size).toBe(4);
    expect(Math.min(...(versions as number[]))).toBeGreaterThanOrEqual(INC);
  });

  test('a walk that died is taken up by the leader, once', async ({ task }) => {
    const { spine, store } = await planted(task);
    await store.set('uk', CHRISTMAS, 'r1');
    await store.settleAll();
    expect(await store.get('uk')).toMatchObject({ version: 1, settled: true });
    await store.set('uk', ALL, 'r2');
    const { changes } = await changesOf(spine, () => store.settleAll());
    expect(changes).toMatchObject({ 'plan q:future': NOW });
    expect(await store.get('uk')).toMatchObject({ version: 2, settled: true });
    const again = await changesOf(spine, () => store.settleAll());
    expect(again.changes).toEqual({});
  });

  test('a calendar that schedules name is deleted by force only', async ({ task }) => {
    const { spine, store } = await planted(task);
    const calendars = new Calendars(store);
    await calendars.set('uk', '2026-12-25');
    await expect(calendars.delete('uk')).rejects.toMatchObject({
      code: 'CONFLICT',
      message: 'the calendar uk is named by q:ended, q:future, q:overdue and 1 more',
    });
    expect((await calendars.get('uk')).version).toBe(1);
    expect(await calendars.delete('uk', { force: true })).toEqual({
      name: 'uk',
      version: 2,
      changed: true,
      schedules: 4,
    });
    expect(await readState(spine)).toMatchObject({ 'plan q:future': NOW });
  });
});

describe('Calendars', () => {
  test('set, get, list, delete', async ({ task }) => {
    const { calendars } = await open(task);
    expect(await calendars.list()).toEqual([]);
    expect(await calendars.set('uk', '2026-12-25 # Christmas')).toEqual({
      name: 'uk',
      version: 1,
      changed: true,
      schedules: 0,
    });
    await calendars.set('at', ['2026-01-06', { from: '2026-12-25', to: '2026-12-26' }]);
    expect(await calendars.get('uk')).toEqual({
      name: 'uk',
      version: 1,
      updatedAt: NOW,
      entries: [{ from: '2026-12-25', to: '2026-12-25', label: 'Christmas' }],
    });
    expect((await calendars.list()).map(({ name }) => name)).toEqual(['at', 'uk']);
    await calendars.delete('at');
    expect((await calendars.list()).map(({ name }) => name)).toEqual(['uk']);
    await expect(calendars.get('at')).rejects.toMatchObject({ code: 'NOT_FOUND', given: '"at"' });
  });

  test('bad names and dates are refused before anything is asked', async ({ task }) => {
    const { calendars, spine } = await open(task);
    const { changes } = await changesOf(spine, async () => {
      await expect(calendars.set('a b', '2026-12-25')).rejects.toMatchObject({ code: 'INVALID_ID' });
      await expect(calendars.set('uk', '2026-02-30')).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        field: 'line 1',
      });
      await expect(calendars.get(':revision')).rejects.toMatchObject({ code: 'INVALID_ID' });
      await expect(calendars.delete('')).rejects.toMatchObject({ code: 'INVALID_ID' });
    });
    expect(changes).toEqual({});
  });

  test('a thousand schedules are handed on in short scripts', async ({ task }) => {
    const { spine, calendars } = await open(task);
    await Promise.all(Array.from({ length: 1_000 }, (_, i) => schedule(spine, `s${i}`)));
    await calendars.set('uk', '2026-12-25');
    expect((await calendars.set('uk', '2026-12-26')).schedules).toBe(1_000);
    const planned = await readState(spine);
    expect(Object.keys(planned).filter((name) => name.startsWith('plan q:s'))).toHaveLength(1_000);
  });
});
