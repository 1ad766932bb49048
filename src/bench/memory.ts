import type { BenchRedis } from './bench-redis.js';
import { type BenchResult, interleaved } from './figures.js';
import { Producer } from './producers.js';
import { until } from './until.js';

const DAY = 86_400_000;

/** Bytes of Redis' memory a pending job: ids of 24 characters, payload of 100 bytes, a queue of one letter. */
export async function memory(redis: BenchRedis, jobs: number, rounds: number): Promise<BenchResult> {
  const measured = await interleaved(rounds, 'bytesPerJob', async (side) => {
    await redis.empty();
    const producer = new Producer(side, redis.url);
    try {
      const due = Date.now() + DAY;
      // What is there once: scripts, settings, connections.
      await producer.add(1, () => due, { idPrefix: 'warm-' });
      const before = await settledBytes(redis);
      await producer.add(jobs, () => due);
      return { bytesPerJob: ((await settledBytes(redis)) - before) / jobs };
    } finally {
      await producer.close();
    }
  });
  return { name: 'memory', jobs, rounds, ...measured };
}

/** Memory in use but for buffers of connections and of the AOF, once hash tables have stopped growing. */
async function settledBytes(redis: BenchRedis): Promise<number> {
  let last = Number.NaN;
  let same = 0;
  await until(
    'the settling of memory',
    async () => {
      const bytes =
        (await redis.info('memory', 'used_memory')) -
        (await redis.info('memory', 'mem_clients_normal')) -
        (await redis.info('memory', 'mem_aof_buffer'));
      same = Math.abs(bytes - last) < 4096 ? same + 1 : 0;
      last = bytes;
      return same >= 5;
    },
    { timeout: 20_000, every: 100 },
  );
  return last;
}
