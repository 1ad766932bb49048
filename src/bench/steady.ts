import type { BenchRedis } from './bench-redis.js';
import { type BenchResult, interleaved } from './figures.js';
import { startScheduler, startWorker } from './processes.js';
import { Producer } from './producers.js';

const PER_SECOND = 50;
const LEAD = 3000;

/** The lag of 50 jobs a second, stored ahead, from due time to the start of the handler in one stock worker. */
export async function steady(redis: BenchRedis, jobs: number, rounds: number): Promise<BenchResult> {
  const between = 1000 / PER_SECOND;
  const measured = await interleaved(rounds, 'lagP99Ms', async (side) => {
    await redis.empty();
    const scheduler = side === 'carillon' ? await startScheduler(redis.url) : undefined;
    const worker = await startWorker(redis.url, jobs, between);
    const producer = new Producer(side, redis.url);
    try {
      const first = Math.ceil(await redis.now()) + LEAD;
      worker.setDue(first);
      await producer.add(jobs, (i) => first + i * between);
      const { p50, p99, max } = await worker.report();
      return { lagP50Ms: p50, lagP99Ms: p99, lagMaxMs: max };
    } finally {
      await producer.close();
      await worker.stop();
      await scheduler?.stop();
    }
  });
  return { name: 'steady', jobs, rounds, ...measured };
}
