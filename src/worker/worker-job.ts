import { restBeforeRetry } from '../domain/backoff.js';
import type { JobJson, JobProgress, MinimalQueue } from '../queue/bullmq.js';
import { Job } from '../queue/job.js';

/** BullMQ's answer to how a failed attempt goes on: whether there is another, and after how many ms. */
type Retry = readonly [again: boolean, rest: number];
type Judge = (error: Error) => Promise<Retry>;

/** A job in our worker's hands: its rests between attempts are ours, with a cap. */
export class WorkerJob<
  Data = unknown,
  Result = unknown,
  Name extends string = string,
  Progress extends JobProgress = JobProgress,
> extends Job<Data, Result, Name, Progress> {
  static override fromJSON<D, R, N extends string>(
    queue: MinimalQueue,
    json: JobJson,
    jobId?: string,
  ): WorkerJob<D, R, N> {
    // biome-ignore lint/complexity/noThisInStatic: BullJob.fromJSON would make a BullJob, and not the subclass
    const job = super.fromJSON<D, R, N>(queue, json, jobId) as WorkerJob<D, R, N>;
    // Private to BullMQ's Job, and the only place where the rest is decided.
    const judge = Reflect.get(job, 'shouldRetryJob') as Judge;
    const capped: Judge = async (error) => restOf(job as Job, await judge.call(job, error));
    Object.defineProperty(job, 'shouldRetryJob', { value: capped, enumerable: false });
    return job;
  }
}

function restOf(job: Job, [again, given]: Retry): Retry {
  if (!again) return [false, 0];
  const { backoff } = job.opts;
  if (typeof backoff !== 'object') return [again, given];
  const rest = restBeforeRetry(backoff, job.attemptsMade + 1, Math.random);
  if (rest !== undefined) return [true, rest];
  // A strategy of the user's own: what is no time would be a retry that never comes, or one without a rest.
  return Number.isFinite(given) && given >= 0 ? [true, Math.floor(given)] : [false, 0];
}
