import { type CompiledTiming, compileSchedule } from '../../src/domain/fire-times.js';
import type { SeededRandom } from './seeded-random.js';
import { type Policy, WallClockWalk } from './wall-clock-matcher.js';

const EXPRESSIONS_A_STRETCH = 6;

/** Zones whose changes are odd: half an hour, two hours, at midnight, by decree, at a quarter to three. */
export const ODD_ZONES = [
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

function someExpression(random: SeededRandom): string {
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

function somePolicy(random: SeededRandom): Policy {
  return { gap: random.pick(['shift', 'edge', 'skip']), fold: random.pick(['first', 'last', 'both']) };
}

function walk(timing: CompiledTiming, from: number, to: number): number[] {
  const times: number[] = [];
  for (let at = timing.next(from - 1); at !== undefined && at < to; at = timing.next(at)) times.push(at);
  return times;
}

export interface Comparison {
  /** How many fire times the stretch had. */
  seen: number;
  /** Questions that had two answers. */
  wrong: object[];
}

/** Compares a few expressions over a stretch with a walk over its minutes, then asks again from starts inside it. */
export function compareStretch(tz: string, from: number, to: number, random: SeededRandom): Comparison {
  const wrong: object[] = [];
  const walked = new WallClockWalk(tz, from, to);
  let seen = 0;
  for (let i = 0; i < EXPRESSIONS_A_STRETCH; i++) {
    const cron = someExpression(random);
    const policy = somePolicy(random);
    const timing = compileSchedule({ cron, tz, ...policy });
    const expected = walked.fireTimes(cron, policy);
    const found = walk(timing, from, to);
    const question = { tz, cron, ...policy, from: new Date(from).toISOString() };
    if (found.join() !== expected.join()) wrong.push({ ...question, found, expected });
    for (let j = 0; j < 5; j++) {
      const start = from + random.below(to - from);
      const next = expected.find((time) => time > start);
      if (next === undefined) continue;
      const answer = timing.next(start);
      if (answer !== next) wrong.push({ ...question, start, answer, next });
    }
    seen += found.length;
  }
  return { seen, wrong };
}
