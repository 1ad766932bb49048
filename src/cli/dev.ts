import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { Command } from 'commander';
import { CarillonError } from '../domain/errors.js';
import { checkQueueName } from '../domain/ids.js';
import type { RedisProcess } from '../support/redis-process.js';
import { integerArgument } from './arguments.js';
import type { DevFolder } from './dev-folder.js';
import { refuseArgument } from './failure.js';
import { printJson, printLine, remark } from './output.js';
import { type Settings, settingsOf } from './settings.js';
import { untilSignal } from './signals.js';

const HELP = `
A redis-server that keeps its data in .carillon/ of this folder, a scheduler, and a stock BullMQ worker in a process of
its own which prints each run. Started again it finds its data, and its port if that is free. Ctrl-C stops all three.
CARILLON_REDIS_SERVER names another redis-server than the one in PATH.

Examples:
  carillon dev
  carillon dev --port 6390 --queue emails --queue reports`;

const DEFAULT_QUEUE = 'demo';

/** `carillon dev`. */
export function addDev(program: Command): void {
  program
    .command('dev')
    .description('a Redis, a scheduler and a worker to try things with, in this folder')
    .option('--port <number>', 'the port of Redis (default: the last one, or a free one)')
    .option('--queue <name>', 'a queue that the worker works on; may be given again (default: demo)', collect)
    .addHelpText('after', HELP)
    .action(dev);
}

async function dev(flags: { port?: string; queue?: string[] }, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const queues = readQueues(flags.queue ?? settings.dev.queue ?? DEFAULT_QUEUE);
  const port = readPort(flags.port ?? settings.dev.port);
  const { DevFolder: Folder } = await import('./dev-folder.js');
  const folder = new Folder(process.cwd());
  const running = await folder.claim();
  if (running !== undefined) {
    const { url, pid } = running;
    if (settings.json) return printJson({ url, pid, alreadyRunning: true });
    printLine(`carillon dev runs here already (process ${pid})`);
    printExamples(url, settings, queues);
    return;
  }
  const stopping = untilSignal();
  try {
    await serve(folder, port, queues, settings, stopping.asked);
  } finally {
    folder.release();
    stopping.done();
  }
}

/** Starts all three, prints, waits, and stops them in the order that loses nothing. */
async function serve(
  folder: DevFolder,
  port: number | undefined,
  queues: string[],
  settings: Settings,
  asked: Promise<void>,
): Promise<void> {
  // Its log is for servers; here only what goes wrong is of interest.
  process.env.CARILLON_LOG_LEVEL ??= 'warn';
  const { startDevRedis } = await import('./dev-redis.js');
  const { Scheduler } = await import('../scheduler/scheduler.js');
  const { prefix, namespace } = settings;
  let redis: RedisProcess | undefined;
  let worker: ChildProcess | undefined;
  const ended: Promise<never>[] = [];
  let scheduler: InstanceType<typeof Scheduler> | undefined;
  try {
    redis = await startDevRedis(folder, port);
    ended.push(redis.died);
    scheduler = new Scheduler({ redis: redis.url, prefix, namespace });
    await scheduler.start();
    worker = startWorker(redis.url, prefix, queues, settings.json ? remark : printLine);
    ended.push(failsWith(worker, 'the worker'));
    if (settings.json)
      printJson({ url: redis.url, pid: process.pid, folder: folder.path, prefix, namespace, queues });
    else {
      printLine(`Redis      ${redis.url}   data in ${folder.path}`);
      printLine(`scheduler  namespace ${namespace}, prefix ${prefix}`);
      printLine(`worker     prints each run of ${queues.join(', ')}`);
      printExamples(redis.url, settings, queues);
      printLine();
    }
    await Promise.race([asked, ...ended]);
  } finally {
    for (const fault of ended) fault.catch(() => undefined);
    if (worker !== undefined) await stopChild(worker);
    await scheduler?.stop();
    await redis?.stop();
  }
  if (!settings.json) printLine('stopped; the data stays for the next start');
}

function startWorker(
  url: string,
  prefix: string,
  queues: readonly string[],
  print: (line: string) => void,
): ChildProcess {
  const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const script = fileURLToPath(new URL(`./dev-worker.${extension}`, import.meta.url));
  // In a group of its own: the terminal's Ctrl-C is for us alone, who stop it in its turn.
  const child = spawn(process.execPath, [...process.execArgv, script, url, prefix, ...queues], {
    stdio: ['pipe', 'pipe', 'inherit'],
    detached: true,
  });
  createInterface({ input: child.stdout }).on('line', print);
  return child;
}

async function failsWith(child: ChildProcess, what: string): Promise<never> {
  const [code, signal] = await once(child, 'exit');
  throw new CarillonError('CLOSED', `${what} ended by itself (${signal ?? `exit code ${code}`})`, {
    todo: 'Its output above says why; start `carillon dev` again.',
  });
}

async function stopChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
}

function printExamples(url: string, settings: Settings, [queue = DEFAULT_QUEUE]: readonly string[]): void {
  const flags = [
    settings.prefix === 'bull' ? '' : ` --prefix ${settings.prefix}`,
    settings.namespace === 'carillon' ? '' : ` --namespace ${settings.namespace}`,
  ].join('');
  printLine('');
  printLine('In another terminal:');
  printLine(`  export CARILLON_REDIS_URL=${url}`);
  printLine(`  carillon${flags} jobs add ${queue} hello --data '{"to":"you"}' --delay 5s`);
  printLine(`  carillon${flags} schedules upsert ${queue} tick --cron '*/10 * * * * *' --missed skip`);
  printLine(`  carillon${flags} doctor`);
}

function readQueues(given: unknown): string[] {
  const names = Array.isArray(given) ? given : [given];
  return [...new Set(names.map((name) => checkQueueName(name, 'queue')))];
}

function readPort(given: unknown): number | undefined {
  if (given === undefined) return undefined;
  if (typeof given !== 'string' && typeof given !== 'number') {
    refuseArgument('port', given, 'must be a number', 'Give one from 1 to 65535.');
  }
  return integerArgument(String(given), 'port', 1, 65_535);
}

function collect(value: string, known: string[] = []): string[] {
  return [...known, value];
}
