import { nextFireTimes, type Queue, type ScheduleInfo } from 'carillon';
import type { Tally } from './tally.js';

const BULK = 1000;

/** Adds `count` one-time jobs, job i due at `dueAt(i)`, and expects each to run. */
export async function addJobs(
  queue: Queue,
  tally: Tally,
  group: string,
  id: string,
  count: number,
  dueAt: (index: number) => number,
): Promise<void> {
  for (let from = 0; from < count; from += BULK) {
    const jobs = Array.from({ length: Math.min(BULK, count - from) }, (_, i) => ({
      name: 'send',
      data: { to: `customer-${from + i}@example.com` },
      opts: { jobId: `${id}-${from + i}`, at: dueAt(from + i) },
    }));
    for (const job of await queue.addBulk(jobs))
      tally.expect(group, queue.name, job.id ?? '', job.scheduledFor);
  }
}

/** Expects each tick of a stored schedule up to `until` (ms). Its run's id in BullMQ is `<schedule id>@<ms>`. */
export function expectTicks(
  queue: Queue,
  tally: Tally,
  group: string,
  { id, next, definition }: ScheduleInfo,
  until: number,
): void {
  const { cron, every, tz } = definition;
  if (next === undefined || next > until) return;
  const timing = every === undefined ? { crons: cron, tz } : { every, anchor: next };
  let tick: number | undefined = next;
  while (tick !== undefined && tick <= until) {
    tally.expect(group, queue.name, `${id}@${tick}`, tick);
    tick = nextFireTimes(timing, { after: tick })[0]?.getTime();
  }
}
