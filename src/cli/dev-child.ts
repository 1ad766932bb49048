import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { CarillonError } from '../domain/errors.js';

/** A process that `carillon dev` started, and stops. */
export class DevChild {
  readonly #child: ChildProcess;
  /** Rejects when it ends without being stopped. */
  readonly died: Promise<never>;
  #stopped = false;

  /**
   * @param script the name of a module beside this one, such as `dev-worker`.
   * @param what it is, for who reads that it ended.
   * @param onLine called with each line that it prints.
   */
  constructor(script: string, args: readonly string[], what: string, onLine: (line: string) => void) {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const path = fileURLToPath(new URL(`./${script}.${extension}`, import.meta.url));
    // In a group of its own: the terminal's Ctrl-C is for us alone, who stop it in its turn.
    this.#child = spawn(process.execPath, [...process.execArgv, path, ...args], {
      stdio: ['pipe', 'pipe', 'inherit'],
      detached: true,
    });
    const { stdout } = this.#child;
    if (stdout !== null) createInterface({ input: stdout }).on('line', onLine);
    this.died = once(this.#child, 'exit').then(([code, signal]) => {
      if (this.#stopped) return new Promise<never>(() => undefined);
      throw new CarillonError('CLOSED', `${what} ended by itself (${signal ?? `exit code ${code}`})`, {
        todo: 'Its output above says why; start `carillon dev` again.',
      });
    });
    this.died.catch(() => undefined);
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Tells it to end, and waits until it has. */
  async stop(): Promise<void> {
    this.#stopped = true;
    const child = this.#child;
    if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    child.kill('SIGTERM');
    await exited;
  }
}
