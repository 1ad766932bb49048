import type { Command } from 'commander';
import type { Bench } from '../bench/benches.js';
import { integerArgument } from './arguments.js';
import { refuseArgument } from './failure.js';
import { printLine } from './output.js';
import { settingsOf } from './settings.js';
import { untilSignal } from './signals.js';

type Benches = Readonly<Record<string, Bench>>;

const MOST_JOBS = 100_000_000;
const MOST_ROUNDS = 1000;

/** `carillon bench`. */
export function addBench(program: Command, benches: Benches): void {
  program
    .command('bench')
    .description('measure Carillon beside BullMQ’s own delayed jobs on this machine')
    .argument('<name>', Object.keys(benches).join(', '))
    .option('--jobs <number>', 'how many jobs')
    .option('--rounds <number>', 'how often each side is measured')
    .addHelpText('after', helpOf(benches))
    .action((name: string, flags: Flags, command: Command) => measure(benches, name, flags, command));
}

interface Flags {
  jobs?: string;
  rounds?: string;
}

async function measure(benches: Benches, name: string, flags: Flags, command: Command): Promise<void> {
  const { json } = settingsOf(command);
  const bench = Object.hasOwn(benches, name) ? benches[name] : undefined;
  if (bench === undefined) {
    return refuseArgument('name', name, `'${name}' is no bench`, `Give ${Object.keys(benches).join(', ')}.`);
  }
  const jobs = integerArgument(flags.jobs ?? String(bench.jobs), 'jobs', 1, MOST_JOBS);
  const rounds = integerArgument(flags.rounds ?? String(bench.rounds), 'rounds', 1, MOST_ROUNDS);
  const { BenchRedis } = await import('../bench/bench-redis.js');
  const stopping = untilSignal();
  const redis = await BenchRedis.start().catch((error: unknown) => {
    stopping.done();
    throw error;
  });
  try {
    const running = bench.run(redis, jobs, rounds);
    // Cut short by a signal, it fails for want of a server.
    running.catch(() => undefined);
    const result = await Promise.race([running, redis.died, stopping.asked]);
    if (result !== undefined) {
      const { benchTable } = await import('./bench-table.js');
      printLine(json ? JSON.stringify(result) : benchTable(result, bench.says, await redis.version()));
    }
  } finally {
    await redis.stop();
    stopping.done();
  }
  // What was cut short has processes and connections, which end with this one.
  if (stopping.wasAsked) process.exit(130);
}

function helpOf(benches: Benches): string {
  const list = Object.entries(benches).map(
    ([name, { says, jobs, rounds }]) => `  ${name.padEnd(10)} ${says}; ${jobs} jobs, ${rounds} rounds`,
  );
  return `
Benches:
${list.join('\n')}

Each starts a redis-server of its own in a temporary folder; yours is not touched, --redis and --prefix mean nothing here.
Carillon and BullMQ's own delayed jobs are measured in turns, figures are medians; with --json the last line is one object
{ name, jobs, rounds, carillon, bullmq, ratio }; failover has no other side, and prints the worst of its rounds.
CARILLON_REDIS_SERVER names another redis-server than the one in PATH.

Examples:
  carillon bench submit
  carillon bench herd --jobs 20000 --rounds 3 --json`;
}
