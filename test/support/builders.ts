import { OVERLAP_CODES } from '../../src/domain/schedule.js';
import type { ScheduleWrite } from '../../src/redis/schedule-scripts.js';
import type { SubmitItem } from '../../src/redis/submit-batch.js';

/** A job as the producer hands it to submit: a chosen id, due in an hour. `over` says what matters to the test. */
export function aJob(jobId: string, over: Partial<SubmitItem> = {}): SubmitItem {
  return {
    jobId,
    chosen: true,
    time: 3_600_000,
    relative: over.time === undefined,
    replace: false,
    window: 3_600_000,
    name: 'send',
    data: '{"to":"ann"}',
    opts: '',
    priority: 0,
    lifo: false,
    timestamp: undefined,
    dedup: false,
    deadline: false,
    ...over,
  };
}

/** `count` jobs named `<stem>0`, `<stem>1`, …; `over` may depend on the index. */
export function jobs(
  count: number,
  stem: string,
  over: (index: number) => Partial<SubmitItem>,
): SubmitItem[] {
  return Array.from({ length: count }, (_, index) => aJob(`${stem}${index}`, over(index)));
}

/** Runs may overlap: ticks go on although no worker ends them. */
export const OVERLAPPING = { overlap: OVERLAP_CODES.allow, maxConcurrent: 0 } as const;

/** A schedule as the client hands it to upsert: every minute, its first tick a minute after `now`. */
export function aSchedule(now: number, over: Partial<ScheduleWrite> = {}): ScheduleWrite {
  return {
    expected: undefined,
    asOf: now,
    anchor: now,
    keepTicks: false,
    cur: now + 60_000,
    curFire: now + 60_000,
    next: now + 120_000,
    nextFire: now + 120_000,
    ends: false,
    overdueTo: 0,
    overdueReason: 'edited',
    grace: 30_000,
    runTimeout: 0,
    missed: 0,
    overlap: 0,
    maxOpen: 32,
    maxConcurrent: 1,
    keptRows: 50,
    pauseAfter: 0,
    name: 'tick',
    data: '{}',
    opts: '',
    priority: 0,
    lifo: false,
    policies: '{"every":60000,"missed":"skip"}',
    ...over,
  };
}
