// A worker that is replaced by each deployment. SIGTERM makes it hand its run back; no attempt is used.
//
//   REDIS_URL=redis://127.0.0.1:6379 npx tsx examples/backfill/worker.ts
import { Worker } from 'carillon';
import { type Backfill, backfill } from './walk.js';

const worker = new Worker<{ orders: Backfill }>(
  'backfill',
  { orders: { effects: 'idempotent', handle: backfill } },
  {
    connection: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
    ...(process.env.PREFIX && { prefix: process.env.PREFIX }),
    // Longer than a page takes; the platform's own grace (Kubernetes' terminationGracePeriodSeconds) must be longer yet.
    shutdownGrace: '20s',
    // Six hours may see many workers killed. BullMQ counts that over the whole life of a run, and at the default, 1, the second
    // would be the end, whatever attempts are left.
    maxStalledCount: 100,
    ...JSON.parse(process.env.WORKER_OPTIONS ?? '{}'),
  },
);
worker.on('error', (error) => console.error(error.message));
worker.on('completed', (job) => console.log(`${job.id} is done`));
await worker.waitUntilReady();
console.log('working');

process.once('SIGTERM', async () => {
  await worker.close();
  console.log('handed back');
});
