import { expect, test } from 'vitest';
import { checkSchedule, SCHEDULE_KEYS } from '../../../src/domain/check-schedule.js';
import type { ScheduleDefinition, StoredPolicies } from '../../../src/domain/schedule.js';
import { differences, writtenSchedule } from '../../../src/domain/written-schedule.js';

/** Definitions that together use every option. */
const samples: ScheduleDefinition[] = [
  {
    cron: '30 2 * * *',
    tz: 'Europe/London',
    gap: 'edge',
    fold: 'both',
    startDate: '2026-01-01T00:00:00Z',
    endDate: '2027-01-01T00:00:00.250Z',
    limit: 5,
    missed: 'all',
    grace: '90s',
    jitter: '5m',
    catchupWindow: '36h',
    maxCatchup: 7,
    onTooMany: 'newest',
    overlap: 'bufferOne',
    maxConcurrent: 2,
    maxOpenRuns: 9,
    runTimeout: '2h',
    pauseOnFailure: 3,
    keepRuns: 10,
    exclude: ['2026-12-25', { from: '2026-12-28', to: '2026-12-31' }],
    onExcluded: 'next',
    after: ['hourly', { queue: 'etl', scheduleId: 'load' }],
    onParentFailed: 'run',
    onParentSkipped: 'run',
    tags: ['b', 'a'],
  },
  { crons: ['0 5 * * *', '@daily'], missed: 'skip', overlap: 'Allow' },
  { pattern: '*/5 * * * * *', tz: 'UTC', missed: 'latest' },
  { every: 90_500, anchor: 1_800_000_000_000, phase: '1s', missed: 'latest' },
];

test('the samples use every option of a schedule', () => {
  const used = new Set(samples.flatMap((sample) => Object.keys(sample)));
  expect(SCHEDULE_KEYS.filter((key) => !used.has(key))).toEqual([]);
});

test.each(samples)('what is written is stored as it was: $missed', (sample) => {
  const stored = checkSchedule(sample, 'q:one');
  expect(checkSchedule(writtenSchedule(stored), 'q:one')).toEqual(stored);
});

test('it is written for people', () => {
  expect(writtenSchedule(checkSchedule(samples[0] as ScheduleDefinition, 'q:one'))).toMatchObject({
    cron: '30 2 * * *',
    tz: 'Europe/London',
    startDate: '2026-01-01T00:00:00.000Z',
    grace: '1m30s',
    catchupWindow: '1d12h',
  });
  expect(writtenSchedule(checkSchedule(samples[3] as ScheduleDefinition, 'q:one'))).toEqual({
    every: '1m30s500ms',
    anchor: '2027-01-15T08:00:00.000Z',
    phase: '1s',
    missed: 'latest',
  });
});

test('exclusions are written as they are given', () => {
  const exclude = [
    '2026-12-25',
    { from: 0, to: 86_400_000 },
    { from: '2026-01-01', to: '2026-01-06' },
    { calendar: 'uk' },
  ];
  const stored = { cron: ['@daily'], missed: 'skip', exclude } as StoredPolicies;
  expect(writtenSchedule(stored)).toMatchObject({
    exclude: [
      '2026-12-25',
      { from: '1970-01-01T00:00:00.000Z', to: '1970-01-02T00:00:00.000Z' },
      { from: '2026-01-01', to: '2026-01-06' },
      { calendar: 'uk' },
    ],
  });
});

test('the zone is told even where it is the default', () => {
  expect(writtenSchedule({ cron: ['@daily'], missed: 'skip' } satisfies StoredPolicies).tz).toBe('UTC');
});

test('differences are told by option, whatever the order of keys', () => {
  expect(differences({ a: 1, b: { x: 1, y: [2] } }, { b: { y: [2], x: 1 }, a: 1 })).toEqual([]);
  expect(differences({ a: 1, b: 2 }, { a: 1, c: [3] })).toEqual([
    { option: 'b', from: 2, to: undefined },
    { option: 'c', from: undefined, to: [3] },
  ]);
});
