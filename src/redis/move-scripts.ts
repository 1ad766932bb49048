import { bucketOf } from '../domain/buckets.js';
import { identityOf } from '../domain/ids.js';
import { asList, asNumber, asText } from './replies.js';
import { requestHash } from './request-id.js';
import type { Shard } from './shard.js';
import { statusError } from './status.js';
import { SubmitBatch, type SubmitItem } from './submit-batch.js';

/** A job of BullMQ's delayed set as the client read it, and what it becomes. */
export interface AdoptedJob {
  bullId: string;
  /** Its options as BullMQ stores them. */
  options: string;
  item: SubmitItem;
}

/**
 * What became of it: `MOVED`; `GONE`, no longer delayed, or due: BullMQ runs it; `CHANGED` since it was read;
 * `STARTED`, `FLOW`, `OWNED` by a Job Scheduler: it stays; `EXISTING`: the timers hold another job of its id;
 * `BROKEN`: a key of it has the wrong type.
 */
export type AdoptAnswer = 'MOVED' | 'GONE' | 'CHANGED' | 'STARTED' | 'FLOW' | 'OWNED' | 'EXISTING' | 'BROKEN';

/** Jobs of one call of {@link MoveScripts.adopt}: it stays under about 5 ms. */
export const ADOPT_JOBS = 50;

/** Moves between BullMQ's own sets and the timers. Each is one script: no crash leaves a job in both or in neither. */
export class MoveScripts {
  constructor(private readonly shard: Shard) {}

  /** Moves jobs of a queue's delayed set into the timers; an answer for each, in order. */
  async adopt(queue: string, jobs: readonly AdoptedJob[]): Promise<AdoptAnswer[]> {
    const calls: Promise<AdoptAnswer[]>[] = [];
    let from = 0;
    while (from < jobs.length) {
      const batch = new SubmitBatch(queue);
      const sources: [string, string][] = [];
      while (from < jobs.length && sources.length < ADOPT_JOBS) {
        const job = jobs[from] as AdoptedJob;
        if (!batch.add(job.item)) break;
        sources.push([job.bullId, job.options]);
        from++;
      }
      calls.push(this.#adoptBatch(queue, batch, sources));
    }
    return (await Promise.all(calls)).flat();
  }

  async #adoptBatch(
    queue: string,
    batch: SubmitBatch,
    sources: readonly [string, string][],
  ): Promise<AdoptAnswer[]> {
    const { status, rest } = await this.shard.run('adopt-delayed', 'deny-oom', [
      this.shard.base,
      queue,
      batch.packed,
      JSON.stringify(sources),
    ]);
    if (status !== 'OK') throw statusError(status, rest[0] === undefined ? undefined : asText(rest[0]));
    return asList(rest[1]).map((word) => asText(word) as AdoptAnswer);
  }

  /**
   * Moves a pending job into its queue's delayed set.
   * @param ver of the record that was read.
   * @param options what BullMQ is to store, `delay` and `jobId` included.
   * @throws CarillonError NOT_FOUND; CONFLICT when it was changed since, is paused or due; ID_IN_USE; QUEUE_BROKEN
   */
  async giveBack(
    queue: string,
    jobId: string,
    ver: number,
    options: string,
    requestId: string,
  ): Promise<void> {
    const identity = identityOf(queue, jobId);
    const { status, rest } = await this.shard.run('return-delayed', 'deny-oom', [
      this.shard.base,
      bucketOf(identity),
      identity,
      requestHash('giveBack', requestId),
      ver,
      options,
    ]);
    if (status !== 'OK') {
      throw statusError(status, rest[0] === undefined ? undefined : asText(rest[0]), 'jobId');
    }
  }

  /**
   * Removes a Job Scheduler of BullMQ; undefined when there is none.
   * @returns its next time in ms, and whether that run was still to come and went with it.
   */
  async dropJobScheduler(queue: string, id: string): Promise<{ next: number; pending: boolean } | undefined> {
    const { status, rest } = await this.shard.run('drop-job-scheduler', 'allow-oom', [
      this.shard.base,
      queue,
      id,
    ]);
    if (status === 'NOT_FOUND') return undefined;
    if (status !== 'OK') throw statusError(status);
    return { pending: asNumber(rest[0]) === 1, next: asNumber(rest[1]) };
  }
}
