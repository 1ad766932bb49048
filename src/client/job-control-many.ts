import { checkInteger, checkObject, checkOneOf, refuse } from '../config/check.js';
import { rejectUnknown } from '../config/unknown-options.js';
import type { Duration } from '../domain/durations.js';
import { isCarillonError } from '../domain/errors.js';
import type { RecordState } from '../domain/states.js';
import type { TimerBackend } from '../queue/timer-backend.js';
import type { JobControl } from './job-control.js';

/** Where a job may stand: in the timers by its record's state, or in BullMQ. */
export type JobPlace = Exclude<RecordState, 'suspended' | 'ended'> | QueuePlace;
type QueuePlace = 'dispatched' | 'retrying' | 'running';

/** Which one-time jobs of a queue are meant; all conditions must hold. */
export interface JobFilter {
  /**
   * Only jobs that stand there. `dispatched`: BullMQ has them, no worker does; `retrying`: they wait for another attempt;
   * `running`. Defaults to all but `running`.
   */
  states?: readonly JobPlace[];
  /** Only jobs of this name. */
  name?: string;
  /** Only jobs with this text in their id or name, in any case. */
  text?: string;
  /** Only these ids. */
  ids?: readonly string[];
}

export type JobVerb = 'cancel' | 'pause' | 'resume' | 'reschedule';

export interface ChangeJobsOptions {
  /** Tells what would be changed, and changes nothing. */
  dryRun?: boolean;
  /** At most so many jobs, 1 to 100,000. Defaults to 10,000. */
  limit?: number;
  /** For `cancel`: into the history. */
  reason?: string;
  /** For `pause`: onto each job. */
  note?: string;
  /** For `reschedule`: so long from now; needed there. */
  delay?: Duration;
}

export interface ChangedJob {
  id: string;
  name: string;
  state: JobPlace;
  done: boolean;
  /** The worker that runs it was asked. */
  asked?: true;
  /** Why it was not changed. */
  problem?: string;
}

export interface ChangedJobs {
  jobs: ChangedJob[];
  /** The filter means more jobs than `limit`. */
  more: boolean;
}

const IN_TIMERS = ['scheduled', 'paused', 'parked', 'waiting', 'held'] as const satisfies readonly JobPlace[];
/** BullMQ's lists of each place. */
const IN_QUEUE: Readonly<Record<QueuePlace, readonly string[]>> = {
  dispatched: ['wait', 'prioritized'],
  retrying: ['delayed'],
  running: ['active'],
};
const PLACES: readonly JobPlace[] = [...IN_TIMERS, 'dispatched', 'retrying', 'running'];
/** A filter that names no state does not stop what runs. */
const UNLESS_NAMED: readonly JobPlace[] = PLACES.filter((place) => place !== 'running');
const LIMIT = 10_000;
const MOST = 100_000;
const PAGE = 500;
/** Changes under way at once: a slice, so that nobody waits long behind them. */
const SLICE = 50;

/** Changes the jobs of a queue that a filter means, wherever they are, in slices. */
export class ManyJobs {
  constructor(
    private readonly backend: TimerBackend,
    private readonly control: JobControl,
  ) {}

  /** @throws CarillonError INVALID_OPTION; what a single job refuses stands with that job. */
  async change(verb: JobVerb, filter: JobFilter, options: ChangeJobsOptions): Promise<ChangedJobs> {
    checkOneOf('verb', verb, ['cancel', 'pause', 'resume', 'reschedule'] as const);
    rejectUnknown(checkObject('filter', filter), ['states', 'name', 'text', 'ids'], 'filter.');
    rejectUnknown(checkObject('options', options), ['dryRun', 'limit', 'reason', 'note', 'delay']);
    for (const state of filter.states ?? []) checkOneOf('filter.states', state, PLACES);
    const limit = checkInteger('limit', options.limit ?? LIMIT, 1, MOST);
    if (verb === 'reschedule' && options.delay === undefined) {
      refuse('delay', undefined, 'is needed to reschedule', "Give a duration such as '2h'.");
    }
    const states = filter.states ?? (verb === 'resume' ? (['paused'] as const) : UNLESS_NAMED);
    const jobs = await this.#meant(filter, new Set(states), limit + 1);
    const more = jobs.length > limit;
    jobs.length = Math.min(jobs.length, limit);
    if (options.dryRun) return { jobs, more };
    for (let from = 0; from < jobs.length; from += SLICE) {
      await Promise.all(jobs.slice(from, from + SLICE).map((job) => this.#changeOne(verb, job, options)));
    }
    return { jobs, more };
  }

  async #changeOne(verb: JobVerb, job: ChangedJob, options: ChangeJobsOptions): Promise<void> {
    const { reason, note, delay = 0 } = options;
    try {
      const { where } = await {
        cancel: () => this.control.cancel(job.id, reason === undefined ? {} : { reason }),
        pause: () => this.control.pause(job.id, note === undefined ? {} : { note }),
        resume: () => this.control.resume(job.id, {}),
        reschedule: () => this.control.changeDelay(job.id, delay, {}),
      }[verb]();
      job.done = true;
      if (where === 'worker') job.asked = true;
    } catch (error) {
      // Redis itself is not one job's problem.
      if (!isCarillonError(error) || error.code === 'REDIS_UNAVAILABLE') throw error;
      job.problem = error.message;
    }
  }

  async #meant(filter: JobFilter, states: ReadonlySet<JobPlace>, most: number): Promise<ChangedJob[]> {
    const jobs = new Map<string, ChangedJob>();
    const ids = filter.ids === undefined ? undefined : new Set(filter.ids);
    const text = filter.text?.toLowerCase();
    const take = (id: string, name: string, state: JobPlace): boolean => {
      const fits =
        (ids === undefined || ids.has(id)) &&
        (filter.name === undefined || filter.name === name) &&
        (text === undefined || id.toLowerCase().includes(text) || name.toLowerCase().includes(text));
      if (fits && !jobs.has(id) && jobs.size < most) jobs.set(id, { id, name, state, done: false });
      return jobs.size < most;
    };
    const ours = IN_TIMERS.filter((state) => states.has(state));
    if (ours.length > 0) {
      await this.backend.pending.walkJobs({ states: ours }, async (page) =>
        page.every(({ jobId, record }) => take(jobId, record.name, record.state as JobPlace)),
      );
    }
    for (const [place, lists] of Object.entries(IN_QUEUE)) {
      if (!states.has(place as QueuePlace)) continue;
      for (const list of lists) await this.#walkList(list, (id, name) => take(id, name, place as QueuePlace));
    }
    return [...jobs.values()];
  }

  async #walkList(list: string, take: (id: string, name: string) => boolean): Promise<void> {
    const { client } = this.backend.shard;
    for (let from = 0; ; from += PAGE) {
      const key = this.backend.toKey(list);
      const ids =
        list === 'wait' || list === 'active'
          ? await client.lrange(key, from, from + PAGE - 1)
          : await client.zrange(key, `${from}`, `${from + PAGE - 1}`);
      if (ids.length === 0) return;
      const pipeline = client.pipeline();
      for (const id of ids) pipeline.hget(this.backend.toKey(id), 'name');
      const names = (await pipeline.exec()) ?? [];
      for (const [i, id] of ids.entries()) {
        const name = names[i]?.[1];
        // Without a hash it is a marker or an orphan.
        if (typeof name === 'string' && !take(id, name)) return;
      }
    }
  }
}
