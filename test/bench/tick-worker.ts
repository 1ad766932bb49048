// A stock BullMQ worker in a process of its own, for the runs of schedules: their ids end in the scheduled time.
// Prints `ready`; is told its window as a line, `<from, ms> <to, ms> <runs to expect>`; prints one JSON line of what it
// saw once all have run, or when it is told to end.
//
//   tsx test/bench/tick-worker.ts <redis url>
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { percentile } from '../../src/bench/figures.js';
import { RedisClock } from '../../src/bench/redis-clock.js';

/** What the worker found of the ticks scheduled in its window; times in ms. */
export interface TickReport {
  runs: number;
  doubled: number;
  early: number;
  p50: number;
  p99: number;
  max: number;
}

/** How exactly the clocks of two processes are known, ms. */
const CLOCK_ERROR = 2;

const [url = ''] = process.argv.slice(2);
let [from, to, expected] = [Number.POSITIVE_INFINITY, 0, 0];
const client = new Redis(url);
const clock = await RedisClock.of(client);
const lags: number[] = [];
const seen = new Set<string>();
let doubled = 0;
let told = false;

function report(): void {
  if (told) return;
  told = true;
  const found: TickReport = {
    runs: seen.size,
    doubled,
    early: lags.filter((lag) => lag < -CLOCK_ERROR).length,
    p50: percentile(lags, 0.5),
    p99: percentile(lags, 0.99),
    max: percentile(lags, 1),
  };
  console.log(JSON.stringify(found));
}

const worker = new Worker(
  'q',
  async (job) => {
    const id = job.id ?? '';
    const scheduledFor = Number(/\d+$/.exec(id)?.[0]);
    if (scheduledFor < from || scheduledFor > to) return;
    if (seen.has(id)) doubled++;
    seen.add(id);
    lags.push(clock.now() - scheduledFor);
    if (seen.size === expected) report();
  },
  { connection: { url }, concurrency: 100, removeOnComplete: { count: 0 } },
);
worker.on('error', (error) => console.error(error.message));
await worker.waitUntilReady();
console.log('ready');
process.stdin.on('data', (line: Buffer) => {
  const words = line.toString().trim();
  if (words === 'report') return report();
  [from = 0, to = 0, expected = 0] = words.split(' ').map(Number);
});
process.once('SIGTERM', async () => {
  clock.close();
  await worker.close(true);
  await client.quit();
  process.stdin.destroy();
});
