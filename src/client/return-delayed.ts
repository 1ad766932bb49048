import { isCarillonError } from '../domain/errors.js';
import type { PendingJob } from '../queue/pending-jobs.js';
import { MoveScripts } from '../redis/move-scripts.js';
import { FLAGS, type JobRecord } from '../redis/record.js';
import { newRequestId } from '../redis/request-id.js';
import { redisError } from '../redis/status.js';
import type { LeftJob } from './adopt-delayed.js';
import type { Queue } from './queue.js';

/** What the moving of a queue's timers into BullMQ came to, or, of a dry run, would come to. */
export interface ReturnReport {
  moved: number;
  /** Fired meanwhile, or due: the scheduler hands them over. */
  due: number;
  left: number;
  /** The first of those that are left. */
  examples: LeftJob[];
}

const MOST_EXAMPLES = 20;
const TRIES = 3;

/**
 * Moves the one-time jobs of a queue's timers into BullMQ's delayed set: each in one step, so that no crash loses or
 * doubles one; a repeat finishes. Paused jobs stay: BullMQ has none.
 * @throws CarillonError QUEUE_BROKEN, OUT_OF_MEMORY, REDIS_UNAVAILABLE
 */
export async function returnDelayed(queue: Queue, options: { dryRun?: boolean } = {}): Promise<ReturnReport> {
  const report: ReturnReport = { moved: 0, due: 0, left: 0, examples: [] };
  const leave = (id: string, reason: string) => {
    report.left++;
    if (report.examples.length < MOST_EXAMPLES) report.examples.push({ id, reason });
  };
  try {
    const scripts = new MoveScripts(queue.backend.shard);
    await queue.backend.pending.walkJobs({}, async (page) => {
      for (const job of page) {
        const reason = whyNot(job.record);
        if (reason !== undefined) leave(job.jobId, reason);
        else if (options.dryRun) report.moved++;
        else {
          const left = await giveBack(queue, scripts, job);
          if (left === 'moved') report.moved++;
          else if (left === 'due') report.due++;
          else leave(job.jobId, left);
        }
      }
      return true;
    });
    return report;
  } catch (error) {
    throw redisError(error);
  }
}

/** `moved`, `due`, or why it stays. */
async function giveBack(queue: Queue, scripts: MoveScripts, job: PendingJob): Promise<string> {
  const { jobId } = job;
  let record: JobRecord | undefined = job.record;
  for (let attempt = 1; attempt <= TRIES; attempt++) {
    try {
      await scripts.giveBack(queue.name, jobId, record.ver, bullmqOptions(jobId, record), newRequestId());
      return 'moved';
    } catch (error) {
      if (!isCarillonError(error)) throw error;
      if (error.code === 'NOT_FOUND') return 'due';
      if (error.code === 'ID_IN_USE') return 'BullMQ holds another job under this id';
      if (error.code === 'BAD_RECORD') return error.message;
      if (error.code !== 'CONFLICT') throw error;
    }
    record = await queue.backend.pendingJob(jobId);
    if (record === undefined) return 'due';
    const reason = whyNot(record);
    if (reason !== undefined) return reason;
    const { now } = await queue.backend.scripts.get(queue.name, jobId);
    if (record.at <= now) return 'due';
  }
  return 'somebody changes it all the time';
}

function whyNot({ state, flags }: JobRecord): string | undefined {
  if (flags & FLAGS.deadline) return 'it has a deadline, which BullMQ does not know';
  return state === 'scheduled' ? undefined : `it is ${state}`;
}

/** The options as BullMQ itself stores those of a delayed job. */
function bullmqOptions(jobId: string, { opts, at, timestamp }: JobRecord): string {
  const own = opts === '' ? '{"attempts":0}' : opts;
  return `${own.slice(0, -1)},"delay":${Math.max(0, at - timestamp)},"jobId":${JSON.stringify(jobId)}}`;
}
