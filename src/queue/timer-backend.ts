import type { Redis } from 'ioredis';
import type { JobScripts } from '../redis/job-scripts.js';
import type { JobRecord } from '../redis/record.js';
import type { Shard } from '../redis/shard.js';
import {
  type BullQueueOptions,
  type JobJson,
  type JobState,
  type JobType,
  QueueKeys,
  RedisConnection,
  RedisQueueBackend,
} from './bullmq.js';
import { jobJsonOf } from './job-json.js';

/**
 * BullMQ's view of a queue whose delayed jobs wait in our timers. What it is asked about a job, it answers from the
 * timers while the job waits there, and from BullMQ otherwise. A job only ever moves from the timers into BullMQ, so
 * asking the timers first cannot miss it.
 */
export class TimerBackend extends RedisQueueBackend {
  constructor(
    connection: RedisConnection,
    name: string,
    opts: BullQueueOptions,
    readonly shard: Shard,
    readonly scripts: JobScripts,
  ) {
    const keys = new QueueKeys(opts.prefix);
    super(connection, name, keys.getKeys(name), (type) => keys.toKey(name, type), opts);
  }

  /** A backend on a client that the caller opened and closes. */
  static over(
    client: Redis,
    name: string,
    opts: BullQueueOptions,
    shard: Shard,
    scripts: JobScripts,
  ): TimerBackend {
    const connection = new RedisConnection(client, {
      shared: true,
      blocking: false,
      skipVersionCheck: opts.skipVersionCheck,
      skipWaitingForReady: opts.skipWaitingForReady,
    });
    return new TimerBackend(connection, name, opts, shard, scripts);
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

  override async getCounts(types: JobType[], delayedTimestamp?: number): Promise<number[]> {
    const pending = types.includes('delayed') ? await this.#pendingCount() : 0;
    const counts = await super.getCounts(types, delayedTimestamp);
    return counts.map((count, index) => (types[index] === 'delayed' ? count + pending : count));
  }

  async #pendingCount(): Promise<number> {
    const fields = ['scheduled', 'paused', 'parked'].map((state) => `${this.name}:${state}`);
    const counts = await this.shard.client.hmget(this.shard.keys.queues, ...fields);
    return counts.reduce((sum, count) => sum + Number(count ?? 0), 0);
  }
}
