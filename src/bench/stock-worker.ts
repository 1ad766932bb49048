// A stock BullMQ worker in a process of its own, for a number of jobs whose due times follow one rule. Prints `ready`,
// then, when all have run, one JSON line.
//
//   stock-worker <redis url> <count> <ms between dues>
//
// A line on its standard input says when the first job is due, in ms.
import { Redis } from 'ioredis';
import { BullWorker } from '../queue/bullmq.js';
import { whenToldToEnd } from './bench-process.js';
import { percentile } from './figures.js';
import { RedisClock } from './redis-clock.js';

/** What the worker found; times in ms. */
export interface WorkerReport {
  p50: number;
  p99: number;
  max: number;
  /** From the first due time to the start of the last handler. */
  lastStart: number;
}

const [url = '', count, between] = process.argv.slice(2);
const expected = Number(count);
const client = new Redis(url);
const clock = await RedisClock.of(client);
const lags: number[] = [];
const seen = new Set<string>();
let firstDue = 0;
let lastStart = 0;

const worker = new BullWorker(
  'q',
  async (job) => {
    const startedAt = clock.now();
    const id = job.id ?? '';
    if (seen.has(id)) throw new Error(`job ${id} ran twice`);
    seen.add(id);
    // The id ends with the job's number.
    lags.push(startedAt - (firstDue + Number(id.slice(-9)) * Number(between)));
    lastStart = Math.max(lastStart, startedAt);
    if (seen.size === expected) {
      const report: WorkerReport = {
        p50: percentile(lags, 0.5),
        p99: percentile(lags, 0.99),
        max: percentile(lags, 1),
        lastStart: lastStart - firstDue,
      };
      console.log(JSON.stringify(report));
    }
  },
  { connection: { url }, concurrency: 100 },
);
worker.on('error', (error) => console.error(error.message));
worker.on('failed', (_job, error) => {
  console.error(error.message);
  process.exit(1);
});
// The due time is settled later than the start.
process.stdin.on('data', (line: Buffer) => {
  firstDue = Number(line.toString());
});
whenToldToEnd(async () => {
  await worker.close();
  clock.close();
  client.disconnect();
});
await worker.waitUntilReady();
console.log('ready');
