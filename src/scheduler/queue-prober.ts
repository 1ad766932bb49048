import type { Redis } from 'ioredis';
import { BUCKETS } from '../domain/buckets.js';
import type { LeaderScripts, OwnedRange } from '../redis/leader-scripts.js';
import type { Logger } from '../support/logger.js';
import { RepeatedTask } from '../support/repeated-task.js';
import type { DispatchReport } from './dispatch-report.js';

const MOVE = 200;

/**
 * Probes broken queues, each once a second; the first good probe moves their parked records back to their timers, a
 * batch a call.
 */
export class QueueProber extends RepeatedTask {
  /** Rounds since it leads. */
  #rounds = 0;

  constructor(
    private readonly client: Redis,
    private readonly queuesKey: string,
    private readonly scripts: LeaderScripts,
    private readonly owned: () => OwnedRange[],
    private readonly report: DispatchReport,
    logger: Logger,
  ) {
    super('queue prober', 1000, logger);
  }

  protected override async work(signal: AbortSignal): Promise<void> {
    const owned = this.owned();
    if (owned.length === 0) {
      this.#rounds = 0;
      return;
    }
    // What another process parked is found when it takes over, and in a slower turn.
    if (this.#rounds++ % 10 === 0) await this.#find();
    for (const queue of this.report.brokenQueues) {
      let from = { bucket: 0, offset: 0 };
      while (from.bucket < BUCKETS && !signal.aborted) {
        const reply = await this.scripts.unparkQueue(owned, queue, from, MOVE);
        if ('broken' in reply) break;
        from = reply.next;
      }
      if (from.bucket >= BUCKETS) this.report.cured(queue);
    }
  }

  async #find(): Promise<void> {
    let cursor = '0';
    do {
      const [next, fields] = await this.client.hscan(
        this.queuesKey,
        cursor,
        'MATCH',
        '*:broken',
        'COUNT',
        1000,
      );
      for (let i = 0; i < fields.length; i += 2)
        this.report.found((fields[i] as string).slice(0, -':broken'.length));
      cursor = next;
    } while (cursor !== '0');
  }
}
