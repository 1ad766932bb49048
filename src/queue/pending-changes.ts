import { isCarillonError } from '../domain/errors.js';
import type { JobScripts } from '../redis/job-scripts.js';
import type { JobRecord } from '../redis/record.js';
import { newRequestId } from '../redis/request-id.js';
import type { PendingJobs } from './pending-jobs.js';
import { mergeTimers } from './timer-order.js';

/** Calls under way at once when a list of jobs is worked off. */
const IN_FLIGHT = 100;

/** Changes to all jobs of a queue that wait in the timers, one script call a job. */
export class PendingChanges {
  constructor(
    private readonly pending: PendingJobs,
    private readonly scripts: JobScripts,
    private readonly queue: string,
  ) {}

  /**
   * Cancels up to `most` of the one-time jobs that `wanted` picks.
   * @returns their ids.
   */
  async cancelJobs(
    reason: string,
    wanted: (record: JobRecord) => boolean = () => true,
    most = Number.POSITIVE_INFINITY,
  ): Promise<string[]> {
    const { schedules: _, ...jobs } = await this.pending.counts();
    // A walk reads the whole namespace, and BullMQ obliterates a long queue by many calls.
    if (Object.values(jobs).every((count) => count === 0)) return [];
    const cancelled: string[] = [];
    let taken = 0;
    await this.pending.walkJobs({}, async (page) => {
      const picked = page.filter(({ record }) => wanted(record)).slice(0, most - taken);
      taken += picked.length;
      const errors = await this.#each(picked, async ({ jobId }) => {
        await this.scripts.cancel(this.queue, jobId, reason, newRequestId(), 'job');
        cancelled.push(jobId);
      });
      if (errors.length > 0) throw errors[0];
      return taken < most;
    });
    return cancelled;
  }

  async deleteSchedules(reason: string): Promise<void> {
    if ((await this.pending.counts()).schedules === 0) return;
    await this.pending.walk({ kind: 'schedule' }, async (page) => {
      const errors = await this.#each(page, ({ jobId }) =>
        this.scripts.cancel(this.queue, jobId, reason, newRequestId(), 'schedule'),
      );
      if (errors.length > 0) throw errors[0];
      return true;
    });
  }

  /**
   * Puts all jobs that have a timer into their queue, in order of time, `count` at a time; not those that a person
   * paused. What cannot be promoted stays where it is.
   * @throws the first error of a job that stayed, after all others are promoted.
   */
  async promoteAll(count: number): Promise<void> {
    const stayed = new Map<string, unknown>();
    for (;;) {
      const upTo = stayed.size + count;
      const sources = await this.pending.sources(false, upTo, true);
      const timers = await mergeTimers(sources, false, upTo);
      const next = timers.filter(({ jobId }) => !stayed.has(jobId));
      if (next.length === 0) break;
      await this.#each(next, async ({ jobId }) => {
        try {
          await this.scripts.promote(this.queue, jobId, newRequestId());
        } catch (error) {
          if (!isGone(error)) stayed.set(jobId, error);
        }
      });
    }
    for (const error of stayed.values()) throw error;
  }

  /** Runs `act` for each, some at a time. A job that has left the timers meanwhile is no error. */
  async #each<T>(list: readonly T[], act: (one: T) => Promise<unknown>): Promise<unknown[]> {
    const errors: unknown[] = [];
    for (let from = 0; from < list.length; from += IN_FLIGHT) {
      const calls = list.slice(from, from + IN_FLIGHT).map((one) => act(one));
      for (const outcome of await Promise.allSettled(calls)) {
        if (outcome.status === 'rejected' && !isGone(outcome.reason)) errors.push(outcome.reason);
      }
    }
    return errors;
  }
}

/** The timers hold no job of this id: none at all, or a schedule. */
export function isGone(error: unknown): boolean {
  return isCarillonError(error, 'NOT_FOUND') || isCarillonError(error, 'UNSUPPORTED');
}
