import { describe, expect, test } from 'vitest';
import { checkSchedule } from '../../../src/domain/check-schedule.js';
import { type CompiledTiming, latestTime } from '../../../src/domain/fire-times.js';
import { jitterFor } from '../../../src/domain/jitter.js';
import { compileStored, type ScheduleDefinition } from '../../../src/domain/schedule.js';
import { type Resolution, type Served, type TickState, Ticks } from '../../../src/domain/ticks.js';

const IDENTITY = 'q:s';
/** 2027-01-15T08:00:00Z, a Friday. */
const T0 = Date.parse('2027-01-15T08:00:00Z');
const SECOND = 1000;
const MINUTE = 60_000;
const HOUR = 3_600_000;
const DAY = 86_400_000;

function ticksOf(definition: ScheduleDefinition, createdAt = T0, startsAtOnce = false): Ticks {
  const checked = checkSchedule(definition, IDENTITY);
  const policies = startsAtOnce ? { ...checked, startsAtOnce } : checked;
  return new Ticks(compileStored(policies, IDENTITY, createdAt), policies, IDENTITY);
}

function stateOf(over: Partial<TickState> = {}): TickState {
  return { last: 0, cur: 0, next: 0, count: 0, createdAt: T0, ...over };
}

const SERVED: Served = { servedFrom: 0, grace: 30 * SECOND, resumed: false, room: 1000 };

/** The scheduled times of a resolution alone; spans as `<what> <reason>` → from, to. */
function gist({ newLast, cur, next, catchUp, skipped }: Resolution) {
  const spans = Object.fromEntries(
    skipped.map(({ from, to, what, reason }) => [`${what} ${reason}`, [from, to]]),
  );
  return { newLast, cur: cur?.tick, next: next?.tick, catchUp, skipped: spans };
}

describe('successor', () => {
  const minutely = ticksOf({ cron: '* * * * *', missed: 'skip' });

  test('comes from the last known tick, never from now (I9)', () => {
    const known = { last: T0, cur: T0 + MINUTE, next: T0 + 2 * MINUTE };
    expect(minutely.successor(stateOf(known))?.tick).toBe(T0 + 3 * MINUTE);
    expect(minutely.successor(stateOf({ ...known, next: 0 }))?.tick).toBe(T0 + 2 * MINUTE);
    expect(minutely.successor(stateOf({ last: T0 }))?.tick).toBe(T0 + MINUTE);
  });

  test('of a schedule without any tick yet is the first after its creation', () => {
    expect(minutely.successor(stateOf({ createdAt: T0 - 1 }))?.tick).toBe(T0);
    expect(minutely.successor(stateOf({ createdAt: T0 }))?.tick).toBe(T0 + MINUTE);
  });

  test('ends with limit, pending ticks counted', () => {
    const limited = ticksOf({ cron: '* * * * *', limit: 3, missed: 'skip' });
    expect(limited.successor(stateOf({ last: T0, count: 2 }))?.tick).toBe(T0 + MINUTE);
    expect(limited.successor(stateOf({ last: T0, cur: T0 + MINUTE, count: 2 }))).toBeUndefined();
    expect(limited.successor(stateOf({ cur: T0, next: T0 + MINUTE, count: 0 }))?.tick).toBe(T0 + 2 * MINUTE);
    expect(limited.successor(stateOf({ cur: T0, next: T0 + MINUTE, count: 1 }))).toBeUndefined();
    expect(limited.successor(stateOf({ last: T0, count: 3 }))).toBeUndefined();
  });

  test('ends with endDate; a tick exactly at it still comes', () => {
    const ending = ticksOf({ cron: '* * * * *', endDate: T0 + 2 * MINUTE, missed: 'skip' });
    expect(ending.successor(stateOf({ last: T0 + MINUTE }))?.tick).toBe(T0 + 2 * MINUTE);
    expect(ending.successor(stateOf({ last: T0 + 2 * MINUTE }))).toBeUndefined();
  });
});

describe('the first tick', () => {
  const first = (ticks: Ticks, createdAt = T0) => ticks.successor(stateOf({ createdAt }))?.tick;

  test('of an interval is one interval after its creation', () => {
    expect(first(ticksOf({ every: '15m', missed: 'skip' }))).toBe(T0 + 15 * MINUTE);
  });

  test('of one that starts at once is its creation, or its start date if that is later', () => {
    const atOnce = (definition: ScheduleDefinition) => first(ticksOf(definition, T0, true));
    expect(atOnce({ every: '15m', missed: 'latest' })).toBe(T0);
    expect(atOnce({ every: '15m', startDate: T0 + 7, missed: 'latest' })).toBe(T0 + 7);
    expect(atOnce({ every: '15m', startDate: T0 - HOUR - 7, missed: 'latest' })).toBe(T0);
  });

  test('of an anchored one lies on its grid, the anchor itself included', () => {
    const anchored = (anchor: number, phase = 0) =>
      first(ticksOf({ every: '1h', anchor, phase, missed: 'skip' }));
    expect(anchored(T0 - 10 * HOUR - 5 * MINUTE)).toBe(T0 + 55 * MINUTE);
    expect(anchored(T0 + 3 * DAY)).toBe(T0 + 3 * DAY);
    expect(anchored(T0)).toBe(T0 + HOUR);
    expect(anchored(T0, 10 * MINUTE)).toBe(T0 + 10 * MINUTE);
    expect(anchored(T0 - HOUR, 10 * MINUTE)).toBe(T0 + 10 * MINUTE);
  });

  test('of an interval with a phase is its phase after the creation', () => {
    expect(first(ticksOf({ every: '1h', phase: '10m', missed: 'skip' }))).toBe(T0 + 10 * MINUTE);
  });

  test('never lies before startDate', () => {
    const later = T0 + 90 * MINUTE;
    expect(first(ticksOf({ cron: '0 * * * *', startDate: later, missed: 'skip' }))).toBe(T0 + 2 * HOUR);
  });
});

describe('resolve', () => {
  const skip = ticksOf({ cron: '* * * * *', missed: 'skip' });
  const latest = ticksOf({ cron: '* * * * *', missed: 'latest' });
  /** Down from just after T0 until 40 min 45 s later: the newest tick is 45 s old, its grace of 30 s over. */
  const pending = stateOf({ last: T0, cur: T0 + MINUTE, count: 1 });
  const back = T0 + 40 * MINUTE + 45 * SECOND;
  const away: Served = { ...SERVED, servedFrom: back };
  const newest = T0 + 40 * MINUTE;

  test('a tick whose time has not come stays as it is', () => {
    for (const ticks of [skip, latest, all()]) {
      for (const served of [SERVED, away, { ...SERVED, resumed: true }]) {
        expect(gist(ticks.resolve(pending, T0 + MINUTE - 1, served))).toEqual({
          newLast: T0,
          cur: T0 + MINUTE,
          next: T0 + 2 * MINUTE,
          catchUp: [],
          skipped: {},
        });
      }
    }
  });

  test('skip: nothing of the outage runs', () => {
    expect(gist(skip.resolve(pending, back, away))).toEqual({
      newLast: newest,
      cur: newest + MINUTE,
      next: newest + 2 * MINUTE,
      catchUp: [],
      skipped: { 'skipped missed': [T0 + MINUTE, newest] },
    });
  });

  test('latest: the newest tick runs, once', () => {
    expect(gist(latest.resolve(pending, back, away))).toEqual({
      newLast: newest,
      cur: newest + MINUTE,
      next: newest + 2 * MINUTE,
      catchUp: [newest],
      skipped: { 'skipped missed': [T0 + MINUTE, newest - MINUTE] },
    });
  });

  test('a single missed tick: nothing is passed over besides it', () => {
    const hourly = { cron: '0 * * * *' };
    const one = stateOf({ last: T0, cur: T0 + HOUR, count: 1 });
    const now = T0 + HOUR + 31 * SECOND;
    const gone = { ...SERVED, servedFrom: now };
    const after = { newLast: T0 + HOUR, cur: T0 + 2 * HOUR, next: T0 + 3 * HOUR };
    for (const missed of ['latest', 'all'] as const) {
      expect(gist(ticksOf({ ...hourly, missed }).resolve(one, now, gone))).toEqual({
        ...after,
        catchUp: [T0 + HOUR],
        skipped: {},
      });
    }
    expect(gist(ticksOf({ ...hourly, missed: 'skip' }).resolve(one, now, gone))).toEqual({
      ...after,
      catchUp: [],
      skipped: { 'skipped missed': [T0 + HOUR, T0 + HOUR] },
    });
  });

  test('grace: a newest tick that is served just within it runs late, also under skip', () => {
    const edge = newest + 30 * SECOND;
    for (const ticks of [skip, latest]) {
      expect(gist(ticks.resolve(pending, edge + 999, { ...SERVED, servedFrom: edge }))).toEqual({
        newLast: newest - MINUTE,
        cur: newest,
        next: newest + MINUTE,
        catchUp: [],
        skipped: { 'skipped missed': [T0 + MINUTE, newest - MINUTE] },
      });
    }
    expect(skip.resolve(pending, edge + 999, { ...SERVED, servedFrom: edge + 1 }).newLast).toBe(newest);
  });

  test('grace 0: only what is served at its very time', () => {
    const at = (servedFrom: number) => skip.resolve(pending, back, { ...SERVED, servedFrom, grace: 0 });
    expect(at(newest).cur?.tick).toBe(newest);
    expect(at(newest + 1).cur?.tick).toBe(newest + MINUTE);
  });

  test('overtaken by its next while it was served all the time: the newest runs', () => {
    for (const ticks of [skip, latest]) {
      expect(gist(ticks.resolve(pending, T0 + 2 * MINUTE + 1, SERVED))).toEqual({
        newLast: T0 + MINUTE,
        cur: T0 + 2 * MINUTE,
        next: T0 + 3 * MINUTE,
        catchUp: [],
        skipped: { 'skipped missed': [T0 + MINUTE, T0 + MINUTE] },
      });
    }
  });

  test('resumed: skip runs no tick of the pause, however fresh; latest and all the newest', () => {
    const resumed = { ...SERVED, resumed: true };
    const now = newest + 1;
    expect(gist(skip.resolve(pending, now, resumed))).toEqual({
      newLast: newest,
      cur: newest + MINUTE,
      next: newest + 2 * MINUTE,
      catchUp: [],
      skipped: { 'skipped paused': [T0 + MINUTE, newest] },
    });
    for (const ticks of [latest, all()]) {
      expect(gist(ticks.resolve(pending, now, resumed))).toEqual({
        newLast: newest,
        cur: newest + MINUTE,
        next: newest + 2 * MINUTE,
        catchUp: [newest],
        skipped: { 'skipped paused': [T0 + MINUTE, newest - MINUTE] },
      });
    }
  });

  test('resumed while no tick was known: those since the last one are judged the same', () => {
    const unknown = stateOf({ last: T0, count: 1 });
    const resumed = { ...SERVED, resumed: true };
    expect(skip.resolve(unknown, newest + 1, resumed).cur?.tick).toBe(newest + MINUTE);
    expect(latest.resolve(unknown, newest + 1, resumed).catchUp).toEqual([newest]);
    expect(gist(skip.resolve(unknown, T0 + 1, SERVED))).toMatchObject({ cur: T0 + MINUTE, newLast: T0 });
  });

  test('no tick was known, and nothing was paused: the next one is named, and judged when it is popped', () => {
    for (const ticks of [skip, latest, all()]) {
      expect(gist(ticks.resolve(stateOf({ last: T0, count: 1 }), back, away))).toEqual({
        newLast: T0,
        cur: T0 + MINUTE,
        next: T0 + 2 * MINUTE,
        catchUp: [],
        skipped: {},
      });
    }
  });

  test('catchupWindow: latest and all run no tick that is older', () => {
    const one = stateOf({ last: T0 - DAY, cur: T0, count: 1 });
    const servedAfter = (ms: number) => ({ ...SERVED, servedFrom: T0 + ms });
    for (const [missed, reason] of [
      ['latest', 'missed'],
      ['all', 'too old'],
    ] as const) {
      const daily = ticksOf({ cron: '0 8 * * *', missed, catchupWindow: '6h' });
      expect(daily.resolve(one, T0 + 6 * HOUR, servedAfter(6 * HOUR)).catchUp).toEqual([T0]);
      expect(gist(daily.resolve(one, T0 + 6 * HOUR + 1, servedAfter(6 * HOUR + 1)))).toEqual({
        newLast: T0,
        cur: T0 + DAY,
        next: T0 + 2 * DAY,
        catchUp: [],
        skipped: { [`skipped ${reason}`]: [T0, T0] },
      });
      // A day, when nothing else is said.
      const weekly = ticksOf({ cron: '0 8 * * 5', missed });
      expect(weekly.resolve(one, T0 + DAY, servedAfter(DAY)).catchUp).toEqual([T0]);
      expect(weekly.resolve(one, T0 + DAY + 1, servedAfter(DAY + 1))).toMatchObject({
        catchUp: [],
        cur: { tick: T0 + 7 * DAY },
      });
    }
  });

  test('limit: a skipped tick is none of them, a run one is', () => {
    const limited = (missed: 'skip' | 'latest', limit = 2) => ticksOf({ cron: '* * * * *', limit, missed });
    expect(gist(limited('skip').resolve(pending, back, away))).toMatchObject({
      cur: newest + MINUTE,
      next: undefined,
    });
    expect(gist(limited('latest').resolve(pending, back, away))).toMatchObject({
      catchUp: [newest],
      cur: undefined,
    });
    expect(gist(limited('latest', 3).resolve(pending, back, away))).toMatchObject({
      catchUp: [newest],
      cur: newest + MINUTE,
      next: undefined,
    });
    expect(limited('skip').resolve({ ...pending, cur: 0, count: 2 }, back, away).cur).toBeUndefined();
  });

  test('endDate: skip ends the schedule, latest runs its last tick first', () => {
    const ending = (missed: 'skip' | 'latest') =>
      ticksOf({ cron: '* * * * *', endDate: newest - 5 * MINUTE, missed });
    expect(gist(ending('skip').resolve(pending, back, away))).toMatchObject({
      newLast: newest - 5 * MINUTE,
      cur: undefined,
      next: undefined,
      catchUp: [],
    });
    expect(gist(ending('latest').resolve(pending, back, away))).toMatchObject({
      cur: undefined,
      catchUp: [newest - 5 * MINUTE],
    });
    const over = stateOf({ last: newest - 5 * MINUTE, count: 9 });
    expect(ending('skip').resolve(over, back, away)).toMatchObject({ newLast: over.last, cur: undefined });
  });

  test('TIME that stepped back moves nothing', () => {
    for (const ticks of [skip, latest, all()]) {
      expect(gist(ticks.resolve(pending, T0 - HOUR, { ...SERVED, servedFrom: T0 + HOUR }))).toEqual({
        newLast: T0,
        cur: T0 + MINUTE,
        next: T0 + 2 * MINUTE,
        catchUp: [],
        skipped: {},
      });
    }
  });

  test('jitter: the newest tick is the one whose fire time has come (I2)', () => {
    for (const missed of ['latest', 'all'] as const) {
      const ticks = ticksOf({ cron: '0 * * * *', jitter: '59m', missed });
      const fireAt = ticks.fireTimeOf(T0 + 2 * HOUR);
      expect(fireAt).toBeGreaterThan(T0 + 2 * HOUR);
      const state = stateOf({ last: T0, cur: T0 + HOUR, count: 1 });
      const waits = ticks.resolve(state, fireAt - 1, { ...SERVED, servedFrom: fireAt - 1 });
      expect(gist(waits)).toMatchObject({ catchUp: [T0 + HOUR], cur: T0 + 2 * HOUR, skipped: {} });
      expect(waits.cur?.fireAt).toBe(fireAt);
      const come = ticks.resolve(state, fireAt, { ...SERVED, servedFrom: fireAt + HOUR });
      expect(come.catchUp).toEqual(missed === 'all' ? [T0 + HOUR, T0 + 2 * HOUR] : [T0 + 2 * HOUR]);
    }
  });
});

/** Ticks, and how often their timing was asked for a next one. */
function counted(definition: ScheduleDefinition): { ticks: Ticks; asked: () => number } {
  const policies = checkSchedule(definition, IDENTITY);
  const real = compileStored(policies, IDENTITY, T0);
  let asked = 0;
  const count = (after: number) => {
    asked++;
    return real.next(after);
  };
  const latest = (after: number, until: number) => latestTime(count, after, until);
  const timing = { limit: real.limit, next: count, latest } as CompiledTiming;
  return { ticks: new Ticks(timing, policies, IDENTITY), asked: () => asked };
}

/** Every tick of an outage; `over` bounds it. */
function all(over: Partial<ScheduleDefinition> = {}): Ticks {
  return ticksOf({ cron: '* * * * *', missed: 'all', ...over });
}

describe('resolve under all', () => {
  const minutes = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, i) => T0 + (from + i) * MINUTE);
  const pending = stateOf({ last: T0, cur: T0 + MINUTE, count: 1 });
  const away = (now: number): Served => ({ ...SERVED, servedFrom: now });

  test('each tick of an outage runs, in order, the newest however fresh', () => {
    const back = T0 + 40 * MINUTE + 10 * SECOND;
    expect(gist(all().resolve(pending, back, away(back)))).toEqual({
      newLast: T0 + 40 * MINUTE,
      cur: T0 + 41 * MINUTE,
      next: T0 + 42 * MINUTE,
      catchUp: minutes(1, 40),
      skipped: {},
    });
  });

  test('maxCatchup itself is not too many, one more is', () => {
    const back = T0 + 101 * MINUTE + 31 * SECOND;
    expect(all({ maxCatchup: 101 }).resolve(pending, back, away(back)).catchUp).toEqual(minutes(1, 101));
    expect(gist(all().resolve(pending, back, away(back)))).toEqual({
      newLast: T0 + 101 * MINUTE,
      cur: T0 + 102 * MINUTE,
      next: T0 + 103 * MINUTE,
      catchUp: [],
      skipped: { 'refused too many': [T0 + MINUTE, T0 + 101 * MINUTE] },
    });
  });

  test('onTooMany newest: the newest of them run in order, the rest is passed over', () => {
    const back = T0 + 5 * HOUR + 31 * SECOND;
    const ticks = all({ onTooMany: 'newest', maxCatchup: 10 });
    expect(gist(ticks.resolve(pending, back, away(back)))).toEqual({
      newLast: T0 + 300 * MINUTE,
      cur: T0 + 301 * MINUTE,
      next: T0 + 302 * MINUTE,
      catchUp: minutes(291, 300),
      skipped: { 'skipped too many': [T0 + MINUTE, T0 + 290 * MINUTE] },
    });
  });

  test('onTooMany suspend: none runs, that is recorded, and it stops by choice', () => {
    const back = T0 + 5 * HOUR + 31 * SECOND;
    const found = all({ onTooMany: 'suspend' }).resolve(pending, back, away(back));
    expect(found.suspends).toBe('more than 100 ticks were missed');
    expect(gist(found)).toMatchObject({
      newLast: T0 + 300 * MINUTE,
      catchUp: [],
      skipped: { 'refused too many': [T0 + MINUTE, T0 + 300 * MINUTE] },
    });
  });

  test('what is too old comes before what is too many', () => {
    const back = T0 + 2 * DAY + 31 * SECOND;
    const ticks = all({ catchupWindow: '30m', maxCatchup: 30 });
    const end = 2 * 24 * 60;
    expect(gist(ticks.resolve(pending, back, away(back)))).toEqual({
      newLast: T0 + end * MINUTE,
      cur: T0 + (end + 1) * MINUTE,
      next: T0 + (end + 2) * MINUTE,
      catchUp: minutes(end - 29, end),
      skipped: { 'skipped too old': [T0 + MINUTE, T0 + (end - 30) * MINUTE] },
    });
  });

  test('a record that has no room for them refuses them as too many', () => {
    const back = T0 + 40 * MINUTE + 31 * SECOND;
    const full = { ...away(back), room: 39 };
    expect(gist(all().resolve(pending, back, full)).skipped).toEqual({
      'refused too many': [T0 + MINUTE, T0 + 40 * MINUTE],
    });
    expect(all({ onTooMany: 'newest' }).resolve(pending, back, full).catchUp).toEqual(minutes(2, 40));
    const none = all({ onTooMany: 'newest' }).resolve(pending, back, { ...full, room: 0 });
    expect(gist(none)).toMatchObject({ catchUp: [], skipped: { 'refused too many': expect.anything() } });
  });

  test('limit: as many run as are left, and the schedule ends with them', () => {
    const back = T0 + 40 * MINUTE + 31 * SECOND;
    expect(gist(all({ limit: 6 }).resolve(pending, back, away(back)))).toEqual({
      newLast: T0 + 5 * MINUTE,
      cur: undefined,
      next: undefined,
      catchUp: minutes(1, 5),
      skipped: {},
    });
    expect(gist(all({ limit: 42 }).resolve(pending, back, away(back)))).toMatchObject({
      catchUp: minutes(1, 40),
      cur: T0 + 41 * MINUTE,
      next: undefined,
    });
  });

  test('endDate: the ticks up to it run', () => {
    const back = T0 + 40 * MINUTE + 31 * SECOND;
    expect(gist(all({ endDate: T0 + 3 * MINUTE }).resolve(pending, back, away(back)))).toEqual({
      newLast: T0 + 3 * MINUTE,
      cur: undefined,
      next: undefined,
      catchUp: minutes(1, 3),
      skipped: {},
    });
  });

  test.for([
    ['refuse', {}],
    ['newest', { onTooMany: 'newest' }],
    ['a wide window', { onTooMany: 'newest', catchupWindow: '300d', maxCatchup: 1000 }],
  ] as const)('an every-second schedule found after a year costs milliseconds: %s', ([, over]) => {
    const { ticks, asked } = counted({ cron: '* * * * * *', missed: 'all', ...over });
    const now = T0 + 365 * DAY + 999;
    const found = ticks.resolve(stateOf({ last: T0, cur: T0 + SECOND }), now, away(now));
    expect(found.newLast).toBe(now - 999);
    expect(found.skipped[0]).toMatchObject({ from: T0 + SECOND });
    expect(asked()).toBeLessThan(12_000);
  });

  test('seconds that all lie in one month, long ago, cost as little', () => {
    const bounds = { onTooMany: 'newest', catchupWindow: '365d', maxCatchup: 100 } as const;
    const { ticks, asked } = counted({ cron: '* * * * 1 *', missed: 'all', ...bounds });
    const now = T0 + 300 * DAY;
    const endOfJanuary = Date.parse('2027-01-31T23:59:59Z');
    const found = ticks.resolve(stateOf({ last: T0, cur: T0 + SECOND }), now, away(now));
    expect(found.catchUp).toEqual(Array.from({ length: 100 }, (_, i) => endOfJanuary - (99 - i) * SECOND));
    expect(asked()).toBeLessThan(12_000);
  });
});

describe('fire times', () => {
  test('B26 jitter of half a day and more: 20 ticks in 10 days, one a slot, in order, never early', () => {
    const ticks = ticksOf({ cron: '0 6,18 * * *', jitter: '20h', missed: 'skip' });
    const fired: number[] = [];
    let tick = ticks.after(T0);
    for (let i = 0; i < 20; i++, tick = ticks.after(tick?.tick ?? 0)) {
      const scheduled = T0 - 2 * HOUR + (i + 1) * 12 * HOUR;
      expect(tick?.tick).toBe(scheduled);
      expect(tick?.fireAt).toBeGreaterThanOrEqual(scheduled);
      expect(tick?.fireAt).toBeLessThan(scheduled + 12 * HOUR);
      fired.push(tick?.fireAt ?? 0);
    }
    expect(fired).toEqual([...fired].sort((a, b) => a - b));
    expect(new Set(fired.map((at) => at % (12 * HOUR))).size).toBeGreaterThan(15);
  });

  test('are the same on every machine, and another identity has others (I10)', () => {
    const policies = checkSchedule({ cron: '0 * * * *', jitter: '30m', missed: 'skip' }, IDENTITY);
    const ticks = (identity: string) =>
      new Ticks(compileStored(policies, identity, T0), policies, identity).fireTimeOf(T0);
    expect(ticks('q:s')).toBe(ticks('q:s'));
    expect(ticks('q:s')).toBe(T0 + jitterFor('q:s', T0, 30 * MINUTE, HOUR));
    expect(new Set(['q:a', 'q:b', 'q:c', 'r:a'].map(ticks)).size).toBe(4);
  });

  test('of the very last tick stay within the year 9999', () => {
    const endOfTime = Date.parse('9999-12-31T23:59:00Z');
    const ticks = ticksOf({ cron: '59 23 31 12 *', jitter: '31d', missed: 'skip' });
    expect(ticks.after(endOfTime - 1)?.tick).toBe(endOfTime);
    expect(ticks.fireTimeOf(endOfTime)).toBeLessThanOrEqual(253_402_300_799_999);
  });
});

describe('the newest due tick', () => {
  test('of an every-second schedule found after a year costs milliseconds', () => {
    const ticks = ticksOf({ cron: '* * * * * *', missed: 'latest', catchupWindow: '2d' });
    const now = T0 + 365 * DAY + 999;
    const started = performance.now();
    const found = ticks.resolve(stateOf({ last: T0, cur: T0 + SECOND }), now, { ...SERVED, servedFrom: now });
    expect(performance.now() - started).toBeLessThan(250);
    expect(gist(found)).toMatchObject({
      cur: now - 999,
      skipped: { 'skipped missed': [T0 + SECOND, now - 999 - SECOND] },
    });
  });

  test('of seconds that all lie in one hour, long ago, costs as little', () => {
    const ticks = ticksOf({ cron: '* * 8 1 1 *', missed: 'skip' });
    const newYear = Date.parse('2027-01-01T08:00:00Z');
    const started = performance.now();
    const found = ticks.newestDue(newYear + 300 * DAY, { tick: newYear, fireAt: newYear });
    expect(performance.now() - started).toBeLessThan(250);
    expect(found.tick).toBe(newYear + HOUR - SECOND);
  });
});
