import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { setTimeout as pause } from 'node:timers/promises';
import { CarillonError } from '../domain/errors.js';
import { type DevFolder, urlOf } from './dev-folder.js';

/** The private Redis of `carillon dev`. */
export interface DevRedis {
  readonly url: string;
  /** Rejects when the server ends without being stopped. */
  readonly died: Promise<never>;
  stop(): Promise<void>;
}

/** ms until the server must answer; a large append-only file takes its time. */
const STARTS = 60_000;
const LOOK_AGAIN = 50;

/**
 * Starts a redis-server on the folder's data: every write is in its append-only file before it is answered.
 * @param port refused when it is taken; undefined for the last one or a free one.
 * @throws CarillonError UNSAFE_REDIS without a redis-server, REDIS_UNAVAILABLE when it does not start
 */
export async function startDevRedis(folder: DevFolder, port: number | undefined): Promise<DevRedis> {
  const chosen = port ?? (await folder.nextPort());
  const binary = process.env.CARILLON_REDIS_SERVER || 'redis-server';
  // In a group of its own: the terminal's Ctrl-C is for us alone, who stop it last.
  const child = spawn(binary, commandLine(chosen, folder.data), {
    cwd: folder.data,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  let log = '';
  const keep = (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-4000);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  let stopped = false;
  const starting = new AbortController();
  const failed = new Promise<never>((_, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) => reject(cannotRun(binary, error)));
    // 'close' comes after the last output.
    child.once('close', () => {
      if (!stopped) reject(ended(chosen, log));
    });
  });
  failed.catch(() => undefined);
  const stop = async () => {
    stopped = true;
    await end(child);
  };
  try {
    await Promise.race([failed, answers(folder, chosen, starting.signal)]);
  } catch (error) {
    await stop();
    throw error;
  } finally {
    starting.abort();
  }
  folder.serves(chosen);
  return { url: urlOf(chosen), died: failed, stop };
}

function commandLine(port: number, dir: string): string[] {
  const settings = {
    port: String(port),
    bind: '127.0.0.1',
    dir,
    save: '',
    appendonly: 'yes',
    appendfsync: 'always',
    'maxmemory-policy': 'noeviction',
    daemonize: 'no',
  };
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
}

/** Until a Redis on our own data answers there: another one may have the port. */
async function answers(folder: DevFolder, port: number, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + STARTS;
  while (!signal.aborted && !(await folder.isServedOn(port))) {
    if (performance.now() > deadline) {
      throw new CarillonError('TIMEOUT', `redis-server on port ${port} did not answer within a minute`, {
        todo: 'Start `carillon dev` again, or remove .carillon/ to begin anew.',
      });
    }
    await pause(LOOK_AGAIN);
  }
}

async function end(child: ChildProcess): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
}

function cannotRun(binary: string, error: NodeJS.ErrnoException): CarillonError {
  return new CarillonError('UNSAFE_REDIS', `${binary} cannot be run: ${error.code ?? error.message}`, {
    field: 'CARILLON_REDIS_SERVER',
    todo:
      'Install it (apt-get install redis-server, brew install redis), name another in CARILLON_REDIS_SERVER, or use ' +
      'docker run -p 6379:6379 redis:7 with `carillon scheduler`.',
    cause: error,
  });
}

function ended(port: number, log: string): CarillonError {
  const taken = log.includes('in use');
  // The last line of trouble, without pid, date and level.
  const line =
    log
      .trim()
      .split('\n')
      .findLast((text) => / # |error|fatal/i.test(text)) ?? 'it says nothing';
  const reason = taken ? 'the port is taken' : line.replace(/^\d+:\w .{24} \S /, '').trim();
  return new CarillonError('REDIS_UNAVAILABLE', `redis-server on port ${port} ended: ${reason}`, {
    field: 'port',
    todo: taken
      ? 'Give another --port.'
      : 'Start it again; if that does not help, remove .carillon/ to begin anew.',
  });
}
