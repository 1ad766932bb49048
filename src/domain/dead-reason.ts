/** Why a run is dead. */
export type DeadReason = 'attempts' | 'unrecoverable' | 'stalled' | 'timeout' | 'unhandled';

/** Why, by what BullMQ and our worker write down. Pure. */
export function deadReasonOf(run: {
  failedReason: string;
  attemptsMade: number;
  attempts: number;
}): DeadReason {
  // BullMQ's own words for a run whose workers died or blocked too often.
  if (run.failedReason.startsWith('job stalled more than')) return 'stalled';
  if (run.failedReason.startsWith('the attempt took longer than')) return 'timeout';
  if (run.failedReason.startsWith('no handler for jobs named')) return 'unhandled';
  return run.attemptsMade < Math.max(1, run.attempts) ? 'unrecoverable' : 'attempts';
}

/** Whether BullMQ removes a run in the step in which it dies, by its `removeOnFail`. Pure. */
export function removesDead(removeOnFail: unknown): boolean {
  if (typeof removeOnFail === 'object' && removeOnFail !== null)
    return (removeOnFail as { count?: unknown }).count === 0;
  return removeOnFail === true || removeOnFail === 0;
}

/** What is told of a run that has died. */
export interface DeadNotice {
  event: 'dead';
  namespace: string;
  queue: string;
  id: string;
  name: string;
  /** The job or schedule that fired. */
  source: string;
  reason: DeadReason;
  error: string;
  attempts: number;
  /** ms since 1970. */
  diedAt: number;
}

/** Hears of each run that has died, at least once: what it throws is tried again. */
export type DeadReceiver = (notice: DeadNotice) => Promise<void> | void;
