import type { SubmitAnswer } from '../redis/submit-batch.js';
import { BullJob, type JobJson, type JobProgress, type MinimalQueue } from './bullmq.js';
import { takeMark } from './job-json.js';

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
}
