// A scheduler in a process of its own: scheduler-process <redis url>
import { Scheduler } from '../scheduler/scheduler.js';
import { whenToldToEnd } from './bench-process.js';

const scheduler = new Scheduler({ redis: process.argv[2] ?? '' });
whenToldToEnd(() => scheduler.stop());
await scheduler.start();
console.log('ready');
