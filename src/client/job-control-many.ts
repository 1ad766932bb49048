import { checkCall } from '../config/call-options.js';
import { checkInteger, checkOneOf, refuse } from '../config/check.js';
import { type Duration, parseDuration } from '../domain/durations.js';
import { isCarillonError } from '../domain/errors.js';
import type { TimerBackend } from '../queue/timer-backend.js';
import type { JobChange } from './job-change.js';
import { checkText, type JobControl } from './job-control.js';
import {
  checkJobFilter,
  IN_QUEUE,
  IN_TIMERS,
  type JobFilter,
  type JobPlace,
  jobMatcher,
  type QueuePlace,
  UNLESS_NAMED,
} from './job-filter.js';

export type JobVerb = 'cancel' | 'pause' | 'resume' | 'reschedule' | 'update';

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
  /** For `update`: what each of them is to be instead; needed there. */
  change?: JobChange<unknown, string>;
}

export interface ChangedJob {
  id: string;
  /** Empty for an id that was not met. */
  name: string;
  /** Where it stood before; `unknown` for an id that was not met. */
  state: JobPlace | 'unknown';
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

/** What each verb needs or takes besides. */
const TAKES: Readonly<Record<JobVerb, 'reason' | 'note' | 'delay' | 'change' | undefined>> = {
  cancel: 'reason',
  pause: 'note',
  resume: undefined,
  reschedule: 'delay',
  update: 'change',
};
/** The end of the options of a run that was dispatched from our tier. */
const MARK = /,"carillon":"[^"]*"}$/;
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
  async change(verb: JobVerb, given: JobFilter, options: ChangeJobsOptions): Promise<ChangedJobs> {
    checkOneOf('verb', verb, Object.keys(TAKES) as JobVerb[]);
    const filter = checkJobFilter(given);
    this.#checkOptions(verb, options);
    const limit = checkInteger('limit', options.limit ?? LIMIT, 1, MOST);
    const states = filter.states ?? (verb === 'resume' ? (['paused'] as const) : UNLESS_NAMED);
    const jobs = await this.#meant(filter, new Set(states), limit + 1);
    const more = jobs.length > limit;
    jobs.length = Math.min(jobs.length, limit);
    // Of a cut-off list nobody can tell what is missing.
    const missing = more ? [] : await this.#missing(filter, jobs);
    if (options.dryRun) return { jobs: [...jobs, ...missing], more };
    for (let from = 0; from < jobs.length; from += SLICE) {
      await Promise.all(jobs.slice(from, from + SLICE).map((job) => this.#changeOne(verb, job, options)));
    }
    return { jobs: [...jobs, ...missing], more };
  }

  #checkOptions(verb: JobVerb, options: ChangeJobsOptions): void {
    const own = ['reason', 'note', 'delay', 'change'] as const;
    checkCall(options, ['limit', ...own], ['dryRun']);
    for (const key of own) {
      if (options[key] !== undefined && key !== TAKES[verb])
        refuse(key, options[key], `has no meaning for ${verb}`, 'Leave it out.');
    }
    if (verb === 'reschedule') {
      if (options.delay === undefined)
        refuse('delay', undefined, 'is needed to reschedule', "Give a duration such as '2h'.");
      parseDuration(options.delay, { field: 'delay' });
    }
    if (verb === 'update') {
      if (options.change === undefined)
        refuse('change', undefined, 'is needed to update', 'Give { change: { name, data, opts } }.');
      this.control.checkChange(options.change);
    }
    checkText('reason', options.reason);
    checkText('note', options.note);
  }

  /** What a filter names and was not met, and why. */
  async #missing({ ids = [] }: JobFilter, met: readonly ChangedJob[]): Promise<ChangedJob[]> {
    const known = new Set(met.map(({ id }) => id));
    const rest = [...new Set(ids)].filter((id) => !known.has(id));
    const missing: ChangedJob[] = [];
    for (let from = 0; from < rest.length; from += SLICE) {
      const looked = rest.slice(from, from + SLICE).map(async (id): Promise<ChangedJob> => {
        const state = await this.backend.getState(id);
        const problem =
          state === 'unknown'
            ? 'nobody knows a job of this id'
            : `it is ${state}, which the filter does not mean`;
        return { id, name: '', state: 'unknown', done: false, problem };
      });
      missing.push(...(await Promise.all(looked)));
    }
    return missing;
  }

  async #changeOne(verb: JobVerb, job: ChangedJob, options: ChangeJobsOptions): Promise<void> {
    const { reason, note, delay = 0, change = {} } = options;
    try {
      const { where } = await {
        cancel: () => this.control.cancel(job.id, reason === undefined ? {} : { reason }),
        pause: () => this.control.pause(job.id, note === undefined ? {} : { note }),
        resume: () => this.control.resume(job.id, {}),
        reschedule: () => this.control.changeDelay(job.id, delay, {}),
        update: () => this.control.update(job.id, change, {}),
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
    const fits = jobMatcher(filter);
    const take = (id: string, name: string, state: JobPlace, isOurs: boolean): boolean => {
      if (!jobs.has(id) && jobs.size < most && fits(id, name, isOurs))
        jobs.set(id, { id, name, state, done: false });
      return jobs.size < most;
    };
    const ours = IN_TIMERS.filter((state) => states.has(state));
    if (ours.length > 0) {
      await this.backend.pending.walkJobs({ states: ours }, async (page) =>
        page.every(({ jobId, record }) => take(jobId, record.name, record.state as JobPlace, true)),
      );
    }
    for (const [place, lists] of Object.entries(IN_QUEUE)) {
      if (!states.has(place as QueuePlace)) continue;
      for (const list of lists) {
        await this.#walkList(list, (id, name, opts) => take(id, name, place as QueuePlace, MARK.test(opts)));
      }
    }
    return [...jobs.values()];
  }

  async #walkList(list: string, take: (id: string, name: string, opts: string) => boolean): Promise<void> {
    const { client } = this.backend.shard;
    for (let from = 0; ; from += PAGE) {
      const key = this.backend.toKey(list);
      const ids =
        list === 'wait' || list === 'active'
          ? await client.lrange(key, from, from + PAGE - 1)
          : await client.zrange(key, `${from}`, `${from + PAGE - 1}`);
      if (ids.length === 0) return;
      const pipeline = client.pipeline();
      for (const id of ids) pipeline.hmget(this.backend.toKey(id), 'name', 'opts');
      const hashes = (await pipeline.exec()) ?? [];
      for (const [i, id] of ids.entries()) {
        const [name, opts] = (hashes[i]?.[1] ?? []) as (string | null)[];
        // Without a hash it is a marker or an orphan.
        if (typeof name === 'string' && !take(id, name, opts ?? '')) return;
      }
    }
  }
}
