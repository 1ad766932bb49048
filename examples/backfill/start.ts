// Starts the backfill. Started again, it finds the same job: `created`, then `fired`.
//
//   REDIS_URL=redis://127.0.0.1:6379 npx tsx examples/backfill/start.ts [rows] [ms a page]
import { Queue } from 'carillon';
import type { Backfill } from './walk.js';

// 2,160,000 rows in pages of 100, a second each: six hours.
const [rows = '2160000', pageTakes = '1000'] = process.argv.slice(2);

const queue = new Queue<Backfill>('backfill', {
  connection: process.env.REDIS_URL ?? 'redis://127.0.0.1:6379',
  ...(process.env.PREFIX && { prefix: process.env.PREFIX }),
});
// Deployments use none of the attempts: they are for failures.
const job = await queue.add(
  'orders',
  { rows: Number(rows), pageTakes: Number(pageTakes) },
  { jobId: 'orders-2024', attempts: 5, backoff: { type: 'exponential', delay: 30_000, jitter: 1 } },
);
console.log(job.answer);
await queue.close();
