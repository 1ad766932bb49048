// A scheduler in a process of its own: tsx test/bench/scheduler-process.ts <redis url>
import { Scheduler } from '../../src/index.js';

const scheduler = new Scheduler({ redis: process.argv[2] ?? '' });
await scheduler.start();
console.log('ready');
process.once('SIGTERM', () => scheduler.stop());
