import { BUCKETS } from '../domain/buckets.js';
import { asList, asNumber, asText } from './replies.js';
import type { Reply } from './script-runner.js';
import type { Shard } from './shard.js';
import { redisError, statusError } from './status.js';

/** Timers of one queue that are due in one minute. */
export interface DueCount {
  queue: string;
  /** The minute's start, ms. */
  at: number;
  count: number;
}

const TIMERS_A_PAGE = 1000;
const MINUTE = 60_000;

/** Counts timers by queue and minute, in short read-only calls. Schedules' pending ticks are timers too. */
export class DueCounts {
  constructor(private readonly shard: Shard) {}

  /** The scripts' clock, ms. */
  async now(): Promise<number> {
    return asNumber((await this.#page([0, 0, 0, 0, 1, '']))[0]);
  }

  /** How many timers each bucket has from one instant on and before another, in ms. */
  async sizes(from: number, to: number): Promise<number[]> {
    const { client, keys } = this.shard;
    const pipeline = client.pipeline();
    for (let bucket = 0; bucket < BUCKETS; bucket++) pipeline.zcount(keys.due(bucket), from, `(${to}`);
    try {
      const replies = (await pipeline.exec()) ?? [];
      return replies.map(([error, size]) => {
        if (error) throw error;
        return Number(size);
      });
    } catch (error) {
      throw redisError(error);
    }
  }

  /**
   * One bucket's timers from one instant on and before another, a page after the other.
   * @param queue only this one's; all if it is undefined.
   */
  async *ofBucket(
    bucket: number,
    from: number,
    to: number,
    queue: string | undefined,
  ): AsyncGenerator<DueCount> {
    let next = from;
    let skip = 0;
    do {
      const rest = await this.#page([bucket, next, skip, to, TIMERS_A_PAGE, queue ?? '']);
      next = asNumber(rest[1]);
      skip = asNumber(rest[2]);
      const list = asList(rest[3]);
      for (let i = 0; i < list.length; i += 3) {
        yield { queue: asText(list[i]), at: asNumber(list[i + 1]) * MINUTE, count: asNumber(list[i + 2]) };
      }
    } while (next >= 0);
  }

  async #page(args: (string | number)[]): Promise<Reply[]> {
    const { status, rest } = await this.shard.run('count-due', 'read-only', args);
    if (status !== 'OK') throw statusError(status);
    return rest;
  }
}
