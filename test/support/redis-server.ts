import type { ChildProcess } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { ownFolder } from './child-guard.js';
import { onCleanup } from './cleanup.js';
import { eventually } from './eventually.js';
import { freePort } from './free-port.js';
import { endServer, spawnServer } from './server-child.js';

export interface RedisServerOptions {
  /** AOF policy; the AOF is always on. Defaults to `'everysec'`. */
  appendfsync?: 'always' | 'everysec' | 'no';
  /** More command-line arguments, which win over the defaults: `['--maxmemory', '10mb']`. */
  args?: string[];
  /** Port on 127.0.0.1. Defaults to a free one. */
  port?: number;
}

const HOW_TO_GET_ONE =
  'redis-server was not found. Run ./scripts/setup.sh redis, or name a binary in CARILLON_REDIS_SERVER. ' +
  'Tests that need no control over the process can use a server you have: CARILLON_TEST_REDIS_URL=redis://127.0.0.1:6379/15';

const BIND_ATTEMPTS = 5;

/** A redis-server of this test's own: data in a temporary folder, gone when the test or file that started it ends. */
export class RedisServer {
  readonly url: string;
  #child: ChildProcess;
  #log = '';
  #cleanup: (() => void) | undefined;

  private constructor(
    readonly port: number,
    /** The data folder; it outlives `kill9()`, not `stop()`. */
    readonly dir: string,
    readonly args: readonly string[],
  ) {
    this.url = `redis://127.0.0.1:${port}`;
    this.#child = this.#spawn();
  }

  static async start(options: RedisServerOptions = {}): Promise<RedisServer> {
    for (let attempt = 1; ; attempt += 1) {
      const port = options.port ?? (await freePort());
      const dir = await mkdtemp(join(tmpdir(), 'carillon-redis-'));
      ownFolder(dir);
      const server = new RedisServer(port, dir, commandLine(port, dir, options));
      server.#cleanup = onCleanup(`redis-server on port ${port}`, () => server.stop());
      try {
        await server.#ready();
        return server;
      } catch (error) {
        await server.stop();
        const taken = server.#log.includes('Address already in use');
        if (!taken || options.port !== undefined || attempt === BIND_ATTEMPTS) throw error;
      }
    }
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /** What the server printed since its last start. */
  get log(): string {
    return this.#log;
  }

  /** Dies at once, as by a power cut of the process. The data folder stays for `restart()`. */
  async kill9(): Promise<void> {
    await this.#end('SIGKILL');
  }

  /** Freezes the process; its sockets stay open. */
  sigstop(): void {
    this.#child.kill('SIGSTOP');
  }

  sigcont(): void {
    this.#child.kill('SIGCONT');
  }

  /**
   * Starts again on the same port and data; a running server is shut down in order first. Resolves when it answers
   * commands, data loaded.
   */
  async restart(): Promise<void> {
    await this.#end('SIGTERM');
    this.#log = '';
    this.#child = this.#spawn();
    await this.#ready();
  }

  /** Ends the server and removes its data. Safe to call twice. */
  async stop(): Promise<void> {
    this.#cleanup?.();
    await this.#end('SIGKILL');
    await rm(this.dir, { recursive: true, force: true });
  }

  #spawn(): ChildProcess {
    const binary = process.env.CARILLON_REDIS_SERVER ?? 'redis-server';
    return spawnServer(binary, this.args, this.dir, (text) => {
      this.#log += text;
    });
  }

  async #ready(): Promise<void> {
    const child = this.#child;
    let ended: Error | undefined;
    child.once('error', (error: NodeJS.ErrnoException) => {
      ended = error.code === 'ENOENT' ? new Error(HOW_TO_GET_ONE) : error;
    });
    // 'close' comes after the last output, 'exit' may come before it.
    child.once('close', () => {
      ended ??= new Error(`redis-server ended at start:\n${this.#log}`);
    });
    await eventually(async () => ended !== undefined || /^(\+PONG|-NOAUTH)/.test(await ping(this.port)), {
      timeout: 20_000,
      every: 10,
    });
    if (ended !== undefined) throw ended;
  }

  async #end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    await endServer(this.#child, signal);
  }
}

/** Spawns a redis-server on a free loopback port and waits until it answers. */
export function startRedis(options: RedisServerOptions = {}): Promise<RedisServer> {
  return RedisServer.start(options);
}

function commandLine(port: number, dir: string, { appendfsync = 'everysec', args = [] }: RedisServerOptions) {
  return [
    ['--port', String(port)],
    ['--bind', '127.0.0.1'],
    ['--dir', dir],
    ['--save', ''],
    ['--appendonly', 'yes'],
    ['--appendfsync', appendfsync],
    ['--maxmemory-policy', 'noeviction'],
    ['--enable-debug-command', 'local'],
    args,
  ].flat();
}

/** One PING over a fresh socket: the first reply line, or a rejection. */
function ping(port: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.setTimeout(1_000, () => socket.destroy(new Error('no answer to PING')));
    socket.once('error', reject);
    socket.once('data', (chunk) => {
      resolve(chunk.toString());
      socket.destroy();
    });
    socket.once('close', () => reject(new Error('closed without an answer to PING')));
    socket.write('PING\r\n');
  });
}
