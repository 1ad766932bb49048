import type { Command } from 'commander';
import type { SchedulerOptions } from '../config/scheduler-options.js';
import { durationArgument, integerArgument } from './arguments.js';
import { placeOf } from './connect.js';
import { printJson, printLine } from './output.js';
import { schedulerSettings, settingsOf } from './settings.js';
import { untilSignal } from './signals.js';

const HELP = `
It leads, or stands by while another leads, until SIGTERM or SIGINT; then it finishes what it is doing and gives its
leadership back. A second signal ends it at once. Exit code 0 after an orderly stop, 1 when it cannot start: a Redis that
does not answer yet is waited for, ten seconds.
Each option may also be set as CARILLON_TTL, CARILLON_POLL_INTERVAL, CARILLON_DUPLICATE_WINDOW,
CARILLON_MEMORY_HEADROOM, CARILLON_ALLOW_VOLATILE, CARILLON_TAKE_OVER, CARILLON_INSTANCE_ID, or under "scheduler" in the
file of --config (ttl, pollInterval, …). CARILLON_LOG_LEVEL sets what is logged on standard error.

Examples:
  carillon scheduler
  carillon --redis redis://10.0.0.5:6379 scheduler --ttl 20s --instance-id eu-1`;

/** `carillon scheduler`. */
export function addScheduler(program: Command): void {
  program
    .command('scheduler')
    .description('move what is due into BullMQ’s queues, until it is told to stop')
    .option('--ttl <duration>', 'a heartbeat older than this is taken over (default: 10s)')
    .option('--poll-interval <duration>', 'the longest sleep between two looks (default: 1s)')
    .option('--duplicate-window <duration>', 'how long an ended id answers `fired` (default: 1h)')
    .option('--memory-headroom <bytes>', 'records still dispatched at maxmemory (default: 8388608)')
    .option('--allow-volatile', 'serve a Redis that may lose jobs')
    .option('--take-over', 'take the leadership at the start, whoever holds it')
    .option('--instance-id <text>', 'this process among others (default: host, pid and a random part)')
    .addHelpText('after', HELP)
    .action(serve);
}

interface Flags {
  ttl?: string;
  pollInterval?: string;
  duplicateWindow?: string;
  memoryHeadroom?: string;
  allowVolatile?: boolean;
  takeOver?: boolean;
  instanceId?: string;
}

async function serve(flags: Flags, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const options = schedulerSettings(checkFlags(flags), process.env, settings.scheduler);
  const { redis, prefix, namespace } = settings;
  const { Scheduler } = await import('../scheduler/scheduler.js');
  const scheduler = new Scheduler({ ...(options as SchedulerOptions), redis, prefix, namespace });
  // Asked to stop while it starts, it stops as well.
  const stopping = untilSignal();
  const started = scheduler.start();
  await Promise.race([started, stopping.asked]);
  if (!stopping.wasAsked) {
    if (!settings.json)
      printLine(`scheduler of ${namespace} serves ${placeOf(redis)}; SIGTERM or Ctrl-C stops it`);
    await stopping.asked;
  }
  started.catch(() => undefined);
  await scheduler.stop();
  stopping.done();
  const { popped, quarantined, repaired } = scheduler.readiness();
  if (settings.json) return printJson({ namespace, dispatched: popped, quarantined, repaired });
  printLine(`stopped; dispatched ${popped} runs, set ${quarantined} aside, repaired ${repaired}`);
}

function checkFlags({ ttl, pollInterval, duplicateWindow, memoryHeadroom, ...others }: Flags) {
  return {
    ...others,
    ttl: ttl && durationArgument(ttl, 'ttl'),
    pollInterval: pollInterval && durationArgument(pollInterval, 'poll-interval'),
    duplicateWindow: duplicateWindow && durationArgument(duplicateWindow, 'duplicate-window'),
    memoryHeadroom:
      memoryHeadroom && integerArgument(memoryHeadroom, 'memory-headroom', 0, Number.MAX_SAFE_INTEGER),
  };
}
