// The scheduler, in a process of its own. It moves what is due into the BullMQ queues.
//
//   CARILLON_REDIS_URL=redis://127.0.0.1:6379 npx tsx examples/quickstart/scheduler.ts
import { Scheduler } from 'carillon';

const scheduler = new Scheduler({ redis: process.env.CARILLON_REDIS_URL ?? 'redis://127.0.0.1:6379' });
await scheduler.start();
process.send?.({ ready: true });

process.once('SIGTERM', () => scheduler.stop());
process.once('disconnect', () => scheduler.stop());
