import { expect, test } from 'vitest';
import { checkSchedule } from '../../../src/domain/check-schedule.js';
import type { ScheduleDefinition } from '../../../src/domain/schedule.js';
import { latenessWords, policyWords } from '../../../src/domain/schedule-words.js';

function words(over: Partial<ScheduleDefinition>): string[] {
  return policyWords(checkSchedule({ cron: '30 2 * * *', missed: 'skip', ...over }, 'q:s'));
}

test('a schedule of defaults says what they are', () => {
  expect(words({})).toEqual([
    'It fires at 30 2 * * *, UTC time.',
    'Ticks that were missed do not run.',
    'A tick that comes while a run is still open is skipped. At most 32 runs are open or waiting.',
  ]);
});

// biome-ignore format: a table
test.each<[string, Partial<ScheduleDefinition>, string]>([
  ['a zone and clock changes', { tz: 'Europe/London', gap: 'skip', fold: 'both' }, 'It fires at 30 2 * * *, Europe/London time (a time that the clock skips: skip; a repeated hour: both).'],
  ['several patterns', { cron: undefined, crons: ['0 9 * * *', '0 17 * * *'] }, 'It fires at 0 9 * * * and 0 17 * * *, UTC time.'],
  ['an interval', { cron: undefined, every: '90m' }, 'It fires every 1h30m, counted from its anchor.'],
  ['missed latest', { missed: 'latest' }, 'Of ticks that were missed, the newest one runs.'],
  ['missed all', { missed: 'all' }, 'All ticks that were missed run in order, one at a time; of more than 100, none of them runs, and that is recorded.'],
  ['missed all, newest', { missed: 'all', onTooMany: 'newest', maxCatchup: 7 }, 'All ticks that were missed run in order, one at a time; of more than 7, the newest of them run.'],
  ['missed all, suspend', { missed: 'all', onTooMany: 'suspend' }, 'All ticks that were missed run in order, one at a time; of more than 100, the schedule is suspended.'],
  ['overlap skip of two', { maxConcurrent: 2 }, 'A tick that comes while 2 runs are still open is skipped. At most 32 runs are open or waiting.'],
  ['overlap bufferOne', { overlap: 'bufferOne', maxOpenRuns: 5 }, 'A tick that comes while a run is still open waits, one of them at the most. At most 5 runs are open or waiting.'],
  ['overlap bufferAll', { overlap: 'bufferAll' }, 'A tick that comes while a run is still open waits for its turn. At most 32 runs are open or waiting.'],
  ['overlap cancelOther', { overlap: 'cancelOther' }, 'A tick that comes while a run is still open takes the place of one that no worker has fetched; one that runs is asked to stop if Carillon’s worker has it, a plain worker’s is waited for. At most 32 runs are open or waiting.'],
  ['overlap allow', { overlap: 'allow' }, 'Runs may overlap. At most 32 runs are open or waiting.'],
  ['overlap allow of two', { overlap: 'allow', maxConcurrent: 2 }, 'Up to 2 runs may overlap; further ticks wait. At most 32 runs are open or waiting.'],
  ['jitter', { jitter: '5m' }, 'Each tick fires up to 5m after its time, the same on every machine.'],
  ['a limit', { limit: 3 }, 'It ends after 3 runs.'],
  ['an end', { endDate: '2027-01-15T08:00:00Z' }, 'It ends at 2027-01-15T08:00:00.000Z.'],
  ['a start', { startDate: '2027-01-15T08:00:00Z' }, 'No tick comes before 2027-01-15T08:00:00.000Z.'],
  ['runTimeout', { runTimeout: '2h' }, 'A run that has not ended 2h after it went into its queue counts as ended; the schedule goes on beside it.'],
  ['pauseOnFailure', { pauseOnFailure: 3 }, 'It is paused after 3 failed runs in a row.'],
])('%s', (_what, over, sentence) => {
  expect(words(over)).toContain(sentence);
});

test('how late a tick may be and still run', () => {
  const lateness = (over: Partial<ScheduleDefinition>) =>
    latenessWords(checkSchedule({ cron: '@daily', missed: 'skip', ...over }, 'q:s'));
  expect(lateness({ grace: '1m' })).toBe(
    'A tick that nobody serves for 1m does not run; behind a backlog it runs until its next one is due.',
  );
  for (const missed of ['latest', 'all'] as const) {
    expect(lateness({ missed, catchupWindow: '6h' })).toBe(
      'A tick that nobody serves for 30s is caught up, at most 6h late.',
    );
  }
});

test('the next tick makes one missed before its grace is over, but not under all', () => {
  const sentence = (missed: ScheduleDefinition['missed'], period?: number) =>
    latenessWords(checkSchedule({ cron: '* * * * * *', missed }, 'q:s'), period).split('.')[0];
  expect(sentence('skip', 1000)).toBe(
    'A tick that nobody serves for 1s, when its next one is due, does not run; behind a backlog it runs until its next one is due',
  );
  expect(sentence('latest', 1000)).toBe(
    'A tick that nobody serves for 1s, when its next one is due, gives way to that one; the newest is caught up, at most 1d late',
  );
  expect(sentence('all', 1000)).toBe('A tick that nobody serves for 30s is caught up, at most 1d late');
  expect(sentence('latest', 30_000)).toBe('A tick that nobody serves for 30s is caught up, at most 1d late');
  const every = checkSchedule({ every: '10s', missed: 'skip' }, 'q:s');
  expect(latenessWords(every)).toContain('for 10s, when its next one is due, does not run');
});

test('a tick whose own grace or period is shorter than a fail-over may be missed in one', () => {
  const stored = (over: Partial<ScheduleDefinition>) =>
    checkSchedule({ cron: '@daily', missed: 'skip', ...over }, 'q:s');
  const warned = 'of up to 23s, may be missed.';
  expect(latenessWords(stored({ grace: '22s' }))).toContain(warned);
  expect(latenessWords(stored({ grace: '23s' }))).not.toContain(warned);
  expect(latenessWords(stored({ cron: undefined, every: '10s' }))).toContain(warned);
  expect(latenessWords(stored({ missed: 'latest' }), 20_000)).toContain(warned);
  expect(latenessWords(stored({}), 86_400_000)).not.toContain(warned);
});
