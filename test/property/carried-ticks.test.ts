import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { carryTicks } from '../../src/domain/carried-ticks.js';
import { compileSchedule } from '../../src/domain/fire-times.js';
import type { CronRule, GapPolicy } from '../../src/domain/fire-times-cron.js';
import { namesOf } from '../../src/domain/fire-times-named.js';
import { RecordedOffsets } from '../../src/domain/recorded-offsets.js';
import { Ticks } from '../../src/domain/ticks.js';
import type { OffsetSource, TimeZoneData } from '../../src/domain/time-zone-offsets.js';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const START = Date.UTC(2027, 2, 1);
const DAYS = 60;

/** Two versions of the rules of one zone: offsets in half hours, with up to three changes in the stretch that is looked at. */
const rules = fc
  .tuple(
    fc.integer({ min: -8, max: 8 }),
    fc.array(
      fc.record({
        hour: fc.integer({ min: 0, max: DAYS * 24 }),
        step: fc.constantFrom(-2, -1, 1, 2),
      }),
      { maxLength: 3 },
    ),
  )
  .map(([base, changes]) => {
    let offset = base * 1800;
    const offsets: [number, number][] = [[0, offset]];
    for (const { hour, step } of changes.sort((a, b) => a.hour - b.hour)) {
      const at = (START + hour * HOUR) / 1000;
      // Changes lie days apart, as in every zone.
      if (at - (offsets.at(-1)?.[0] ?? 0) < 4 * 86_400) continue;
      offset += step * 1800;
      offsets.push([at, offset]);
    }
    return offsets;
  });

const known = fc.constantFrom('both', 'cur', 'last');

function data(version: string, offsets: [number, number][]): TimeZoneData & { zone: OffsetSource } {
  const zone = new RecordedOffsets({ version, at: 0, from: 0, to: 0, offsets });
  return { version, zone, offsetsOf: () => zone };
}

function ticksOf(cron: string, gap: GapPolicy, timeZones: TimeZoneData): Ticks {
  const timing = compileSchedule({ cron, gap, tz: 'Europe/London' }, { timeZones });
  return new Ticks(timing, { missed: 'all', cron: [cron] }, 'q:s');
}

/** The local time that a tick stands for. */
function nameOf(ticks: Ticks, tick: number): number {
  return Math.max(...ticks.timing.rules.flatMap((rule: CronRule) => namesOf(rule, tick)));
}

/** What fires before and after the data changes at `switchAt`, as local times. */
function runs(
  { cron, gap }: { cron: string; gap: GapPolicy },
  before: TimeZoneData & { zone: OffsetSource },
  after: TimeZoneData,
  switchAt: number,
  known: 'both' | 'cur' | 'last',
) {
  const [old, renewed] = [ticksOf(cron, gap, before), ticksOf(cron, gap, after)];
  const names: number[] = [];
  let last = 0;
  let cur = old.after(START)?.tick ?? 0;
  while (cur <= switchAt) {
    names.push(nameOf(old, cur));
    last = cur;
    cur = old.after(cur)?.tick ?? 0;
  }
  const pending = {
    cur: known === 'last' ? 0 : cur,
    next: known === 'both' ? (old.after(cur)?.tick ?? 0) : 0,
  };
  const carried = carryTicks(renewed, before.zone, { last, ...pending }, switchAt);
  if (known === 'both') expect(carried.next).toEqual(renewed.after(carried.cur?.tick ?? 0));
  else expect(carried.next).toBeUndefined();
  // The planner names what is not known, by the new rules.
  for (
    let tick = (carried.cur ?? renewed.after(last))?.tick;
    tick !== undefined && tick < START + DAYS * DAY;
  ) {
    expect(tick).toBeGreaterThan(last);
    names.push(nameOf(renewed, tick));
    last = tick;
    tick = renewed.after(tick)?.tick;
  }
  return names;
}

describe('two versions of a zone’s rules', () => {
  test('a daily time runs once on each local day, whenever the data changes', () => {
    fc.assert(
      fc.property(
        rules,
        rules,
        fc.integer({ min: 5 * 24 * 60, max: (DAYS - 10) * 24 * 60 }),
        fc.integer({ min: 0, max: 23 }),
        fc.constantFrom(0, 30),
        known,
        (before, after, minute, hour, past, mode) => {
          const names = runs(
            { cron: `${past} ${hour} * * *`, gap: 'shift' },
            data('2027a', before),
            data('2027b', after),
            START + minute * 60_000,
            mode,
          );
          const days = names.map((local) => Math.floor(local / DAY));
          expect(days).toEqual(days.map((_, i) => (days[0] as number) + i));
        },
      ),
      { numRuns: 2000 },
    );
  });

  test('several times a day: no local time runs twice, and they stay in order', () => {
    fc.assert(
      fc.property(
        rules,
        rules,
        fc.integer({ min: 5 * 24 * 60, max: (DAYS - 10) * 24 * 60 }),
        known,
        (before, after, minute, mode) => {
          const names = runs(
            { cron: '*/30 1-4,9-17 * * *', gap: 'skip' },
            data('2027a', before),
            data('2027b', after),
            START + minute * 60_000,
            mode,
          );
          expect(names).toEqual([...new Set(names)].sort((a, b) => a - b));
        },
      ),
      {
        numRuns: 1000,
        examples: [
          // What ran last, 17:30, is skipped by the new rules: 17:00, which ran before it, is still to come by them.
          [
            [
              [0, 5400],
              [1_803_859_200, 9000],
            ],
            [
              [0, 5400],
              [1_804_348_800, 7200],
            ],
            8100,
            'last',
          ],
        ],
      },
    );
  });
});
