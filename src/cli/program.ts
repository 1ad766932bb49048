import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Command, CommanderError } from 'commander';
import { BENCHES } from '../bench/benches.js';
import { packageRoot } from '../support/package-root.js';
import { addApply } from './apply.js';
import { addBench } from './bench.js';
import { addCalendars } from './calendars.js';
import { addDead } from './dead.js';
import { addDev } from './dev.js';
import { addDoctor } from './doctor.js';
import { addExport } from './export.js';
import { exitCodeOf, tellFailure, usageError } from './failure.js';
import { addFence } from './fence.js';
import { addGates } from './gates.js';
import { addImport } from './import.js';
import { addInstances } from './instances.js';
import { addJobs } from './jobs.js';
import { addOutbox } from './outbox.js';
import { addPartitions } from './partitions.js';
import { addQuarantine } from './quarantine.js';
import { addQueues } from './queues.js';
import { addScheduler } from './scheduler.js';
import { addSchedules } from './schedules.js';
import { addWorkers } from './workers.js';

const EXAMPLES = `
Examples:
  carillon dev                                            a Redis, a scheduler and a worker to try things with
  carillon jobs add emails send --delay 10s               one job, in ten seconds
  carillon schedules next '30 2 * * *' --tz Europe/London when a cron expression fires
  carillon doctor                                         what is wrong with a namespace

Settings, the former over the latter: flags, environment (CARILLON_REDIS_URL or REDIS_URL, CARILLON_PREFIX,
CARILLON_NAMESPACE, CARILLON_CONFIG), the file of --config, defaults. Exit codes: 0 done, 1 failed, 2 wrong usage.`;

/**
 * The whole command line; each command loads what it needs when it runs.
 * @param benches what `bench` offers.
 */
export function createProgram(benches = BENCHES): Command {
  const program = new Command('carillon')
    .description('Timers for BullMQ: jobs and schedules that fire on time.')
    .version(version(), '-V, --version', 'print the version')
    .helpOption('-h, --help', 'say how a command is used')
    .helpCommand('help [command]', 'say how a command is used')
    .exitOverride()
    .configureHelp({ showGlobalOptions: true })
    // Failures are told once, by tellFailure.
    .configureOutput({ outputError: () => undefined })
    .option('--redis <url>', 'where Redis is (default: redis://127.0.0.1:6379)')
    .option('--prefix <text>', 'BullMQ’s key prefix (default: bull)')
    .option('--namespace <text>', 'where the timers stand (default: carillon, or carillon-<prefix>)')
    .option('--config <file>', 'a JSON file with settings')
    .option('--json', 'print one JSON document on standard output, and nothing else there')
    .addHelpText('after', EXAMPLES);
  addDev(program);
  addScheduler(program);
  addJobs(program);
  addSchedules(program);
  addQueues(program);
  addGates(program);
  addCalendars(program);
  addPartitions(program);
  addInstances(program);
  addFence(program);
  addDead(program);
  addWorkers(program);
  addOutbox(program);
  addQuarantine(program);
  addImport(program);
  addApply(program);
  addExport(program);
  addDoctor(program);
  addBench(program, benches);
  return program;
}

/** Runs one command line. @returns the exit code; nothing is thrown. */
export async function run(args: readonly string[], program = createProgram()): Promise<number> {
  try {
    await program.parseAsync([...args], { from: 'user' });
    return process.exitCode === undefined ? 0 : Number(process.exitCode);
  } catch (error) {
    if (error instanceof CommanderError) {
      if (error.exitCode === 0) return 0;
      // Help without being asked: it says more than a line would.
      if (error.code === 'commander.help') return 2;
      return fail(usageError(error.message), args);
    }
    return fail(error, args);
  }
}

function fail(error: unknown, args: readonly string[]): number {
  tellFailure(error, args.includes('--json'));
  return exitCodeOf(error);
}

function version(): string {
  const { version: own } = JSON.parse(readFileSync(join(packageRoot(), 'package.json'), 'utf8')) as {
    version: string;
  };
  return own;
}
