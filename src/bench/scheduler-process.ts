// A scheduler in a process of its own: scheduler-process <redis url> [<more options as JSON>]
import type { SchedulerOptions } from '../config/scheduler-options.js';
import { Scheduler } from '../scheduler/scheduler.js';
import { whenToldToEnd } from './bench-process.js';

const [url = '', more = '{}'] = process.argv.slice(2);
const scheduler = new Scheduler({ ...(JSON.parse(more) as SchedulerOptions), redis: url });
whenToldToEnd(() => scheduler.stop());
await scheduler.start();
console.log('ready');
