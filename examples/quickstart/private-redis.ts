import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';

export interface PrivateRedis {
  url: string;
  pid: number;
  /** Its data; gone after stop(). */
  dir: string;
  stop(): Promise<void>;
}

/**
 * A shell stands between: whatever becomes of this process, its end of the pipe closes, `cat` ends, and the shell stops
 * the server and removes its data. The server gets a process group of its own, so that Ctrl-C does not reach it first.
 */
const KEEPER = `
dir=$1; shift
"$@" >"$dir/redis.log" 2>&1 &
server=$!
echo "$server"
cat >/dev/null
kill "$server" 2>/dev/null
wait "$server"
rm -rf "$dir"
`;

/** A redis-server of its own on a free port of 127.0.0.1, its append-only file on, its data in a temporary folder. */
export async function startPrivateRedis(): Promise<PrivateRedis> {
  const port = await freePort();
  const dir = await mkdtemp(join(tmpdir(), 'carillon-quickstart-'));
  const server = [
    process.env.CARILLON_REDIS_SERVER ?? 'redis-server',
    ...['--port', String(port), '--bind', '127.0.0.1', '--dir', dir, '--save', ''],
    ...['--appendonly', 'yes', '--appendfsync', 'everysec', '--maxmemory-policy', 'noeviction'],
  ];
  const keeper = spawn('/bin/sh', ['-c', KEEPER, 'sh', dir, ...server], {
    detached: true,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  keeper.stdin.on('error', () => undefined);
  const [line] = (await once(keeper.stdout, 'data')) as [Buffer];
  const stop = async () => {
    if (keeper.exitCode !== null) return;
    const ended = once(keeper, 'exit');
    keeper.stdin.end();
    await ended;
  };
  const url = `redis://127.0.0.1:${port}`;
  try {
    await waitForAnswer(url);
  } catch (error) {
    await stop();
    throw error;
  }
  return { url, pid: Number(line.toString()), dir, stop };
}

async function freePort(): Promise<number> {
  const listener = createServer().listen(0, '127.0.0.1');
  await once(listener, 'listening');
  const { port } = listener.address() as AddressInfo;
  listener.close();
  await once(listener, 'close');
  return port;
}

async function waitForAnswer(url: string): Promise<void> {
  const client = new Redis(url, {
    maxRetriesPerRequest: null,
    retryStrategy: (times) => (times < 200 ? 25 : null),
  });
  client.on('error', () => undefined);
  try {
    await client.ping();
  } catch (cause) {
    throw new Error('redis-server did not start; ./scripts/setup.sh redis installs it', { cause });
  } finally {
    client.disconnect();
  }
}
