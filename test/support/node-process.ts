import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { ownChild } from './child-guard.js';
import { onCleanup } from './cleanup.js';
import { compiled } from './compiled.js';

export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A Node process started by a test. Ends with the test, and with this process whatever happens. */
export class NodeProcess {
  /** Lines of standard output so far. */
  readonly lines: string[] = [];
  /** All of standard error so far. */
  stderr = '';
  /** Resolves when the process has ended and its output is read. */
  readonly exited: Promise<Exit>;
  #child: ChildProcess;
  #wake = new Set<() => void>();
  #ended = false;

  constructor(script: string, args: readonly string[], env: Readonly<Record<string, string | undefined>>) {
    const path = compiled(script);
    const loader = /\.[cm]?ts$/.test(path) ? ['--import', import.meta.resolve('tsx')] : [];
    this.#child = spawn(process.execPath, [...loader, path, ...args], {
      env: { ...process.env, ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
    });
    ownChild(this.#child);
    const { stdout, stderr, stdin } = this.#child;
    stdin?.on('error', () => undefined);
    stderr?.on('data', (chunk: Buffer) => {
      this.stderr += chunk.toString();
    });
    if (stdout !== null) {
      createInterface({ input: stdout }).on('line', (line) => {
        this.lines.push(line);
        this.#notify();
      });
    }
    this.exited = once(this.#child, 'close').then(([code, signal]) => {
      this.#ended = true;
      this.#notify();
      forget();
      return { code, signal };
    });
    const forget = onCleanup(`node ${script}`, async () => {
      await this.kill9();
    });
  }

  get pid(): number {
    return this.#child.pid as number;
  }

  get running(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  /**
   * Resolves to the first line of standard output, past or future, that matches.
   *
   * @param timeout in milliseconds. Defaults to 20,000.
   * @throws Error with the output when the process ends or the time is over first.
   */
  async waitForLine(pattern: string | RegExp, timeout = 20_000): Promise<string> {
    const deadline = performance.now() + timeout;
    let seen = 0;
    for (;;) {
      for (; seen < this.lines.length; seen += 1) {
        const line = this.lines[seen] as string;
        if (typeof pattern === 'string' ? line.includes(pattern) : pattern.test(line)) return line;
      }
      const left = deadline - performance.now();
      if (this.#ended) throw new Error(`the process ended without a line like ${pattern}\n${this.#output()}`);
      if (left <= 0) throw new Error(`no line like ${pattern} within ${timeout} ms\n${this.#output()}`);
      await this.#change(left);
    }
  }

  /** Writes a line to standard input. */
  writeLine(text: string): void {
    this.#child.stdin?.write(`${text}\n`);
  }

  async kill9(): Promise<Exit> {
    this.#child.kill('SIGKILL');
    return this.exited;
  }

  sigstop(): void {
    this.#child.kill('SIGSTOP');
  }

  sigcont(): void {
    this.#child.kill('SIGCONT');
  }

  /** Sends SIGTERM and waits; SIGKILL after `grace` milliseconds, default 10,000. */
  async stop(grace = 10_000): Promise<Exit> {
    this.#child.kill('SIGCONT');
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), grace);
    const exit = await this.exited;
    clearTimeout(timer);
    return exit;
  }

  #notify(): void {
    for (const wake of this.#wake) wake();
  }

  #change(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        clearTimeout(timer);
        this.#wake.delete(done);
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#wake.add(done);
    });
  }

  #output(): string {
    return [...this.lines.slice(-20), this.stderr.slice(-2_000)].join('\n');
  }
}

/**
 * Starts a script, TypeScript or JavaScript, in a Node process of its own, without a shell or a runner between:
 * `pid` is the script's.
 *
 * @param env added to this process's environment; `undefined` takes a variable away.
 */
export function spawnNode(
  script: string,
  args: readonly string[] = [],
  env: Readonly<Record<string, string | undefined>> = {},
): NodeProcess {
  return new NodeProcess(script, args, env);
}
