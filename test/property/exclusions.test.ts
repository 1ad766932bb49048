import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compileExclusions } from '../../src/domain/exclusions.js';
import { checkExclude } from '../../src/domain/exclusions-definition.js';
import { type ExcludingTiming, withExclusions } from '../../src/domain/exclusions-timing.js';
import { compileSchedule } from '../../src/domain/fire-times.js';
import { type Definition, ExcludedWalk, type WalkExclusion } from './excluded-walk.js';
import { offsetChanges } from './wall-clock-matcher.js';
import { ODD_ZONES } from './zone-stretch.js';

/**
 * Exclusions against a walk over the minutes that shares no code with ours, in stretches of three weeks, most of them
 * with a change of offset in the middle.
 */
const DAY = 86_400_000;
const MINUTE = 60_000;
const FROM = Date.UTC(2024, 0, 1);
const TO = Date.UTC(2028, 0, 1);
/** What is excluded lies within so many days of the middle. */
const REACH = 5;
const LONG = process.env.CARILLON_LONG === '1';

const EXPRESSIONS = [
  '30 2 * * *',
  '0 0 * * *',
  '30 0 * * 1-5',
  '15 1 * * *',
  '59 23 * * *',
  '45 2,3 * * 0',
  '*/20 0-4 * * *',
  '* 1-3 * * *',
  '* 2 * * 6',
  '*/20 0-4 * * 0',
  '*/30 0-4 * * 5,6',
  '0 9 * * 5',
  '10,50 1-23/2 * * 0',
  '*/15 * * * *',
  '* * * * *',
  '* * * * 0',
  '0 */2 * * 1-5',
  '7 0-23/3 * * 3',
];

interface Stretch {
  tz: string;
  middle: number;
  walk: ExcludedWalk;
}

function stretches(): Stretch[] {
  return ['America/New_York', 'Europe/London', 'UTC', ...ODD_ZONES].flatMap((tz) => {
    const changes = offsetChanges(tz, FROM, TO).slice(0, 2);
    const middles = changes.length > 0 ? changes : [FROM + 200 * DAY];
    return middles.map((change) => {
      const middle = Math.floor(change / MINUTE) * MINUTE;
      return { tz, middle, walk: new ExcludedWalk(tz, middle - 10 * DAY, middle + 12 * DAY) };
    });
  });
}

const day = fc.integer({ min: -REACH, max: REACH });
const minute = fc.oneof(
  fc.integer({ min: -REACH * 1440, max: REACH * 1440 }),
  // Within an hour or two of the change itself.
  fc.integer({ min: -130, max: 130 }),
);

/** Exclusions as distances from the middle of a stretch. */
const distances = fc.oneof(
  { weight: 3, arbitrary: fc.record({ date: day }) },
  { weight: 2, arbitrary: fc.record({ firstDate: day, lastDate: day }) },
  { weight: 3, arbitrary: fc.record({ start: minute, length: fc.oneof(fc.nat(4_000), fc.nat(90)) }) },
);
const definitions = fc.record({
  cron: fc.constantFrom(...EXPRESSIONS),
  gap: fc.constantFrom<Definition['gap']>('shift', 'edge', 'skip'),
  fold: fc.constantFrom<Definition['fold']>('first', 'last', 'both'),
  onExcluded: fc.constantFrom<Definition['onExcluded']>('skip', 'next', 'next'),
  exclude: fc.array(distances, { minLength: 1, maxLength: 5 }),
  startDate: fc.option(minute, { nil: undefined, freq: 4 }),
  endDate: fc.option(minute, { nil: undefined, freq: 4 }),
});

function placed(
  distance: typeof distances extends fc.Arbitrary<infer T> ? T : never,
  middle: number,
): WalkExclusion {
  const dateAt = (days: number) => new Date(middle + days * DAY).toISOString().slice(0, 10);
  if ('date' in distance) return dateAt(distance.date);
  if ('start' in distance) {
    const from = middle + distance.start * MINUTE;
    return { from, to: from + distance.length * MINUTE };
  }
  const { firstDate, lastDate } = distance;
  return { from: dateAt(Math.min(firstDate, lastDate)), to: dateAt(Math.max(firstDate, lastDate)) };
}

function compiled(tz: string, { exclude, onExcluded, ...definition }: Definition): ExcludingTiming {
  const timing = compileSchedule({ ...definition, tz });
  return withExclusions(timing, compileExclusions(checkExclude([...exclude]) ?? [], tz), onExcluded);
}

function ticksOf(timing: ExcludingTiming, from: number, to: number): number[] {
  const ticks: number[] = [];
  for (let at = timing.next(from - 1); at !== undefined && at < to; at = timing.next(at)) ticks.push(at);
  return ticks;
}

/** Draws definitions and holds each against the walk over its stretch. @returns how many ticks moving added. */
function agree(
  { tz, middle, walk }: Stretch,
  drawing: typeof definitions,
  parameters: { numRuns: number; seed?: number },
): number {
  const [from, to] = [middle - 6 * DAY, middle + 8 * DAY];
  let moved = 0;
  fc.assert(
    fc.property(drawing, fc.nat(14 * 1440 - 1), (drawn, start) => {
      const bound = (minutes: number | undefined) =>
        minutes === undefined ? undefined : middle + minutes * MINUTE;
      const startDate = bound(drawn.startDate);
      const endDate = bound(drawn.endDate);
      fc.pre(startDate === undefined || endDate === undefined || startDate <= endDate);
      const exclude = [
        ...new Map(drawn.exclude.map((d) => [JSON.stringify(placed(d, middle)), placed(d, middle)])).values(),
      ];
      const definition: Definition = { ...drawn, exclude, startDate, endDate };
      const timing = compiled(tz, definition);
      const expected = walk.ticks(definition).filter((at) => at >= from && at < to);
      expect(ticksOf(timing, from, to)).toEqual(expected);
      // The answer does not depend on where the question began.
      const after = from + start * MINUTE;
      const next = expected.find((at) => at > after);
      if (next !== undefined) expect(timing.next(after)).toBe(next);
      expect(timing.latest(from - 1, after)).toBe(expected.findLast((at) => at <= after));
      if (drawn.onExcluded === 'next') {
        const skipping = ticksOf(compiled(tz, { ...definition, onExcluded: 'skip' }), from, to);
        moved += expected.length - skipping.length;
      }
    }),
    parameters,
  );
  return moved;
}

test.each(stretches())(
  'exclusions agree with a walk over the minutes: $tz',
  (stretch) => {
    // The walk must have met moved ticks, or it showed nothing of them.
    expect(
      agree(stretch, definitions, LONG ? { numRuns: 1000 } : { numRuns: 100, seed: 11 }),
    ).toBeGreaterThan(10);
  },
  120_000,
);

/** Zones that skip an hour, or half of one, on a Sunday: by the date of the change. */
const SPRINGS = [
  ['Europe/London', '2026-03-29T01:00:00Z'],
  ['Europe/Berlin', '2026-03-29T01:00:00Z'],
  ['Atlantic/Azores', '2026-03-29T01:00:00Z'],
  ['America/New_York', '2026-03-08T07:00:00Z'],
  ['America/Havana', '2026-03-08T05:00:00Z'],
  ['Australia/Sydney', '2026-10-03T16:00:00Z'],
  ['Australia/Lord_Howe', '2026-10-03T15:30:00Z'],
  ['Pacific/Auckland', '2026-09-26T14:00:00Z'],
  ['America/Asuncion', '2023-10-01T04:00:00Z'],
] as const;

test.each(SPRINGS)(
  'moved into the hour that %s skips, a tick goes on to the next date',
  (tz, change) => {
    const middle = Date.parse(change);
    const walk = new ExcludedWalk(tz, middle - 17 * DAY, middle + 19 * DAY);
    const springing = fc.record({
      cron: fc.constantFrom(
        '*/20 0-4 * * 0',
        '*/20 0-4 * * 6',
        '*/20 0-4 * * 0,5,6',
        '*/10 0-3 * * *',
        '45 2,3 * * 0',
      ),
      gap: fc.constantFrom<Definition['gap']>('skip', 'skip', 'shift', 'edge'),
      fold: fc.constant<Definition['fold']>('first'),
      onExcluded: fc.constant<Definition['onExcluded']>('next'),
      exclude: fc.array(distances, { minLength: 1, maxLength: 4 }),
      startDate: fc.constant(undefined),
      endDate: fc.constant(undefined),
    });
    expect(
      agree({ tz, middle, walk }, springing, LONG ? { numRuns: 3000 } : { numRuns: 60, seed: 11 }),
    ).toBeGreaterThan(10);
  },
  120_000,
);

/** Zones that show an hour, half of one or two twice. */
const FALLS = [
  ['Antarctica/Troll', '2026-10-25T01:00:00Z'],
  ['Europe/London', '2026-10-25T01:00:00Z'],
  ['America/New_York', '2026-11-01T06:00:00Z'],
  ['America/Havana', '2026-11-01T05:00:00Z'],
  ['Australia/Lord_Howe', '2026-04-04T15:00:00Z'],
] as const;

test.each(FALLS)(
  'minutes excluded in either pass of the hour that %s repeats move each by itself',
  (tz, change) => {
    const middle = Date.parse(change);
    const walk = new ExcludedWalk(tz, middle - 10 * DAY, middle + 12 * DAY);
    const near = fc.record({ start: fc.integer({ min: -250, max: 250 }), length: fc.nat(40) });
    const falling = fc.record({
      cron: fc.constantFrom('* * * * 0', '*/7 0-4 * * 0', '* * * * 6,0', '*/10 0-3 * * *', '*/5 1 * * 0'),
      gap: fc.constant<Definition['gap']>('shift'),
      fold: fc.constantFrom<Definition['fold']>('first', 'last', 'both'),
      onExcluded: fc.constant<Definition['onExcluded']>('next'),
      exclude: fc.array(near, { minLength: 1, maxLength: 5 }),
      startDate: fc.constant(undefined),
      endDate: fc.constant(undefined),
    });
    expect(
      agree({ tz, middle, walk }, falling, LONG ? { numRuns: 1500 } : { numRuns: 40, seed: 11 }),
    ).toBeGreaterThan(10);
  },
  120_000,
);
