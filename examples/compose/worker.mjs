// A worker on BullMQ alone: it knows nothing of Carillon, and prints each run that it is given.
//
//   REDIS_URL=redis://127.0.0.1:16379 node examples/compose/worker.mjs emails reports
import { Worker } from 'bullmq';

const queues = process.argv.slice(2);
if (queues.length === 0) {
  console.error('Name the queues to work on: node worker.mjs <queue>...');
  process.exit(2);
}

const connection = { url: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379' };

const workers = queues.map((queue) => {
  const worker = new Worker(
    queue,
    async (job) => console.log(JSON.stringify({ queue, id: job.id, name: job.name, data: job.data })),
    { connection },
  );
  worker.on('error', (error) => console.error(`${queue}: ${error.message}`));
  return worker;
});
await Promise.all(workers.map((worker) => worker.waitUntilReady()));
console.log(`working on ${queues.join(', ')}`);

for (const signal of ['SIGINT', 'SIGTERM']) {
  // Finishes the runs in hand, takes no more.
  process.once(signal, () => Promise.all(workers.map((worker) => worker.close())));
}
