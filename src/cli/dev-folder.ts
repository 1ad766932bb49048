import { mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { CarillonError } from '../domain/errors.js';
import { askRedis, freePort, isServedOn, redisUrl } from '../support/redis-process.js';

/** Who runs in the folder: what its lock file says. */
interface Running {
  pid: number;
  url: string;
}

/** How long one that has just begun may take until its Redis answers, ms. */
const BEGINS = 15_000;
const LOOK_AGAIN = 100;

/**
 * `.carillon/` of a folder: the data of its private Redis, a lock that names who runs there, and the last port. A lock
 * whose process has died is taken over, and so is the Redis that it may have left behind.
 */
export class DevFolder {
  readonly path: string;
  /** Where redis-server keeps its append-only file. */
  readonly data: string;
  readonly #lock: string;
  readonly #port: string;

  constructor(parent: string) {
    this.path = join(parent, '.carillon');
    this.data = join(this.path, 'redis');
    this.#lock = join(this.path, 'lock.json');
    this.#port = join(this.path, 'port');
  }

  /** Takes the folder; or says who has it. */
  async claim(): Promise<Running | undefined> {
    mkdirSync(this.data, { recursive: true });
    writeFileSync(join(this.path, '.gitignore'), '*\n');
    for (;;) {
      try {
        writeFileSync(this.#lock, JSON.stringify({ pid: process.pid }), { flag: 'wx' });
        return undefined;
      } catch (error) {
        if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      }
      const running = await this.#running();
      if (running !== undefined) return running;
      await this.#stopLeftOver();
      rmSync(this.#lock, { force: true });
    }
  }

  /** The Redis that was started here listens on this port. */
  serves(port: number): void {
    writeFileSync(this.#port, String(port));
    writeFileSync(this.#lock, JSON.stringify({ pid: process.pid, port }));
  }

  release(): void {
    rmSync(this.#lock, { force: true });
  }

  /** The last port if nobody has taken it, else a free one. */
  async nextPort(): Promise<number> {
    const last = Number(readText(this.#port) ?? 0);
    return (
      (await freePort(Number.isInteger(last) && last > 0 && last < 65_536 ? last : 0)) ??
      (await freePort(0)) ??
      0
    );
  }

  /** Who holds the lock and has a Redis of this folder that answers; one that begins is waited for. */
  async #running(): Promise<Running | undefined> {
    const deadline = performance.now() + BEGINS;
    for (;;) {
      const { pid, port } = this.#readLock();
      if (pid === undefined || !isAlive(pid)) return undefined;
      if (port !== undefined && (await isServedOn(port, this.data))) return { pid, url: redisUrl(port) };
      // A process of that id that serves nothing here is somebody else's.
      if (performance.now() > deadline) return undefined;
      await pause(LOOK_AGAIN);
    }
  }

  /** A Redis that works on this folder's data would spoil it together with a second one. */
  async #stopLeftOver(): Promise<void> {
    const { port } = this.#readLock();
    if (port === undefined || !(await isServedOn(port, this.data))) return;
    await askRedis(port, (client) => client.shutdown('NOSAVE')).catch(() => undefined);
    const deadline = performance.now() + BEGINS;
    while (await isServedOn(port, this.data)) {
      if (performance.now() > deadline) {
        throw new CarillonError('TIMEOUT', `a Redis on port ${port} holds ${this.data} and does not stop`, {
          todo: 'End that redis-server, then start `carillon dev` again.',
        });
      }
      await pause(LOOK_AGAIN);
    }
  }

  #readLock(): { pid?: number; port?: number } {
    try {
      return JSON.parse(readText(this.#lock) ?? '{}') as { pid?: number; port?: number };
    } catch {
      return {};
    }
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // One that has ended and that its parent has not buried yet is there, but dead; only Linux tells it here.
    return !/^\d+ \(.*\) [ZX]/s.test(readText(`/proc/${pid}/stat`) ?? '');
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
}
