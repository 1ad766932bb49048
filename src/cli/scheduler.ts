import type { Command } from 'commander';
import type { SchedulerOptions } from '../config/scheduler-options.js';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import { durationArgument, integerArgument } from './arguments.js';
import { placeOf } from './connect.js';
import { addEtcdFlags } from './etcd-flags.js';
import { printJson, printLine } from './output.js';
import { schedulerSettings, settingsOf } from './settings.js';
import { untilSignal } from './signals.js';

const HELP = `
Without --etcd it leads, or stands by while another leads; with it, any number of instances share the work. It runs until
SIGTERM or SIGINT; then it finishes what it is doing and hands over what it leads. A second signal ends it at once. Exit code 0 after an orderly stop, 1 when it cannot start: a Redis that
does not answer yet is waited for, ten seconds.
Each option may also be set as CARILLON_TTL, CARILLON_POLL_INTERVAL, CARILLON_DUPLICATE_WINDOW,
CARILLON_MEMORY_HEADROOM, CARILLON_ALLOW_VOLATILE, CARILLON_TAKE_OVER, CARILLON_INSTANCE_ID, CARILLON_PARTITIONS,
CARILLON_SETTLE, CARILLON_ON_ETCD_LOSS, CARILLON_ON_DEAD, or under "scheduler" in the file of --config (ttl, pollInterval, …); those of etcd
as CARILLON_ETCD, CARILLON_ETCD_CA, …, or under "etcd" (hosts, tls, username, password, callTimeout).
CARILLON_LOG_LEVEL sets what is logged on standard error.

Examples:
  carillon scheduler
  carillon --redis redis://10.0.0.5:6379 scheduler --ttl 20s --instance-id eu-1
  carillon scheduler --etcd http://10.0.0.6:2379,http://10.0.0.7:2379 --partitions 32`;

/** `carillon scheduler`. */
export function addScheduler(program: Command): void {
  const command = program
    .command('scheduler')
    .description('move what is due into BullMQ’s queues, until it is told to stop')
    .option('--ttl <duration>', 'how long a leader that is gone keeps others out (default: 10s)')
    .option('--partitions <count>', 'with etcd: into how many the work is divided (default: 16)')
    .option(
      '--settle <duration>',
      'with etcd: what a newcomer waits before others hand over to it (default: 2s)',
    )
    .option('--on-etcd-loss <what>', 'stop or continue, while etcd cannot be reached (default: stop)')
    .option('--poll-interval <duration>', 'the longest sleep between two looks (default: 1s)')
    .option('--duplicate-window <duration>', 'how long an ended id answers `fired` (default: 1h)')
    .option('--memory-headroom <bytes>', 'records still dispatched at maxmemory (default: 8388608)')
    .option('--on-dead <url>', 'post each run that dies there, as JSON, at least once (default: nowhere)')
    .option('--allow-volatile', 'serve a Redis that may lose jobs')
    .option('--take-over', 'without etcd: take the leadership at the start, whoever holds it')
    .option('--instance-id <text>', 'this process among others (default: host, pid and a random part)')
    .addHelpText('after', HELP)
    .action(serve);
  addEtcdFlags(command);
}

interface Flags {
  ttl?: string;
  partitions?: string;
  settle?: string;
  onEtcdLoss?: string;
  pollInterval?: string;
  duplicateWindow?: string;
  memoryHeadroom?: string;
  allowVolatile?: boolean;
  takeOver?: boolean;
  instanceId?: string;
  onDead?: string;
}

async function serve(flags: Flags, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const options = schedulerSettings(checkFlags(flags), process.env, settings.scheduler);
  const { redis, prefix, namespace, etcd } = settings;
  const { Scheduler } = await import('../scheduler/scheduler.js');
  const scheduler = new Scheduler({
    ...(options as SchedulerOptions),
    redis,
    prefix,
    namespace,
    ...(etcd && { etcd }),
  });
  // Asked to stop while it starts, it stops as well.
  const stopping = untilSignal();
  const started = scheduler.start().catch(inFlags);
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

/** The library names its options; here they are flags. */
function inFlags(error: unknown): never {
  if (!isCarillonError(error, 'UNSAFE_REDIS') || error.field !== undefined) throw error;
  throw new CarillonError(error.code, error.message, {
    todo: 'Change the server, or give --allow-volatile if jobs may be lost.',
    cause: error,
  });
}

function checkFlags({
  ttl,
  settle,
  partitions,
  pollInterval,
  duplicateWindow,
  memoryHeadroom,
  ...others
}: Flags) {
  return {
    ...others,
    partitions: partitions && integerArgument(partitions, 'partitions', 1, 256),
    settle: settle && durationArgument(settle, 'settle'),
    ttl: ttl && durationArgument(ttl, 'ttl'),
    pollInterval: pollInterval && durationArgument(pollInterval, 'poll-interval'),
    duplicateWindow: duplicateWindow && durationArgument(duplicateWindow, 'duplicate-window'),
    memoryHeadroom:
      memoryHeadroom && integerArgument(memoryHeadroom, 'memory-headroom', 0, Number.MAX_SAFE_INTEGER),
  };
}
