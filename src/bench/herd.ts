import type { BenchRedis } from './bench-redis.js';
import { type BenchResult, type Figures, interleaved, type Side } from './figures.js';
import { startScheduler, startWorker } from './processes.js';
import { Producer } from './producers.js';
import { tooSlow, until } from './until.js';

const DAY = 86_400_000;
/** Jobs that show how fast this machine stores them; they stay pending. */
const PROBED = 3000;

/**
 * Jobs due all at one instant: from then to the start of the last handler, with one stock worker; and how many a
 * second the scheduler dispatches when nobody takes them.
 */
export async function herd(redis: BenchRedis, jobs: number, rounds: number): Promise<BenchResult> {
  const measured = await interleaved(rounds, 'lastHandlerMs', async (side): Promise<Figures> => {
    const lastHandler = await timeToLastHandler(redis, side, jobs);
    if (side === 'bullmq') return { lastHandlerMs: lastHandler };
    return { lastHandlerMs: lastHandler, dispatchPerSecond: await dispatchRate(redis, jobs) };
  });
  return { name: 'herd', jobs, rounds, ...measured };
}

async function timeToLastHandler(redis: BenchRedis, side: Side, jobs: number): Promise<number> {
  await redis.empty();
  const scheduler = side === 'carillon' ? await startScheduler(redis.url) : undefined;
  const worker = await startWorker(redis.url, jobs);
  try {
    const due = await addHerd(redis, side, jobs);
    worker.setDue(due);
    return (await worker.report()).lastStart;
  } finally {
    await worker.stop();
    await scheduler?.stop();
  }
}

async function dispatchRate(redis: BenchRedis, jobs: number): Promise<number> {
  await redis.empty();
  const scheduler = await startScheduler(redis.url);
  try {
    const due = await addHerd(redis, 'carillon', jobs);
    await until('the dispatch', async () => (await redis.client.llen('bull:q:wait')) === jobs, {
      timeout: 600_000,
      every: 10,
    });
    return jobs / (((await redis.now()) - due) / 1000);
  } finally {
    await scheduler.stop();
  }
}

/** Adds the herd and returns when it is due; all of it is stored before that, on a slow or busy machine as well. */
async function addHerd(redis: BenchRedis, side: Side, jobs: number): Promise<number> {
  const producer = new Producer(side, redis.url);
  try {
    const probing = Math.floor(await redis.now());
    await producer.add(PROBED, () => probing + DAY, { idPrefix: 'probe-' });
    const each = ((await redis.now()) - probing) / PROBED;
    const due = Math.ceil((await redis.now()) + 2000 + 2 * each * jobs);
    await producer.add(jobs, () => due);
    if ((await redis.now()) > due - 500) {
      throw tooSlow(`${side} took too long to store ${jobs} jobs: the machine is too busy to measure`);
    }
    return due;
  } finally {
    await producer.close();
  }
}
