import { type ChildProcess, execFile } from 'node:child_process';
import { existsSync, readdirSync } from 'node:fs';
import { chown, mkdtemp, rm } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { ownFolder } from './child-guard.js';
import { onCleanup } from './cleanup.js';
import { eventually } from './eventually.js';
import { freePort } from './free-port.js';
import { endServer, spawnServer } from './server-child.js';

const run = promisify(execFile);

const HOW_TO_GET_ONE =
  'PostgreSQL was not found. Run ./scripts/setup.sh postgres, or name the folder of its binaries in CARILLON_TEST_POSTGRES_BIN.';
/** Where Debian's packages put the binaries, a folder a version. */
const DEBIAN = '/usr/lib/postgresql';
const ROOT = 0;
const BIND_ATTEMPTS = 5;

/** A PostgreSQL server of this test's own, without a password: data in a temporary folder, gone with its test or file. */
export class PostgresServer {
  readonly url: string;
  #child: ChildProcess;
  #log = '';
  #cleanup: (() => void) | undefined;

  private constructor(
    readonly port: number,
    readonly dir: string,
    private readonly bin: string,
  ) {
    this.url = `postgres://carillon@127.0.0.1:${port}/postgres`;
    this.#child = this.#spawn();
  }

  static async start(): Promise<PostgresServer> {
    const bin = binaries();
    const dir = await mkdtemp(join(tmpdir(), 'carillon-postgres-'));
    ownFolder(dir);
    const { uid, gid } = await unprivileged();
    if (process.getuid?.() === ROOT) await chown(dir, uid, gid);
    const data = join(dir, 'data');
    const [file, ...args] = await asOther([
      join(bin, 'initdb'), '--pgdata', data, '--username=carillon', '--auth=trust', '--encoding=UTF8', '--no-locale', '--no-sync',
    ]); // biome-ignore format: one command line
    await run(file as string, args, { cwd: dir });
    prefix = await asOther([]);
    for (let attempt = 1; ; attempt += 1) {
      const server = new PostgresServer(await freePort(), dir, bin);
      server.#cleanup = onCleanup(`postgres on port ${server.port}`, () => server.stop());
      try {
        await server.#ready();
        return server;
      } catch (error) {
        server.#cleanup();
        await server.#end('SIGKILL');
        if (!server.#log.includes('Address already in use') || attempt === BIND_ATTEMPTS) {
          await rm(dir, { recursive: true, force: true });
          throw error;
        }
      }
    }
  }

  /** Ends all sessions at once and starts again on the same data. */
  async restart(): Promise<void> {
    await this.#end('SIGINT');
    this.#child = this.#spawn();
    await this.#ready();
  }

  /** Ends the server at once; `restart()` brings it back with its data. */
  async shutDown(): Promise<void> {
    await this.#end('SIGINT');
  }

  async stop(): Promise<void> {
    this.#cleanup?.();
    await this.#end('SIGINT');
    await rm(this.dir, { recursive: true, force: true });
  }

  #spawn(): ChildProcess {
    const [file = '', ...args] = [
      ...prefix, join(this.bin, 'postgres'), '-D', join(this.dir, 'data'), '-p', String(this.port),
      '-c', 'listen_addresses=127.0.0.1', '-c', `unix_socket_directories=${this.dir}`, '-c', 'fsync=off',
      '-c', 'shared_buffers=16MB', '-c', 'max_connections=60',
    ]; // biome-ignore format: one command line
    return spawnServer(file, args, this.dir, (text) => {
      this.#log += text;
    });
  }

  async #ready(): Promise<void> {
    const child = this.#child;
    let ended: Error | undefined;
    child.once('close', () => {
      ended ??= new Error(`postgres ended at start:\n${this.#log}`);
    });
    this.#log = '';
    await eventually(
      async () =>
        ended !== undefined ||
        (this.#log.includes('ready to accept connections') && (await accepts(this.port))),
      { timeout: 30_000 },
    );
    if (ended !== undefined) throw ended;
  }

  async #end(signal: 'SIGKILL' | 'SIGINT'): Promise<void> {
    await endServer(this.#child, signal);
  }
}

/** Initialises and spawns a PostgreSQL on a free loopback port and waits until it answers: about two seconds. */
export function startPostgres(): Promise<PostgresServer> {
  return PostgresServer.start();
}

/** How to run a command as somebody whom PostgreSQL accepts; empty when we are somebody like that. */
let prefix: string[] = [];

/** The server refuses to run as root. setpriv becomes the command itself, so that the pid is the server's. */
async function asOther(command: string[]): Promise<string[]> {
  if (process.getuid?.() !== ROOT) return command;
  const { uid, gid } = await unprivileged();
  return ['setpriv', `--reuid=${uid}`, `--regid=${gid}`, '--clear-groups', ...command];
}

async function unprivileged(): Promise<{ uid: number; gid: number }> {
  const id = async (flag: string) => Number((await run('id', [flag, 'nobody'])).stdout);
  return { uid: await id('-u'), gid: await id('-g') };
}

function binaries(): string {
  const named = process.env.CARILLON_TEST_POSTGRES_BIN;
  if (named !== undefined) return named;
  const versions = existsSync(DEBIAN) ? readdirSync(DEBIAN).map(Number) : [];
  const newest = versions
    .sort((a, b) => b - a)
    .find((v) => existsSync(join(DEBIAN, String(v), 'bin', 'initdb')));
  if (newest !== undefined) return join(DEBIAN, String(newest), 'bin');
  const inPath = (process.env.PATH ?? '').split(':').find((folder) => existsSync(join(folder, 'initdb')));
  if (inPath === undefined) throw new Error(HOW_TO_GET_ONE);
  return inPath;
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: '127.0.0.1' });
    socket.once('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
