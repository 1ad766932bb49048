import type { SchedulerOptions } from '../config/scheduler-options.js';
import { Scheduler } from '../scheduler/scheduler.js';

/**
 * One of several schedulers of `carillon dev`, in a process of its own. It says when it has started, and ends when it is
 * told to or when the process that started it is gone.
 */
const scheduler = new Scheduler(JSON.parse(process.argv[2] ?? '{}') as SchedulerOptions);

let stopping = false;
async function stop(): Promise<void> {
  if (stopping) return;
  stopping = true;
  await scheduler.stop();
  process.exit(0);
}

process.on('SIGTERM', stop);
process.stdin.on('end', stop);
process.stdin.resume();
try {
  await scheduler.start();
  process.stdout.write('started\n');
} catch (error) {
  process.stderr.write(`scheduler: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exit(1);
}
