import type { Redis } from 'ioredis';
import { checkInteger, refuse } from '../config/check.js';
import { CarillonError } from '../domain/errors.js';
import { LAST_INSTANT } from '../domain/instant.js';
import type { JobScripts, RecordChange } from '../redis/job-scripts.js';
import type { JobRecord } from '../redis/record.js';
import { newRequestId } from '../redis/request-id.js';
import type { Shard } from '../redis/shard.js';
import {
  type BullQueueOptions,
  ErrorCode,
  type JobJson,
  type JobState,
  type JobType,
  type MinimalJob,
  PRIORITY_LIMIT,
  QueueKeys,
  RedisConnection,
  RedisQueueBackend,
  type RetryOptions,
} from './bullmq.js';
import { DelayedList } from './delayed-list.js';
import { jobJsonOf } from './job-json.js';
import { encodeData } from './payload.js';
import { isGone, PendingChanges } from './pending-changes.js';
import { PendingJobs } from './pending-jobs.js';

/** What a queue's backend stands on. */
export interface TimerBackendParts {
  client: Redis;
  shard: Shard;
  scripts: JobScripts;
  /** Bytes of UTF-8. */
  maxPayload: number;
}

/**
 * BullMQ's view of a queue whose delayed jobs wait in our timers. What it is asked about a job, it answers from the
 * timers while the job waits there, and from BullMQ otherwise. A job only ever moves from the timers into BullMQ, so
 * asking the timers first cannot miss it.
 */
export class TimerBackend extends RedisQueueBackend {
  readonly shard: Shard;
  readonly scripts: JobScripts;
  readonly pending: PendingJobs;
  readonly changes: PendingChanges;
  readonly delayed: DelayedList;
  readonly #maxPayload: number;

  /** The client stays the caller's to close. */
  constructor(
    name: string,
    opts: BullQueueOptions,
    { client, shard, scripts, maxPayload }: TimerBackendParts,
  ) {
    const connection = new RedisConnection(client, {
      shared: true,
      blocking: false,
      skipVersionCheck: opts.skipVersionCheck,
      skipWaitingForReady: opts.skipWaitingForReady,
    });
    const keys = new QueueKeys(opts.prefix);
    super(connection, name, keys.getKeys(name), (type) => keys.toKey(name, type), opts);
    this.shard = shard;
    this.scripts = scripts;
    this.pending = new PendingJobs(shard, scripts, name);
    this.changes = new PendingChanges(this.pending, scripts, name);
    this.delayed = new DelayedList(this.pending, client, keys.toKey(name, 'delayed'));
    this.#maxPayload = maxPayload;
  }

  /** What goes past `queue.add` would go past the timers, and its checks with it. */
  override addJob(): Promise<string> {
    return refuseDirect();
  }

  override addJobs(): Promise<string[]> {
    return refuseDirect();
  }

  override addJobToTransaction(): Promise<string> {
    return refuseDirect();
  }

  /** The record of a one-time job that waits in the timers. */
  async pendingJob(jobId: string): Promise<JobRecord | undefined> {
    const { record } = await this.scripts.get(this.name, jobId);
    return record?.kind === 'job' ? record : undefined;
  }

  override async getJobData(jobId: string): Promise<JobJson | undefined> {
    const record = await this.pendingJob(jobId);
    return record === undefined ? super.getJobData(jobId) : jobJsonOf(jobId, record);
  }

  override async getState(jobId: string): Promise<JobState | 'unknown'> {
    return (await this.pendingJob(jobId)) === undefined ? super.getState(jobId) : 'delayed';
  }

  override async isJobInState(state: string, jobId: string): Promise<boolean> {
    if ((await this.pendingJob(jobId)) !== undefined) return state === 'delayed';
    return super.isJobInState(state, jobId);
  }

  override async isFinished(jobId: string, returnValue = false): Promise<number | [number, string]> {
    if ((await this.pendingJob(jobId)) === undefined) return super.isFinished(jobId, returnValue);
    return returnValue ? [0, ''] : 0;
  }

  override async getCounts(types: JobType[], delayedTimestamp?: number): Promise<number[]> {
    const waiting = types.includes('delayed') ? await this.#countPending(delayedTimestamp) : 0;
    const counts = await super.getCounts(types, delayedTimestamp);
    return counts.map((count, index) => (types[index] === 'delayed' ? count + waiting : count));
  }

  /** Lists of delayed jobs hold the timers and BullMQ's own delayed jobs (retries), in one order of time. */
  override async getRanges(types: JobType[], start = 0, end = 1, asc = false): Promise<[string][]> {
    const others = types.filter((type) => type !== 'delayed');
    const ranges = others.length > 0 ? await super.getRanges(others, start, end, asc) : [];
    if (others.length === types.length) return ranges;
    const delayed = (await this.#delayedIds(start, end, asc)) as unknown as [string];
    return types.map((type) => (type === 'delayed' ? delayed : (ranges[others.indexOf(type)] as [string])));
  }

  /** Only the ids count to BullMQ's getters: each job is then read by itself. */
  override async getJobs(
    types: JobType[],
    start = 0,
    end = -1,
    asc = false,
  ): Promise<[string, string[]][][]> {
    const unique = [...new Set(types.map((type) => (type === 'waiting' ? 'wait' : type)))];
    const others = unique.filter((type) => type !== 'delayed');
    const found = others.length > 0 ? await super.getJobs(others, start, end, asc) : [];
    if (others.length === unique.length) return found;
    const ids = await this.#delayedIds(start, end, asc);
    const delayed = ids.map((id): [string, string[]] => [id, []]);
    return unique.map((type) => (type === 'delayed' ? delayed : (found[others.indexOf(type)] ?? [])));
  }

  override async updateData<T, R, N extends string>(job: MinimalJob<T, R, N>, data: T): Promise<void> {
    const text = encodeData(data, this.#maxPayload);
    if (await this.#update(job.id ?? '', { data: text })) return;
    await super.updateData(job, data);
  }

  override async changeDelay(jobId: string, delay: number): Promise<void> {
    const ms = checkInteger('delay', delay, 0, LAST_INSTANT);
    const change = this.scripts.reschedule(this.name, jobId, ms, true, newRequestId());
    if (await whilePending(change)) return;
    await super.changeDelay(jobId, ms);
  }

  override async changePriority(jobId: string, priority = 0, lifo = false): Promise<void> {
    checkInteger('priority', priority, 0, PRIORITY_LIMIT);
    if (await this.#update(jobId, { priority, lifo })) return;
    await super.changePriority(jobId, priority, lifo);
  }

  override async promote(jobId: string): Promise<void> {
    if (await whilePending(this.scripts.promote(this.name, jobId, newRequestId()))) return;
    await super.promote(jobId);
  }

  /** BullMQ's own delayed jobs first, `count` a call; then all that wait in the timers, in order of time. */
  override async promoteJobs(count = 1000): Promise<number> {
    if ((await super.promoteJobs(count)) !== 0) return 1;
    await this.changes.promoteAll(count);
    return 0;
  }

  override async retryFinishedJob<T, R, N extends string>(
    job: MinimalJob<T, R, N>,
    state: 'failed' | 'completed',
    opts?: RetryOptions,
  ): Promise<void> {
    if ((await this.pendingJob(job.id ?? '')) !== undefined) {
      throw this.finishedErrors({
        code: ErrorCode.JobNotInState,
        jobId: job.id,
        command: 'reprocessJob',
        state,
      });
    }
    await super.retryFinishedJob(job, state, opts);
  }

  override async remove(jobId: string, removeChildren: boolean): Promise<number> {
    const change = this.scripts.cancel(this.name, jobId, 'removed', newRequestId(), 'job');
    if (await whilePending(change)) return 1;
    return super.remove(jobId, removeChildren);
  }

  override async drain(delayed: boolean): Promise<void> {
    await super.drain(delayed);
    if (delayed) await this.changes.cancelJobs('drained');
  }

  override async cleanJobsByState(state: string, timestamp: number, limit = 0): Promise<string[]> {
    const cleaned = await super.cleanJobsByState(state, timestamp, limit);
    if (state !== 'delayed' || (limit > 0 && cleaned.length >= limit)) return cleaned;
    const most = limit > 0 ? limit - cleaned.length : Number.POSITIVE_INFINITY;
    const ours = await this.changes.cancelJobs('cleaned', (record) => record.timestamp <= timestamp, most);
    return [...cleaned, ...ours];
  }

  /** The timers first: BullMQ's own part ends by deleting the mark that the queue is paused. */
  override async obliterate(opts: { force: boolean; count: number }): Promise<number> {
    if (!opts.force && (await super.getCounts(['active'])).some((active) => active > 0)) {
      throw new Error('Cannot obliterate queue with active jobs');
    }
    await this.changes.cancelJobs('obliterated');
    await this.changes.deleteSchedules('obliterated');
    await this.shard.client.unlink(this.shard.keys.dedup(this.name));
    return super.obliterate(opts);
  }

  override async updateProgress(jobId: string, progress: Parameters<RedisQueueBackend['updateProgress']>[1]) {
    await this.#refusePending(jobId, 'progress');
    return super.updateProgress(jobId, progress);
  }

  override async addLog(jobId: string, logRow: string, keepLogs?: number): Promise<number> {
    await this.#refusePending(jobId, 'a log');
    return super.addLog(jobId, logRow, keepLogs);
  }

  override async getDeduplicationJobId(deduplicationId: string): Promise<string | null> {
    return (
      (await this.scripts.getDedup(this.name, deduplicationId)) ??
      super.getDeduplicationJobId(deduplicationId)
    );
  }

  override async removeDeduplicationKey(deduplicationId: string, jobId: string): Promise<number> {
    if (await this.scripts.dropDedup(this.name, deduplicationId, jobId)) return 1;
    return super.removeDeduplicationKey(deduplicationId, jobId);
  }

  override async deleteDeduplicationKey(deduplicationId: string): Promise<number> {
    const dropped = await this.scripts.dropDedup(this.name, deduplicationId);
    return (await super.deleteDeduplicationKey(deduplicationId)) || (dropped ? 1 : 0);
  }

  /** Only a one-time job: the same script edits a schedule's template. */
  async #update(jobId: string, change: RecordChange): Promise<boolean> {
    if ((await this.pendingJob(jobId)) === undefined) return false;
    return whilePending(this.scripts.update(this.name, jobId, change, newRequestId()));
  }

  async #countPending(before: number | undefined): Promise<number> {
    if (before !== undefined) return this.delayed.countBefore(before);
    const { scheduled, paused, parked, waiting, held } = await this.pending.counts();
    return scheduled + paused + parked + waiting + held;
  }

  /** A window of the merged list; negative places count from its end, as in Redis. */
  async #delayedIds(start: number, end: number, asc: boolean): Promise<string[]> {
    if (start >= 0 && end >= -1) return this.delayed.ids(start, end, asc);
    const [total = 0] = await this.getCounts(['delayed']);
    const from = start < 0 ? Math.max(0, total + start) : start;
    const to = end < -1 ? total + end : end;
    return end < -1 && to < from ? [] : this.delayed.ids(from, to, asc);
  }

  async #refusePending(jobId: string, what: string): Promise<void> {
    if ((await this.pendingJob(jobId)) === undefined) return;
    refuse(
      'jobId',
      jobId,
      `names a job that waits for its time and has no ${what} yet`,
      'Wait until it has fired.',
      'UNSUPPORTED',
    );
  }
}

/** Whether the change met a job in the timers; if not, it is BullMQ's to make. */
async function whilePending(change: Promise<unknown>): Promise<boolean> {
  try {
    await change;
    return true;
  } catch (error) {
    if (isGone(error)) return false;
    throw error;
  }
}

async function refuseDirect(): Promise<never> {
  throw new CarillonError('UNSUPPORTED', 'a job of a queue with timers is added by the queue', {
    field: 'addJob',
    todo: 'Use queue.add or queue.addBulk; for flows BullMQ’s FlowProducer.',
  });
}
