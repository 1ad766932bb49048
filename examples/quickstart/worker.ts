// A worker on BullMQ alone, in a process of its own: of Carillon it imports only the benches' stopwatch. It tells its
// parent each run's id and when its handler started by Redis' clock.
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { RedisClock } from '../../src/bench/redis-clock.js';

/** What the parent hears: run ids and start times (ms), in order. */
export interface RunsMessage {
  queue: string;
  ids: string[];
  startedAt: number[];
}

const TELL_EVERY = 50;

const url = process.env.CARILLON_REDIS_URL ?? 'redis://127.0.0.1:6379';
const queues = process.argv.slice(2);
const client = new Redis(url);
const clock = await RedisClock.of(client);

const workers = queues.map((queue) => {
  let runs: RunsMessage = { queue, ids: [], startedAt: [] };
  const tell = () => {
    if (runs.ids.length === 0) return;
    process.send?.(runs);
    runs = { queue, ids: [], startedAt: [] };
  };
  setInterval(tell, TELL_EVERY).unref();
  const worker = new Worker(
    queue,
    async (job) => {
      runs.startedAt.push(clock.now());
      runs.ids.push(job.id ?? '');
    },
    { connection: { url }, concurrency: 100 },
  );
  worker.on('error', (error) => console.error(`worker of ${queue}: ${error.message}`));
  worker.on('closed', tell);
  return worker;
});
await Promise.all(workers.map((worker) => worker.waitUntilReady()));
process.send?.({ ready: true });

async function stop(): Promise<void> {
  await Promise.all(workers.map((worker) => worker.close()));
  clock.close();
  client.disconnect();
  if (process.connected) process.disconnect();
}
process.once('SIGTERM', stop);
process.once('disconnect', stop);
