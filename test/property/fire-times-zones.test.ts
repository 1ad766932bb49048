import { describe, expect, test } from 'vitest';
import { type CompiledTiming, compileSchedule } from '../../src/domain/fire-times.js';
import { seededRandom } from './seeded-random.js';
import { offsetChanges, type Policy, WallClockWalk } from './wall-clock-matcher.js';

/**
 * Our fire times against a matcher that walks UTC minutes: three days around each change of offset from 2020 to 2035
 * and 200 random days, in each zone. `CARILLON_ALL_ZONES=1` takes all zones (about ten minutes), else a sample.
 */
const DAY = 86_400_000;
const FROM = Date.UTC(2020, 0, 1);
const TO = Date.UTC(2036, 0, 1);
const EXPRESSIONS_A_STRETCH = 6;

/** Zones whose changes are odd: half an hour, two hours, at midnight, by decree, at a quarter to three. */
const ODD_ZONES = [
  'Africa/Cairo',
  'Africa/Casablanca',
  'America/Havana',
  'America/Nuuk',
  'America/Santiago',
  'Antarctica/Casey',
  'Antarctica/Troll',
  'Asia/Beirut',
  'Asia/Gaza',
  'Asia/Tehran',
  'Atlantic/Azores',
  'Australia/Lord_Howe',
  'Pacific/Chatham',
];

const zones = Intl.supportedValuesOf('timeZone');
const random = seededRandom(20_260_101);
const chosen =
  process.env.CARILLON_ALL_ZONES === '1'
    ? zones
    : [...new Set([...ODD_ZONES, ...Array.from({ length: 7 }, () => random.pick(zones))])];

/** Times that fall into usual gaps and folds, and their neighbours. */
const AIMED = [
  '30 2 * * *',
  '0 2 * * *',
  '0 0 * * *',
  '30 0 * * *',
  '15 1 * * *',
  '59 23 * * *',
  '*/20 0-4 * * *',
  '45 2,3 * * *',
  '* 1-3 * * *',
  '*/15 * * * *',
  '0 */2 * * *',
  '7 0-23/3 * * *',
  '10,50 1-23/2 * * 0',
  '30 1-9 * * 0,6',
  '0 3 1-7,21-31 * 0',
];

function someExpression(): string {
  if (random.below(2) === 0) return random.pick(AIMED);
  const minute = random.pick([
    '*',
    '*/7',
    '*/30',
    `${random.below(60)}`,
    `${random.below(30)},${30 + random.below(30)}`,
  ]);
  const hour = random.pick([
    '*',
    '*/3',
    '0-23/5',
    `${random.below(24)}`,
    `${random.below(4)}-${4 + random.below(20)}`,
    '1-23/2',
  ]);
  const day = random.pick(['*', '*', '*', '*/2', `${1 + random.below(28)}`, '1-15', '25-31']);
  const month = random.pick(['*', '*', '*', '3,4,10,11', '*/2']);
  const weekday = random.pick(['*', '*', '*', '0', '1-5', '6']);
  return `${minute} ${hour} ${day} ${month} ${weekday}`;
}

function somePolicy(): Policy {
  return { gap: random.pick(['shift', 'edge', 'skip']), fold: random.pick(['first', 'last', 'both']) };
}

function walk(timing: CompiledTiming, from: number, to: number): number[] {
  const times: number[] = [];
  for (let at = timing.next(from - 1); at !== undefined && at < to; at = timing.next(at)) times.push(at);
  return times;
}

/** Compares a few expressions over a stretch, then asks again from starts inside it. Gives how many times were seen. */
function compareStretch(tz: string, from: number, to: number): number {
  const walked = new WallClockWalk(tz, from, to);
  let seen = 0;
  for (let i = 0; i < EXPRESSIONS_A_STRETCH; i++) {
    const cron = someExpression();
    const policy = somePolicy();
    const timing = compileSchedule({ cron, tz, ...policy });
    const expected = walked.fireTimes(cron, policy);
    const found = walk(timing, from, to);
    const question = { tz, cron, ...policy, from: new Date(from).toISOString() };
    if (found.join() !== expected.join())
      expect({ ...question, times: found }).toEqual({ ...question, times: expected });
    for (let j = 0; j < 5; j++) {
      const start = from + random.below(to - from);
      const next = expected.find((time) => time > start);
      if (next === undefined) continue;
      const answer = timing.next(start);
      if (answer !== next)
        expect({ ...question, start, answer }).toEqual({ ...question, start, answer: next });
    }
    seen += found.length;
  }
  return seen;
}

describe('fire times agree with a walk over the minutes', () => {
  test.each(chosen)(
    '%s',
    (tz) => {
      let seen = 0;
      for (const change of offsetChanges(tz, FROM, TO)) {
        const middle = Math.floor(change / 60_000) * 60_000;
        seen += compareStretch(tz, middle - 1.5 * DAY, middle + 1.5 * DAY);
      }
      for (let i = 0; i < 200; i++) {
        const day = FROM + random.below((TO - FROM) / DAY) * DAY;
        seen += compareStretch(tz, day, day + DAY);
      }
      expect(seen).toBeGreaterThan(1_000);
    },
    120_000,
  );
});

test('the sample has changes of offset in it, and the walk finds them', () => {
  expect(offsetChanges('America/New_York', FROM, TO)).toHaveLength(32);
  expect(offsetChanges('Africa/Casablanca', FROM, TO)).toHaveLength(34);
  expect(offsetChanges('Asia/Tokyo', FROM, TO)).toEqual([]);
  expect(new Date(offsetChanges('Australia/Lord_Howe', FROM, TO)[0] ?? 0).toISOString()).toBe(
    '2020-04-04T15:00:00.000Z',
  );
});
