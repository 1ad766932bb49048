import type { Redis } from 'ioredis';
import { BUCKETS } from '../domain/buckets.js';
import type { Keys } from './keys.js';
import { redisError } from './status.js';

/** What waits in a bucket, and whose it is. */
export interface BucketLoad {
  /** ms; undefined where nothing waits for its time. */
  head: number | undefined;
  /** Timers, due or not. */
  pending: number;
  /** The fence text. */
  fence: string | undefined;
}

/** Reads every bucket's head, its number of timers and its fence. `now`: Redis' TIME, ms. */
export async function readBucketLoads(
  client: Redis,
  keys: Keys,
): Promise<{ now: number; buckets: BucketLoad[] }> {
  const pipeline = client.pipeline();
  for (let bucket = 0; bucket < BUCKETS; bucket++) {
    pipeline.zrange(keys.due(bucket), '0', '0', 'WITHSCORES');
    pipeline.zcard(keys.due(bucket));
  }
  pipeline.hgetall(keys.fence).time();
  try {
    const replies = ((await pipeline.exec()) ?? []).map(([error, reply]) => {
      if (error) throw error;
      return reply;
    });
    const fences = replies[2 * BUCKETS] as Record<string, string>;
    const [seconds, micros] = (replies[2 * BUCKETS + 1] as (string | number)[]).map(Number);
    const buckets = Array.from({ length: BUCKETS }, (_, bucket): BucketLoad => {
      const [, score] = replies[2 * bucket] as string[];
      return {
        head: score === undefined ? undefined : Number(score),
        pending: Number(replies[2 * bucket + 1]),
        fence: fences[bucket],
      };
    });
    return { now: (seconds ?? 0) * 1000 + Math.floor((micros ?? 0) / 1000), buckets };
  } catch (error) {
    throw redisError(error);
  }
}
