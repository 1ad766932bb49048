import type { SubmitAnswer } from '../redis/submit-batch.js';
import {
  type BackoffStrategy,
  BullJob,
  type JobJson,
  type JobProgress,
  type MinimalQueue,
} from './bullmq.js';
import { takeMark } from './job-json.js';
import { isRetried, retryDelay } from './retry-delay.js';

/**
 * BullMQ's Job, of a queue with timers. Its methods work while the job waits for its time, and afterwards.
 */
export class Job<
  Data = unknown,
  Result = unknown,
  Name extends string = string,
  Progress extends JobProgress = JobProgress,
> extends BullJob<Data, Result, Name, Progress> {
  /** What `add` did; undefined on a job that was read, not added. */
  answer: SubmitAnswer | undefined = undefined;
  /** The time the job is or was due at, in ms since 1970. */
  scheduledFor = 0;

  static override fromJSON<D, R, N extends string>(
    queue: MinimalQueue,
    json: JobJson,
    jobId?: string,
  ): Job<D, R, N> {
    const marked = takeMark(json.opts);
    // biome-ignore lint/complexity/noThisInStatic: BullJob.fromJSON would make a BullJob, and not the subclass
    const job = super.fromJSON<D, R, N>(queue, json, jobId) as Job<D, R, N>;
    job.scheduledFor = marked ?? job.timestamp + (job.delay ?? 0);
    return job;
  }

  /**
   * As in BullMQ, but that a backoff has a cap, and that a strategy which is missing or broken costs no attempt: BullMQ
   * would leave the job without a lock until it counts as stalled.
   */
  override async moveToFailed<E extends Error>(
    error: E,
    token: string,
    fetchNext?: boolean,
  ): ReturnType<BullJob['moveToFailed']> {
    const { backoff } = this.opts;
    if (typeof backoff !== 'object' || !isRetried(this, error)) {
      return super.moveToFailed(error, token, fetchNext);
    }
    const { settings } = this.queue.opts as { settings?: { backoffStrategy?: BackoffStrategy } };
    const tell = (trouble: Error) => void this.queue.emit('error', trouble);
    const delay = await retryDelay(this, backoff, error, settings?.backoffStrategy, tell);
    // What BullMQ takes as it is, even -1 for no further attempt.
    this.opts.backoff = { type: 'fixed', delay };
    try {
      return await super.moveToFailed(error, token, fetchNext);
    } finally {
      this.opts.backoff = backoff;
    }
  }
}
