import type { BenchRedis } from './bench-redis.js';
import { type BenchResult, interleaved } from './figures.js';
import { Producer } from './producers.js';

const DAY = 86_400_000;

/** Jobs a second in bulks of 1,000, two bulks under way, all due in a day. */
export async function submit(redis: BenchRedis, jobs: number, rounds: number): Promise<BenchResult> {
  const measured = await interleaved(rounds, 'jobsPerSecond', async (side) => {
    await redis.empty();
    const producer = new Producer(side, redis.url);
    try {
      const due = Date.now() + DAY;
      await producer.add(1000, () => due, { idPrefix: 'warm-' });
      const started = performance.now();
      await producer.add(jobs, () => due);
      return { jobsPerSecond: jobs / ((performance.now() - started) / 1000) };
    } finally {
      await producer.close();
    }
  });
  return { name: 'submit', jobs, rounds, ...measured };
}
