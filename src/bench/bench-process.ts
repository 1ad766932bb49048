import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface, type Interface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { CarillonError } from '../domain/errors.js';

/** A script of this folder in a Node process of its own. It ends by itself when this process is gone. */
export class BenchProcess {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;

  private constructor(
    readonly name: string,
    child: ChildProcess,
    lines: Interface,
  ) {
    this.#child = child;
    this.#lines = lines[Symbol.asyncIterator]();
  }

  /** Resolves when the script says that it is ready. */
  static async start(name: string, ...args: string[]): Promise<BenchProcess> {
    const extension = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
    const script = fileURLToPath(new URL(`./${name}.${extension}`, import.meta.url));
    // In a group of its own: Ctrl-C is for us alone. What it has to say of trouble goes where ours does.
    const child = spawn(process.execPath, [...process.execArgv, script, ...args], {
      detached: true,
      stdio: ['pipe', 'pipe', 'inherit'],
      env: { ...process.env, CARILLON_LOG_LEVEL: 'error' },
    });
    child.stdin.on('error', () => undefined);
    const started = new BenchProcess(name, child, createInterface({ input: child.stdout }));
    await started.line();
    return started;
  }

  /** The next line that it prints. @throws CarillonError CLOSED when it ends instead */
  async line(): Promise<string> {
    const { done, value } = await this.#lines.next();
    if (!done) return value;
    throw new CarillonError('CLOSED', `the ${this.name} of the bench ended by itself`, {
      todo: 'Its output above says why.',
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  writeLine(text: string): void {
    this.#child.stdin?.write(`${text}\n`);
  }

  async stop(): Promise<void> {
    await this.#end('SIGTERM');
  }

  /** As by a power cut of the process. */
  async kill(): Promise<void> {
    await this.#end('SIGKILL');
  }

  async #end(signal: NodeJS.Signals): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    const exited = once(this.#child, 'exit');
    this.#child.kill(signal);
    await exited;
  }
}

/** Calls `stop` when the process is asked to end or the one that started it is gone. */
export function whenToldToEnd(stop: () => Promise<void>): void {
  let stopping = false;
  const once = () => {
    if (stopping) return;
    stopping = true;
    stop().finally(() => process.exit());
  };
  process.on('SIGTERM', once);
  process.stdin.on('end', once);
  process.stdin.resume();
}
