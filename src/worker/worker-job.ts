import { type Backoff, restBeforeRetry } from '../domain/backoff.js';
import { LONGEST_DURATION } from '../domain/durations.js';
import type { JobJson, JobProgress, MinimalQueue } from '../queue/bullmq.js';
import { Job } from '../queue/job.js';
import { tellWhole } from './thrown.js';

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
    const tell = (trouble: Error) => void queue.emit('error', trouble);
    const ours: Judge = (error) => judgeWell(job as Job, () => judge.call(job, error), tell);
    Object.defineProperty(job, 'shouldRetryJob', { value: ours, enumerable: false });
    return job;
  }

  /** BullMQ's step that keeps the error of an attempt; it decided about the next one by the error itself. */
  protected override updateStacktrace(error: Error): void {
    const told = tellWhole(error);
    this.failedReason = told.message;
    super.updateStacktrace({ name: error.name, ...told });
  }
}

/** The rest where a strategy gives none that is a time, and the job's options name none either, ms. */
const FALLBACK = 30_000;

/**
 * A strategy that throws, or that the worker does not have, would leave the run without a lock until it counts as stalled,
 * and an answer that is no time would end it: the fault of a strategy costs a run neither.
 */
async function judgeWell(
  job: Job,
  judge: () => Promise<Retry>,
  tell: (trouble: Error) => void,
): Promise<Retry> {
  const { backoff } = job.opts;
  const instead = (trouble: string, cause?: unknown): Retry => {
    const { type, delay = FALLBACK } = backoff as Backoff;
    const told = `backoff strategy ${JSON.stringify(type)} ${trouble}: run ${job.id} rests ${delay} ms instead`;
    tell(new Error(told, { cause }));
    return [true, delay];
  };
  try {
    const [again, given] = await judge();
    if (!again || typeof backoff !== 'object') return [again, given];
    const rest = restBeforeRetry(backoff, job.attemptsMade + 1, Math.random);
    if (rest !== undefined) return [true, rest];
    const isTime = typeof given === 'number' && given >= 0 && given <= LONGEST_DURATION;
    return isTime ? [true, Math.floor(given)] : instead(`gave ${String(given)}, which is no time to rest`);
  } catch (cause) {
    if (typeof backoff !== 'object') throw cause;
    return instead(
      `failed (${cause instanceof Error ? cause.message.split('\n')[0] : String(cause)})`,
      cause,
    );
  }
}
