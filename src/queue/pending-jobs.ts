import { BUCKETS } from '../domain/buckets.js';
import { splitIdentity } from '../domain/ids.js';
import type { RecordState } from '../domain/states.js';
import type { JobScripts } from '../redis/job-scripts.js';
import { decodeRecord, type JobRecord } from '../redis/record.js';
import type { Shard } from '../redis/shard.js';
import { byTime, type Timer, type TimerSource } from './timer-order.js';

/** A job that waits in the timers. */
export interface PendingJob {
  jobId: string;
  record: JobRecord;
}

/** How many jobs a queue has in the timers, by the state of their record. */
export interface PendingCounts {
  scheduled: number;
  paused: number;
  parked: number;
  waiting: number;
  held: number;
  schedules: number;
}

/** Buckets read side by side. */
const LANES = 16;
const RECORDS_PAGE = 200;
const TIMERS_PAGE = { min: 16, max: 500 };

/**
 * The jobs of one queue in the timers, as lists. No index by queue exists: each list is a paged walk over the
 * buckets, so that no single call is long.
 */
export class PendingJobs {
  constructor(
    private readonly shard: Shard,
    private readonly scripts: JobScripts,
    private readonly queue: string,
  ) {}

  async counts(): Promise<PendingCounts> {
    const states = ['scheduled', 'paused', 'parked', 'waiting', 'held', 'schedules'] as const;
    const fields = states.map((state) => `${this.queue}:${state}`);
    await this.shard.ready();
    const counts = await this.shard.client.hmget(this.shard.keys.queues, ...fields);
    const [scheduled = 0, paused = 0, parked = 0, waiting = 0, held = 0, schedules = 0] = counts.map(
      (count) => Number(count ?? 0),
    );
    return { scheduled, paused, parked, waiting, held, schedules };
  }

  /**
   * Calls `visit` with each page of records, in no order; several at a time.
   * @param visit answers false to end the walk early.
   */
  async walk(
    filter: { kind?: 'job' | 'schedule'; states?: readonly RecordState[] },
    visit: (page: readonly { jobId: string; bytes: Buffer }[]) => Promise<boolean>,
  ): Promise<void> {
    let bucket = 0;
    let goesOn = true;
    const lane = async () => {
      while (goesOn && bucket < BUCKETS) {
        const mine = bucket++;
        let cursor = '0';
        do {
          const page = await this.scripts.list(mine, cursor, {
            ...filter,
            queue: this.queue,
            count: RECORDS_PAGE,
          });
          cursor = page.cursor;
          const found = page.found.map(({ identity, bytes }) => ({
            jobId: splitIdentity(identity).jobId,
            bytes,
          }));
          if (found.length > 0 && !(await visit(found))) goesOn = false;
        } while (goesOn && cursor !== '0');
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
  }

  /** As {@link walk}, over one-time jobs, decoded. A record that cannot be read is passed over: `doctor` names it. */
  async walkJobs(
    filter: { states?: readonly RecordState[] },
    visit: (page: readonly PendingJob[]) => Promise<boolean>,
  ): Promise<void> {
    await this.walk({ ...filter, kind: 'job' }, async (page) => {
      const jobs: PendingJob[] = [];
      for (const { jobId, bytes } of page) {
        const record = readJob(bytes);
        if (record !== undefined) jobs.push({ jobId, record });
      }
      return jobs.length === 0 || visit(jobs);
    });
  }

  /**
   * One source a bucket, and one for the jobs that no timer holds: paused ones, those of a broken queue, those that wait for others.
   * @param wanted how many timers will be asked for at most, to size the pages.
   * @param timedOnly leaves out what no timer holds.
   */
  async sources(latestFirst: boolean, wanted: number, timedOnly = false): Promise<TimerSource[]> {
    const counts = await this.counts();
    const untimed = counts.paused + counts.parked + counts.waiting + counts.held;
    if (counts.scheduled + untimed === 0) return [];
    const count = Math.min(TIMERS_PAGE.max, Math.max(TIMERS_PAGE.min, Math.ceil((wanted / BUCKETS) * 2)));
    const sources = Array.from({ length: BUCKETS }, (_, bucket) =>
      this.#bucketSource(bucket, latestFirst, count, counts.schedules > 0),
    );
    if (!timedOnly && untimed > 0) sources.push(this.#untimedSource(latestFirst));
    return sources;
  }

  #bucketSource(bucket: number, latestFirst: boolean, count: number, jobsOnly: boolean): TimerSource {
    let offset = 0;
    return async () => {
      while (offset !== -1) {
        const filter = { queue: this.queue, latestFirst, jobsOnly };
        const { next, timers } = await this.scripts.listDue(bucket, offset, count, filter);
        offset = next;
        if (timers.length > 0)
          return timers.map(({ identity, fireAt }) => ({ jobId: splitIdentity(identity).jobId, fireAt }));
      }
      return [];
    };
  }

  #untimedSource(latestFirst: boolean): TimerSource {
    let read = false;
    return async () => {
      if (read) return [];
      read = true;
      const timers: Timer[] = [];
      await this.walkJobs({ states: ['paused', 'parked', 'waiting', 'held'] }, async (page) => {
        for (const { jobId, record } of page) timers.push({ jobId, fireAt: record.at });
        return true;
      });
      return timers.sort(byTime(latestFirst));
    };
  }
}

function readJob(bytes: Buffer): JobRecord | undefined {
  try {
    const record = decodeRecord(bytes);
    return record.kind === 'job' ? record : undefined;
  } catch {
    return undefined;
  }
}
