import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { setTimeout as pause } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { CarillonError } from '../domain/errors.js';

export interface RedisProcessOptions {
  /** Where it listens, on 127.0.0.1. */
  port: number;
  /** An existing folder for its append-only file, as `CONFIG GET dir` shows it: without links. */
  dir: string;
  appendfsync: 'always' | 'everysec';
  /** More of redis.conf's settings. */
  settings?: Readonly<Record<string, string>>;
  /** Called at once with the pid of the process, which may not answer yet. */
  onSpawn?: (pid: number) => void;
  /** What to do instead where there is no redis-server, as the end of a sentence that begins with installing one. */
  instead: string;
  /** What to do when the port is taken, and when it does not start for another reason; sentences. */
  taken: string;
  again: string;
}

/** A redis-server of our own. */
export interface RedisProcess {
  readonly url: string;
  readonly pid: number;
  /** Rejects when the server ends without being stopped. */
  readonly died: Promise<never>;
  stop(): Promise<void>;
}

/** ms until the server must answer; a large append-only file takes its time. */
const STARTS = 60_000;
const LOOK_AGAIN = 50;

/**
 * Starts a redis-server (`CARILLON_REDIS_SERVER`, else the one in PATH) with its append-only file on, and waits until
 * it answers.
 * @throws CarillonError UNSAFE_REDIS without a redis-server, REDIS_UNAVAILABLE when it ends, TIMEOUT when it is silent
 */
export async function startRedisProcess(options: RedisProcessOptions): Promise<RedisProcess> {
  const { port, dir } = options;
  const binary = process.env.CARILLON_REDIS_SERVER || 'redis-server';
  // In a group of its own: the terminal's Ctrl-C is for us alone, who stop it last.
  const child = spawn(binary, commandLine(options), {
    cwd: dir,
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  if (child.pid !== undefined) options.onSpawn?.(child.pid);
  let log = '';
  const keep = (chunk: Buffer) => {
    log = (log + chunk.toString()).slice(-4000);
  };
  child.stdout.on('data', keep);
  child.stderr.on('data', keep);
  let stopped = false;
  const starting = new AbortController();
  const died = new Promise<never>((_, reject) => {
    child.once('error', (error: NodeJS.ErrnoException) => reject(cannotRun(binary, error, options.instead)));
    // 'close' comes after the last output.
    child.once('close', () => {
      if (!stopped) reject(ended(options, log));
    });
  });
  died.catch(() => undefined);
  const stop = async () => {
    stopped = true;
    await end(child);
  };
  try {
    await Promise.race([died, answers(options, starting.signal)]);
  } catch (error) {
    await stop();
    throw error;
  } finally {
    starting.abort();
  }
  return { url: redisUrl(port), pid: child.pid as number, died, stop };
}

export function redisUrl(port: number): string {
  return `redis://127.0.0.1:${port}`;
}

/** Whether the Redis on a port works on this folder's data. */
export async function isServedOn(port: number, dir: string): Promise<boolean> {
  try {
    const [, served] = await askRedis(port, (client) => client.config('GET', 'dir') as Promise<string[]>);
    return served === dir;
  } catch {
    return false;
  }
}

/** One question over a connection of its own, which is not tried again. */
export async function askRedis<T>(port: number, question: (client: Redis) => Promise<T>): Promise<T> {
  const client = new Redis(redisUrl(port), {
    lazyConnect: true,
    connectTimeout: 1000,
    commandTimeout: 2000,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return await question(client);
  } finally {
    client.disconnect();
  }
}

/** A port of 127.0.0.1 that nobody listens on: `wanted`, or any for 0; undefined when it is taken. */
export function freePort(wanted: number): Promise<number | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once('error', () => resolve(undefined));
    server.listen(wanted, '127.0.0.1', () => {
      const address = server.address();
      server.close(() => resolve(typeof address === 'object' ? address?.port : undefined));
    });
  });
}

function commandLine({ port, dir, appendfsync, settings }: RedisProcessOptions): string[] {
  const all = {
    port: String(port),
    bind: '127.0.0.1',
    dir,
    save: '',
    appendonly: 'yes',
    appendfsync,
    'maxmemory-policy': 'noeviction',
    daemonize: 'no',
    ...settings,
  };
  return Object.entries(all).flatMap(([name, value]) => [`--${name}`, value]);
}

/** Until a Redis on our own data answers there: another one may have the port. */
async function answers({ port, dir, again }: RedisProcessOptions, signal: AbortSignal): Promise<void> {
  const deadline = performance.now() + STARTS;
  while (!signal.aborted && !(await isServedOn(port, dir))) {
    if (performance.now() > deadline) {
      throw new CarillonError('TIMEOUT', `redis-server on port ${port} did not answer within a minute`, {
        todo: again,
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

function cannotRun(binary: string, error: NodeJS.ErrnoException, instead: string): CarillonError {
  return new CarillonError('UNSAFE_REDIS', `${binary} cannot be run: ${error.code ?? error.message}`, {
    field: 'CARILLON_REDIS_SERVER',
    todo: `Install it (apt-get install redis-server, brew install redis), ${instead}`,
    cause: error,
  });
}

function ended({ port, taken, again }: RedisProcessOptions, log: string): CarillonError {
  const inUse = log.includes('in use');
  // The last line of trouble, without pid, date and level.
  const line =
    log
      .trim()
      .split('\n')
      .findLast((text) => / # |error|fatal/i.test(text)) ?? 'it says nothing';
  const reason = inUse ? 'the port is taken' : line.replace(/^\d+:\w .{24} \S /, '').trim();
  return new CarillonError('REDIS_UNAVAILABLE', `redis-server on port ${port} ended: ${reason}`, {
    field: 'port',
    todo: inUse ? taken : again,
  });
}
