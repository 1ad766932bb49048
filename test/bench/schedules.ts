import { setTimeout as rest } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Queue as BullQueue } from 'bullmq';
import type { BenchRedis } from '../../src/bench/bench-redis.js';
import {
  type BenchResult,
  type Figures,
  interleaved,
  percentile,
  type Side,
} from '../../src/bench/figures.js';
import { startScheduler } from '../../src/bench/processes.js';
import { Queue } from '../../src/index.js';
import { spawnNode } from '../support/node-process.js';
import { DispatchLog } from './dispatch-log.js';
import type { TickReport } from './tick-worker.js';

/** ms between ticks, and how many are counted; a small run only shows that the bench works. */
const LARGE = { every: 5000, pattern: '*/5 * * * * *', periods: 6 };
const SMALL = { every: 1000, pattern: '* * * * * *', periods: 3 };
/** Schedules that are written at once. */
const IN_FLIGHT = 200;

/**
 * So many schedules that all fire together every five seconds, and one stock worker: how many ticks come into the queue
 * and how late, and how many have run by then and how late.
 */
export async function schedules(redis: BenchRedis, jobs: number, rounds: number): Promise<BenchResult> {
  const measured = await interleaved(rounds, 'lagP99Ms', (side) => measure(redis, side, jobs));
  return { name: 'schedules', jobs, rounds, ...measured };
}

async function measure(redis: BenchRedis, side: Side, count: number): Promise<Figures> {
  const { every, pattern, periods } = count >= 1000 ? LARGE : SMALL;
  await redis.empty();
  const scheduler = side === 'carillon' ? await startScheduler(redis.url) : undefined;
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const script = fileURLToPath(new URL(`tick-worker.${extension}`, import.meta.url));
  const worker = spawnNode(script, [redis.url]);
  await worker.waitForLine('ready');
  const connection = { url: redis.url };
  const log = new DispatchLog(redis.url);
  const queue = side === 'carillon' ? new Queue('q', { connection }) : new BullQueue('q', { connection });
  try {
    const started = performance.now();
    for (let from = 0; from < count; from += IN_FLIGHT) {
      const ids = Array.from({ length: Math.min(IN_FLIGHT, count - from) }, (_, i) => `s${from + i}`);
      await Promise.all(
        ids.map((id) => queue.upsertJobScheduler(id, { pattern, tz: 'UTC' }, { name: 'tick' })),
      );
    }
    const created = performance.now() - started;
    // The tick that comes next may meet schedules that were only just made.
    const first = (Math.ceil((await redis.now()) / every) + 1) * every;
    const last = first + (periods - 1) * every;
    const expected = count * periods;
    worker.writeLine(`${first} ${last} ${expected}`);
    log.start(first, last);
    const report = worker.waitForLine(/^\{/, 120_000);
    // A tick that is later than two periods counts as one that did not run.
    const late = rest(last + 2 * every - (await redis.now())).then(() => worker.writeLine('report'));
    const { runs, doubled, early, p50, p99, max } = JSON.parse(await report) as TickReport;
    if (side === 'carillon' && doubled + early > 0) throw new Error(`${doubled} doubled, ${early} early`);
    await late;
    await log.stop();
    return {
      dispatchedPercent: (log.lags.length / expected) * 100,
      dispatchP50Ms: percentile(log.lags, 0.5),
      dispatchP99Ms: percentile(log.lags, 0.99),
      firedPercent: (runs / expected) * 100,
      lagP50Ms: p50,
      lagP99Ms: p99,
      lagMaxMs: max,
      upsertsPerSecond: (count / created) * 1000,
    };
  } finally {
    await log.stop();
    await queue.close();
    await worker.stop(60_000);
    await scheduler?.stop();
  }
}
