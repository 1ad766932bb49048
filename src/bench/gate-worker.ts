// A stock BullMQ worker in a process of its own, for a gated queue. Prints `ready`, and one JSON line for each line on its
// standard input: what it ran so far.
//
//   gate-worker <redis url>
import { Redis } from 'ioredis';
import { BullWorker } from '../queue/bullmq.js';
import { whenToldToEnd } from './bench-process.js';
import { RedisClock } from './redis-clock.js';

/** What the worker ran; times in ms of Redis' clock. */
export interface GateReport {
  ran: number;
  doubled: number;
  /** Starts of the jobs that stand out by a name of their own. */
  named: Record<string, number>;
}

const [url = ''] = process.argv.slice(2);
const client = new Redis(url);
const clock = await RedisClock.of(client);
const seen = new Set<string>();
const report: GateReport = { ran: 0, doubled: 0, named: {} };

const worker = new BullWorker(
  'q',
  async (job) => {
    const id = job.id ?? '';
    if (seen.has(id)) report.doubled++;
    seen.add(id);
    report.ran = seen.size;
    if (job.name !== 'n') report.named[job.name] = clock.now();
  },
  { connection: { url }, concurrency: 100, removeOnComplete: { count: 1000 } },
);
worker.on('error', (error) => console.error(error.message));
process.stdin.on('data', () => console.log(JSON.stringify(report)));
whenToldToEnd(async () => {
  await worker.close();
  clock.close();
  client.disconnect();
});
await worker.waitUntilReady();
console.log('ready');
