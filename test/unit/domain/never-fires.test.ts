import { expect, test } from 'vitest';
import { checkSchedule } from '../../../src/domain/check-schedule.js';
import { storedNeverFires } from '../../../src/domain/never-fires.js';
import type { ScheduleDefinition } from '../../../src/domain/schedule.js';

const NOW = Date.parse('2026-06-15T12:00:00Z');

function sentenceOf(over: Partial<ScheduleDefinition>): string | undefined {
  const policies = checkSchedule({ cron: '0 2 * * *', missed: 'skip', ...over }, 'q:s');
  return storedNeverFires(policies, 'q:s', NOW, NOW);
}

const gap = { cron: '0 2 * 3 SUN#2', tz: 'America/Los_Angeles', gap: 'skip' } as const;

// biome-ignore format: a table
test.each<[string, Partial<ScheduleDefinition>, string]>([
  ['an end in the past', { endDate: '2020-01-01T00:00:00Z' }, 'it never fires: its endDate 2020-01-01T00:00:00.000Z is over'],
  ['an end before the first time', { endDate: '2026-06-15T20:00:00Z' }, 'it never fires: none of its times comes before its endDate 2026-06-15T20:00:00.000Z'],
  ['a stretch between two times', { startDate: '2027-01-01T03:00:00Z', endDate: '2027-01-01T04:00:00Z' }, 'it never fires: none of its times comes before its endDate 2027-01-01T04:00:00.000Z'],
  ['an interval that ends first', { cron: undefined, every: '1d', endDate: '2026-06-15T20:00:00Z' }, 'it never fires: none of its times comes before its endDate 2026-06-15T20:00:00.000Z'],
  ['times that the clock skips', gap, "it never fires: the clock of America/Los_Angeles skips each of its times, and gap: 'skip' drops those"],
  ['every minute of an hour that the clock skips', { ...gap, cron: '* 2 * 3 SUN#2' }, "it never fires: the clock of America/Los_Angeles skips each of its times, and gap: 'skip' drops those"],
  ['exclusions for ever', { exclude: [{ from: '2020-01-01', to: '9999-12-31' }] }, 'it never fires: each of its times is excluded'],
  ['the same, moved', { exclude: [{ from: '2020-01-01', to: '9999-12-31' }], onExcluded: 'next' }, 'it never fires: each of its times is excluded'],
  ['a start behind all times', { startDate: '9999-12-31T12:00:00Z' }, 'it never fires: none of its times comes before the year 10000'],
])('%s', (_what, over, sentence) => {
  expect(sentenceOf(over)).toBe(sentence);
});

test('what fires has no sentence, and an impossible day has its own already', () => {
  expect(sentenceOf({})).toBeUndefined();
  expect(sentenceOf({ ...gap, gap: 'shift' })).toBeUndefined();
  expect(sentenceOf({ cron: undefined, crons: ['0 0 31 2 *', '0 2 * * *'] })).toBeUndefined();
  expect(sentenceOf({ cron: '0 0 31 2 *' })).toBeUndefined();
  expect(sentenceOf({ cron: '0 0 31 2 *', endDate: '2020-01-01T00:00:00Z' })).toBeUndefined();
});

test('one that starts at once may fire at that very ms', () => {
  const policies = checkSchedule({ every: '1h', endDate: NOW, missed: 'skip' }, 'q:s');
  expect(storedNeverFires({ ...policies, startsAtOnce: true }, 'q:s', NOW, NOW)).toBeUndefined();
  expect(storedNeverFires(policies, 'q:s', NOW, NOW)).toContain('never fires');
});
