import fc from 'fast-check';
import { expect, test } from 'vitest';
import { checkSchedule } from '../../src/domain/check-schedule.js';
import { compileStored, type ScheduleDefinition, type StoredPolicies } from '../../src/domain/schedule.js';
import { type PlannedTick, type TickState, Ticks } from '../../src/domain/ticks.js';

const IDENTITY = 'q:s';
const T0 = Date.parse('2026-10-24T22:00:00Z');
const MINUTE = 60_000;

const timings = [
  { cron: '* * * * *' },
  { cron: '*/7 * * * *' },
  { cron: '0,1,2 * * * *' },
  { cron: '*/20 * * * * *' },
  { cron: '30 1 * * *', tz: 'Europe/London' },
  { cron: '15 0-6 * * *', tz: 'Europe/London', fold: 'both' },
  { crons: ['0 * * * *', '20,21 * * * *'] },
  { every: 90_000 },
  { every: '17m', phase: '3m' },
] as const;

const definitions = fc.record(
  {
    timing: fc.constantFrom(...timings),
    missed: fc.constantFrom('skip', 'latest', 'all'),
    maxCatchup: fc.option(fc.constantFrom(1, 5, 40), { nil: undefined }),
    onTooMany: fc.option(fc.constantFrom('refuse', 'newest', 'suspend'), { nil: undefined }),
    jitter: fc.option(fc.constantFrom(0, 1, 20_000, '50m'), { nil: undefined }),
    catchupWindow: fc.option(fc.constantFrom(0, '5m', '3h'), { nil: undefined }),
    limit: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
    endAfter: fc.option(fc.integer({ min: 0, max: 300 }), { nil: undefined }),
  },
  { requiredKeys: ['timing', 'missed'] },
);

/** A schedule somewhere in its life, and a look at it later. */
const cases = fc.record({
  definition: definitions.map(({ timing, endAfter, ...policies }) => {
    const endDate = endAfter === undefined ? {} : { endDate: T0 + endAfter * MINUTE };
    const given = Object.entries({ ...timing, ...policies, ...endDate }).filter(([, v]) => v !== undefined);
    return Object.fromEntries(given) as unknown as ScheduleDefinition;
  }),
  ticksBefore: fc.integer({ min: 0, max: 3 }),
  later: fc.integer({ min: -MINUTE, max: 300 * MINUTE }),
  servedFor: fc.integer({ min: 0, max: 10 * MINUTE }),
  grace: fc.constantFrom(0, 1000, 30_000, 10 * MINUTE),
  resumed: fc.boolean(),
  pendingKnown: fc.boolean(),
});

/** Every tick from a pending one on whose fire time has come, by walking. */
function dueTicks(ticks: Ticks, pending: PlannedTick, now: number): PlannedTick[] {
  const due: PlannedTick[] = [];
  let tick: PlannedTick | undefined = pending;
  while (tick !== undefined && tick.tick <= now) {
    if (tick.fireAt <= now) due.push(tick);
    tick = ticks.after(tick.tick);
  }
  return due;
}

/** What `all` makes of ticks that are due, by walking over each of them. */
function walkAll(due: number[], policies: StoredPolicies, now: number, left: number) {
  const old = due.filter((tick) => now - tick > (policies.catchupWindow ?? 86_400_000));
  const fresh = due.slice(old.length, old.length + left);
  const most = policies.maxCatchup ?? 100;
  const spans = [spanOf(old, 'skipped', 'too old')];
  if (fresh.length <= most)
    return { runs: fresh, spans, last: fresh.length < left ? due.at(-1) : fresh.at(-1) };
  const too = due.slice(old.length);
  if (policies.onTooMany === 'newest') {
    spans.push(spanOf(too.slice(0, -most), 'skipped', 'too many'));
    return { runs: too.slice(-most), spans, last: due.at(-1) };
  }
  spans.push(spanOf(too, 'refused', 'too many'));
  return { runs: [], spans, last: due.at(-1) };
}

function spanOf(ticks: number[], what: string, reason: string) {
  return ticks.length === 0 ? undefined : { from: ticks[0], to: ticks.at(-1), what, reason };
}

test('resolve does what a walk over every tick finds', () => {
  fc.assert(
    fc.property(cases, ({ definition, ticksBefore, later, servedFor, grace, resumed, pendingKnown }) => {
      const policies = checkSchedule(definition, IDENTITY);
      const ticks = new Ticks(compileStored(policies, IDENTITY, T0), policies, IDENTITY);
      let last = 0;
      for (let i = 0; i < ticksBefore; i++) last = ticks.after(last || T0)?.tick ?? last;
      const state: TickState = { last, cur: 0, next: 0, count: ticksBefore, createdAt: T0 };
      const pending = ticks.successor(state);
      if (pendingKnown && pending !== undefined) state.cur = pending.tick;
      const now = (pending?.fireAt ?? T0) + later;
      const servedFrom = now - servedFor;

      const found = ticks.resolve(state, now, { servedFrom, grace, resumed, room: 1000 });

      const due = pending === undefined ? [] : dueTicks(ticks, pending, now);
      const newest = due.at(-1);
      const left = (policies.limit ?? Infinity) - ticksBefore;
      let expected: { last: number | undefined; runs: number[]; spans: unknown[]; keeps?: PlannedTick };
      if (pending === undefined || newest === undefined || !(pendingKnown || resumed)) {
        expected = { last, runs: [], spans: [], ...(pending ? { keeps: pending } : {}) };
      } else if (policies.missed === 'all' && !resumed) {
        const dueTimes = due.map(({ tick }) => tick);
        expected = walkAll(dueTimes, policies, now, left);
      } else {
        const reason = resumed ? 'paused' : 'missed';
        const older = due.slice(0, -1).map(({ tick }) => tick);
        const inTime = !resumed && newest.fireAt + grace >= servedFrom;
        const caughtUp =
          policies.missed !== 'skip' && now - newest.tick <= (policies.catchupWindow ?? 86_400_000);
        if (inTime) {
          expected = {
            last: older.at(-1) ?? last,
            runs: [],
            spans: [spanOf(older, 'skipped', reason)],
            keeps: newest,
          };
        } else if (caughtUp) {
          expected = { last: newest.tick, runs: [newest.tick], spans: [spanOf(older, 'skipped', reason)] };
        } else {
          const passedOver = [...older, newest.tick];
          expected = { last: newest.tick, runs: [], spans: [spanOf(passedOver, 'skipped', reason)] };
        }
      }
      expect(found).toMatchObject({
        newLast: expected.last,
        catchUp: expected.runs,
        skipped: expected.spans.filter((span) => span !== undefined),
      });
      const suspends =
        policies.onTooMany === 'suspend' && found.skipped.some(({ what }) => what === 'refused');
      expect(found.suspends !== undefined).toBe(suspends);
      const rest = left - expected.runs.length;
      const follows = expected.keeps ?? (pending && ticks.after(newest?.tick ?? 0));
      expect(found.cur).toEqual(rest > 0 ? follows : undefined);
      expect(found.next).toEqual(rest > 1 && found.cur ? ticks.after(found.cur.tick) : undefined);
    }),
    { numRuns: 3000, seed: 20_270_115 },
  );
});

test('no tick fires after the one that follows it is scheduled', () => {
  fc.assert(
    fc.property(definitions, fc.integer({ min: 0, max: 50 }), ({ timing, jitter = 0 }, skipped) => {
      const definition = { ...timing, jitter, missed: 'skip' } as ScheduleDefinition;
      const policies = checkSchedule(definition, IDENTITY);
      const ticks = new Ticks(compileStored(policies, IDENTITY, T0), policies, IDENTITY);
      let tick = ticks.after(T0);
      for (let i = 0; i < skipped; i++) tick = ticks.after(tick?.tick ?? 0);
      const next = ticks.after(tick?.tick ?? 0);
      expect(tick?.fireAt).toBeGreaterThanOrEqual(tick?.tick ?? Infinity);
      expect(tick?.fireAt).toBeLessThan(next?.tick ?? -Infinity);
    }),
    { numRuns: 500, seed: 20_270_116 },
  );
});
