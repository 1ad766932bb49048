import { type Backoff, builtInDelay, fallbackDelay, isBuiltIn, strategyDelay } from '../domain/backoff.js';
import { type BackoffStrategy, type BullJob, UnrecoverableError } from './bullmq.js';

/** Whether BullMQ will ask how long to wait, unless the worker bounds the starts of a job. */
export function isRetried(job: BullJob<unknown, unknown>, error: Error): boolean {
  if (error instanceof UnrecoverableError || error.name === 'UnrecoverableError') return false;
  return job.attemptsMade + 1 < (job.opts.attempts ?? 0);
}

/**
 * ms until the next attempt of a job that failed, or -1 for none.
 * @param tell hears of a strategy that is missing, fails or gives no delay; the job's own delay counts then.
 */
export async function retryDelay(
  job: BullJob<unknown, unknown>,
  backoff: Backoff,
  error: Error,
  strategy: BackoffStrategy | undefined,
  tell: (trouble: Error) => void,
): Promise<number> {
  const failures = job.attemptsMade + 1;
  if (isBuiltIn(backoff)) return builtInDelay(backoff, failures, Math.random());
  const instead = (trouble: string, cause?: unknown): number => {
    const delay = fallbackDelay(backoff);
    const name = JSON.stringify(backoff.type);
    tell(
      new Error(`backoff strategy ${name} ${trouble}: job ${job.id} is retried after ${delay} ms`, { cause }),
    );
    return delay;
  };
  if (strategy === undefined) return instead('is not among the settings of this worker');
  try {
    const answer: unknown = await strategy(failures, backoff.type, error, job);
    return strategyDelay(backoff, answer) ?? instead(`gave ${String(answer)}, which is no delay`);
  } catch (cause) {
    return instead('failed', cause);
  }
}
