import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** A script of this folder in a process of its own. It ends by itself if this process dies. */
export class Child {
  #stopping = false;
  readonly #process: ChildProcess;

  private constructor(
    readonly name: string,
    args: readonly string[],
    redis: string,
    onDeath: (error: Error) => void,
  ) {
    const script = fileURLToPath(new URL(`${name}.ts`, import.meta.url));
    this.#process = fork(script, args, {
      // A process group of its own: Ctrl-C reaches the parent, which stops things in order.
      detached: true,
      execArgv: ['--import', import.meta.resolve('tsx')],
      env: { ...process.env, CARILLON_REDIS_URL: redis, CARILLON_LOG_LEVEL: 'warn' },
      serialization: 'advanced',
    });
    this.#process.once('exit', (code, signal) => {
      if (!this.#stopping)
        onDeath(new Error(`the ${name} ended by itself (${signal ?? `exit code ${code}`})`));
    });
  }

  /** Resolves when the script says that it is ready. */
  static async start(
    name: string,
    args: readonly string[],
    redis: string,
    onDeath: (error: Error) => void,
    onMessage: (message: unknown) => void = () => undefined,
  ): Promise<Child> {
    const child = new Child(name, args, redis, onDeath);
    const [first] = await Promise.race([
      once(child.#process, 'message'),
      once(child.#process, 'exit').then(() => [undefined]),
    ]);
    if ((first as { ready?: boolean } | undefined)?.ready !== true) {
      throw new Error(`the ${name} did not start`);
    }
    child.#process.on('message', onMessage);
    return child;
  }

  get pid(): number {
    return this.#process.pid ?? 0;
  }

  /** Asks it to finish, and ends it after 10 s if it does not. */
  async stop(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    this.#stopping = true;
    const ended = once(this.#process, 'exit');
    this.#process.kill('SIGTERM');
    const timer = setTimeout(() => this.#process.kill('SIGKILL'), 10_000);
    await ended;
    clearTimeout(timer);
  }
}
