import type { Command } from 'commander';
import { checkQueueName } from '../domain/ids.js';
import { integerArgument } from './arguments.js';
import { DevChild } from './dev-child.js';
import type { DevFolder } from './dev-folder.js';
import { refuseArgument } from './failure.js';
import { printJson, printLine, remark } from './output.js';
import { resolveSettings, type Settings } from './settings.js';
import { untilSignal } from './signals.js';

const HELP = `
A redis-server that keeps its data in .carillon/ of this folder, a scheduler, and a stock BullMQ worker in a process of
its own which prints each run. Started again it finds its data, and its port if that is free. Ctrl-C stops all of them.
CARILLON_REDIS_SERVER and CARILLON_ETCD_SERVER name other binaries than those in PATH.
--instances starts several schedulers, each in a process of its own; with --etcd they share the work, in partitions, by
so many etcd members on loopback; without it one leads and the others stand by.

Examples:
  carillon dev
  carillon dev --port 6390 --queue emails --queue reports
  carillon dev --instances 3 --etcd 3 --partitions 16`;

const DEFAULT_QUEUE = 'demo';
const MOST_INSTANCES = 32;
const MOST_MEMBERS = 7;

interface DevFlags {
  port?: string;
  queue?: string[];
  instances?: string;
  etcd?: string;
  partitions?: string;
}

/** `carillon dev`. */
export function addDev(program: Command): void {
  program
    .command('dev')
    .description('a Redis, a scheduler and a worker to try things with, in this folder')
    .option('--port <number>', 'the port of Redis (default: the last one, or a free one)')
    .option('--queue <name>', 'a queue that the worker works on; may be given again (default: demo)', collect)
    .option('--instances <count>', 'how many schedulers (default: 1)')
    .option('--etcd <count>', 'how many etcd members, by which they share the work (default: none)')
    .option('--partitions <count>', 'with etcd: into how many partitions (default: 16)')
    .addHelpText('after', HELP)
    .action(dev);
}

async function dev(flags: DevFlags, command: Command): Promise<void> {
  // Its --etcd is a number of members, and no other etcd is its own.
  const settings = resolveSettings({ ...command.optsWithGlobals(), etcd: undefined }, process.env);
  const topology = readTopology(flags, settings);
  const { DevFolder: Folder } = await import('./dev-folder.js');
  const folder = new Folder(process.cwd());
  const running = await folder.claim();
  if (running !== undefined) {
    const { url, pid } = running;
    if (settings.json) return printJson({ url, pid, alreadyRunning: true });
    printLine(`carillon dev runs here already (process ${pid})`);
    printExamples(url, settings, topology);
    return;
  }
  const stopping = untilSignal();
  try {
    await serve(folder, topology, settings, stopping.asked);
  } finally {
    folder.release();
    stopping.done();
  }
}

/** What is started. */
interface Topology {
  port: number | undefined;
  queues: string[];
  instances: number;
  /** Members of etcd; 0 for none. */
  members: number;
  partitions: number;
}

function readTopology(flags: DevFlags, { dev: file }: Settings): Topology {
  const members = readCount(flags.etcd ?? file.etcd, 'etcd', MOST_MEMBERS) ?? 0;
  const partitions = readCount(flags.partitions ?? file.partitions, 'partitions', 256);
  if (partitions !== undefined && members === 0) {
    refuseArgument(
      'partitions',
      partitions,
      'are shared by etcd, and there is none',
      'Give --etcd 1, or 3, as well.',
    );
  }
  return {
    port: readCount(flags.port ?? file.port, 'port', 65_535),
    queues: readQueues(flags.queue ?? file.queue ?? DEFAULT_QUEUE),
    instances: readCount(flags.instances ?? file.instances, 'instances', MOST_INSTANCES) ?? 1,
    members,
    partitions: partitions ?? 16,
  };
}

/** Starts all of it, prints, waits, and stops it in the order that loses nothing. */
async function serve(
  folder: DevFolder,
  topology: Topology,
  settings: Settings,
  asked: Promise<void>,
): Promise<void> {
  // Its log is for servers; here only what goes wrong is of interest.
  process.env.CARILLON_LOG_LEVEL ??= 'warn';
  const { startDevRedis } = await import('./dev-redis.js');
  const { endLeftOverEtcd, startDevEtcd } = await import('./dev-etcd.js');
  const { startDevSchedulers } = await import('./dev-schedulers.js');
  const { prefix, namespace } = settings;
  const { port, queues, instances, members, partitions } = topology;
  /** In the order of starting; stopped in the reverse one. */
  const started: { died: Promise<never>; stop(): Promise<void> }[] = [];
  const keep = <T extends { died: Promise<never>; stop(): Promise<void> }>(one: T): T => {
    started.push(one);
    return one;
  };
  try {
    await endLeftOverEtcd(folder);
    const redis = keep(await startDevRedis(folder, port));
    const etcd = members === 0 ? undefined : keep(await startDevEtcd(folder, members));
    const place = { redis: redis.url, prefix, namespace };
    const cluster = etcd && { hosts: etcd.hosts, partitions };
    const schedulers = keep(await startDevSchedulers(place, instances, cluster));
    const print = settings.json ? remark : printLine;
    keep(new DevChild('dev-worker', [redis.url, prefix, ...queues], 'the worker', print));
    if (settings.json) {
      printJson({
        url: redis.url,
        pid: process.pid,
        folder: folder.path,
        prefix,
        namespace,
        queues,
        ...(schedulers.ids.length > 0 && { instances: schedulers.ids }),
        ...(cluster && { etcd: cluster.hosts, partitions }),
      });
    } else {
      printLine(`Redis      ${redis.url}   data in ${folder.path}`);
      if (etcd) printLine(`etcd       ${etcd.hosts.join(',')}`);
      const many = instances > 1 || etcd ? `${instances} of them, ` : '';
      const shares = etcd ? `, ${partitions} partitions` : '';
      printLine(`scheduler  ${many}namespace ${namespace}, prefix ${prefix}${shares}`);
      printLine(`worker     prints each run of ${queues.join(', ')}`);
      printExamples(redis.url, settings, topology, etcd?.hosts);
      printLine();
    }
    await Promise.race([asked, ...started.map(({ died }) => died)]);
  } finally {
    for (const { died } of started) died.catch(() => undefined);
    for (const one of started.reverse()) await one.stop();
  }
  if (!settings.json) printLine('stopped; the data stays for the next start');
}

function printExamples(
  url: string,
  settings: Settings,
  { queues: [queue = DEFAULT_QUEUE] }: Topology,
  etcd: readonly string[] = [],
): void {
  const flags = [
    settings.prefix === 'bull' ? '' : ` --prefix ${settings.prefix}`,
    settings.namespace === 'carillon' ? '' : ` --namespace ${settings.namespace}`,
  ].join('');
  printLine('');
  printLine('In another terminal:');
  printLine(`  export CARILLON_REDIS_URL=${url}`);
  if (etcd.length > 0) printLine(`  export CARILLON_ETCD=${etcd.join(',')}`);
  printLine(`  carillon${flags} jobs add ${queue} hello --data '{"to":"you"}' --delay 5s`);
  printLine(`  carillon${flags} schedules upsert ${queue} tick --cron '*/10 * * * * *' --missed skip`);
  if (etcd.length > 0) printLine(`  carillon${flags} partitions list`);
  printLine(`  carillon${flags} doctor`);
}

function readQueues(given: unknown): string[] {
  const names = Array.isArray(given) ? given : [given];
  return [...new Set(names.map((name) => checkQueueName(name, 'queue')))];
}

function readCount(given: unknown, name: string, most: number): number | undefined {
  if (given === undefined) return undefined;
  if (typeof given !== 'string' && typeof given !== 'number') {
    refuseArgument(name, given, 'must be a number', `Give one from 1 to ${most}.`);
  }
  return integerArgument(String(given), name, 1, most);
}

function collect(value: string, known: string[] = []): string[] {
  return [...known, value];
}
