import type { Redis } from 'ioredis';
import type { PendingJobs } from './pending-jobs.js';
import { mergeTimers, type Timer, type TimerSource } from './timer-order.js';

const PAGE = 500;
/** BullMQ's scores are time · 4096 + a counter. */
const PER_MS = 4096;

/**
 * The delayed jobs of a queue in one order of time: those in our timers, and BullMQ's own, which are retries and what
 * plain BullMQ producers added.
 */
export class DelayedList {
  constructor(
    private readonly pending: PendingJobs,
    private readonly client: Redis,
    private readonly bullmqKey: string,
  ) {}

  /** The ids from place `start` to `end`, both included; an end of -1 is the last. */
  async ids(start: number, end: number, asc: boolean): Promise<string[]> {
    const count = end === -1 ? Number.POSITIVE_INFINITY : end + 1;
    if (count <= start) return [];
    const sources = await this.pending.sources(!asc, count);
    const timers = await mergeTimers([...sources, this.#bullmqSource(!asc)], !asc, count);
    return timers.slice(start).map(({ jobId }) => jobId);
  }

  /** How many of the jobs in our timers are due before `ms`. */
  async countBefore(ms: number): Promise<number> {
    let count = 0;
    const sources = await this.pending.sources(false, Number.POSITIVE_INFINITY);
    await Promise.all(
      sources.map(async (read) => {
        for (let page = await read(); page.length > 0; page = await read()) {
          const early = page.filter(({ fireAt }) => fireAt < ms);
          count += early.length;
          if (early.length < page.length) return;
        }
      }),
    );
    return count;
  }

  #bullmqSource(latestFirst: boolean): TimerSource {
    let offset = 0;
    return async () => {
      const [from, to] = [`${offset}`, `${offset + PAGE - 1}`];
      offset += PAGE;
      const list = latestFirst
        ? await this.client.zrevrange(this.bullmqKey, from, to, 'WITHSCORES')
        : await this.client.zrange(this.bullmqKey, from, to, 'WITHSCORES');
      const timers: Timer[] = [];
      for (let i = 0; i < list.length; i += 2) {
        timers.push({ jobId: list[i] ?? '', fireAt: Math.floor(Number(list[i + 1]) / PER_MS) });
      }
      return timers;
    };
  }
}
