import type { Command } from 'commander';
import type { GateOptions } from '../client/gates.js';
import { formatDuration } from '../domain/durations.js';
import { stopsOf } from '../domain/gate.js';
import { compact } from '../domain/schedule.js';
import type { GateScripts } from '../redis/gate-scripts.js';
import { durationArgument, integerArgument } from './arguments.js';
import { withShard } from './connect.js';
import { plain, printJson, printLine, printTable, remark } from './output.js';
import { type Settings, settingsOf } from './settings.js';
import { stopsText } from './stops-text.js';

const HELP = `
A rate is runs a second (50), or runs in a duration (100/1m). What is not named is not limited; a hold stays.

Examples:
  carillon gates set emails --rate 50 --burst 100
  carillon gates set emails --max-waiting 2000 --group-rate 100/1m
  carillon gates hold emails --note 'provider is down'`;

const MOST = 1_000_000_000;

interface LimitFlags {
  rate?: string;
  burst?: string;
  maxWaiting?: string;
  groupRate?: string;
  groupBurst?: string;
  ageing?: string;
  unmarkedPriority?: string;
}

/** What limits the dispatch of a queue: `carillon gates …`. */
export function addGates(program: Command): void {
  const gates = program.command('gates').description('what limits the dispatch of queues, and what it holds');
  gates
    .command('list')
    .description('every gate, its limits and how many runs it holds')
    .action((_flags, command: Command) => show(command));
  gates
    .command('get <queue>')
    .description('the gate of one queue')
    .action((queue: string, _flags, command: Command) => show(command, queue));
  gates
    .command('set <queue>')
    .description('set the limits of a queue anew')
    .option('--rate <rate>', 'runs a second, or <max>/<duration>')
    .option('--burst <number>', 'how many at once after a quiet time (default: a second’s worth)')
    .option('--max-waiting <number>', 'no more while so many wait in the queue')
    .option('--group-rate <rate>', 'the same for each tenant')
    .option('--group-burst <number>', 'the same for each tenant')
    .option('--ageing <duration>', 'how much older goes before the next better priority (default: 60s)')
    .option('--unmarked-priority <number>', 'the priority of runs without one (default: 10)')
    .addHelpText('after', HELP)
    .action((queue: string, flags: LimitFlags, command: Command) =>
      change(command, queue, 'set the gate of', async (all) => void (await all.set(queue, limitsOf(flags)))),
    );
  gates
    .command('clear <queue>')
    .description('take the gate away: what it holds goes at once')
    .action((queue: string, _flags, command: Command) =>
      change(command, queue, 'cleared the gate of', (all) => all.clear(queue)),
    );
  gates
    .command('hold <queue>')
    .description('dispatch nothing of the queue until it is released')
    .option('--note <text>', 'why, for whoever looks')
    .action((queue: string, flags: { note?: string }, command: Command) =>
      change(command, queue, 'holds', async (all) => void (await all.hold(queue, flags.note))),
    );
  gates
    .command('release <queue>')
    .description('dispatch again')
    .action((queue: string, _flags, command: Command) =>
      change(command, queue, 'released', async (all) => void (await all.release(queue))),
    );
}

type GatesOf = InstanceType<typeof import('../client/gates.js').Gates>;

async function withGates<T>(settings: Settings, use: (gates: GatesOf) => Promise<T>): Promise<T> {
  const [{ Gates }, { GateScripts: Class }] = await Promise.all([
    import('../client/gates.js'),
    import('../redis/gate-scripts.js'),
  ]);
  return withShard(settings, (shard) => use(new Gates(new Class(shard) as GateScripts)));
}

async function show(command: Command, queue?: string): Promise<void> {
  const settings = settingsOf(command);
  const [all, everything] = await withGates(settings, async (gates) => {
    const list = await gates.list();
    return [
      queue === undefined ? list : list.filter((gate) => gate.queue === queue),
      await gates.everything(),
    ];
  });
  if (settings.json) return printJson({ gates: all, everything: everything ?? null });
  await printTable(
    ['queue', 'held', 'rate', 'burst', 'max waiting', 'tenant’s rate', 'ageing', 'unmarked', 'stopped'],
    all.map((gate) => [
      gate.queue,
      String(gate.held),
      rateText(gate.max, gate.duration),
      String(gate.burst ?? ''),
      String(gate.maxWaiting ?? ''),
      rateText(gate.groupMax, gate.groupDuration),
      gate.ageing === undefined ? '' : formatDuration(gate.ageing),
      String(gate.unmarked ?? ''),
      stopsText(stopsOf(gate, everything)),
    ]),
  );
  if (everything?.paused) remark(`everything is ${stopsText(stopsOf(everything))}`);
  if (all.length === 0) remark(queue === undefined ? 'no queue has a gate' : `${plain(queue)} has no gate`);
}

async function change(
  command: Command,
  queue: string,
  done: string,
  make: (gates: GatesOf) => Promise<void>,
): Promise<void> {
  const settings = settingsOf(command);
  const gate = await withGates(settings, async (gates) => {
    await make(gates);
    return gates.get(queue);
  });
  if (settings.json) return printJson({ queue, gate: gate ?? null });
  printLine(`${done} ${plain(queue)}`);
  if (gate?.paused) remark(`it is paused: \`carillon queues resume ${plain(queue)}\` lets it go on`);
}

function limitsOf(flags: LimitFlags): GateOptions {
  const count = (text: string | undefined, field: string) =>
    text === undefined ? undefined : integerArgument(text, field, 1, MOST);
  return compact({
    rate: flags.rate === undefined ? undefined : rateArgument(flags.rate, 'rate'),
    burst: count(flags.burst, 'burst'),
    maxWaiting: count(flags.maxWaiting, 'max-waiting'),
    groupRate: flags.groupRate === undefined ? undefined : rateArgument(flags.groupRate, 'group-rate'),
    groupBurst: count(flags.groupBurst, 'group-burst'),
    ageing: flags.ageing === undefined ? undefined : durationArgument(flags.ageing, 'ageing'),
    unmarkedPriority: count(flags.unmarkedPriority, 'unmarked-priority'),
  });
}

function rateArgument(text: string, field: string): NonNullable<GateOptions['rate']> {
  const [max = '', duration] = text.split('/', 2);
  if (duration === undefined) return integerArgument(max, field, 1, MOST);
  return { max: integerArgument(max, field, 1, MOST), duration: durationArgument(duration, field) };
}

function rateText(max: number | undefined, duration: number | undefined): string {
  if (max === undefined) return '';
  return duration === 1000 ? `${max}/s` : `${max} in ${duration} ms`;
}
