import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { vi } from 'vitest';
import { run } from '../../src/cli/program.js';
import { Queue } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';

export interface CliOutcome {
  code: number;
  stdout: string;
  stderr: string;
}

/** The command line in this process, against the shared Redis: without the second that a process takes to start. */
export class InProcessCli {
  readonly #folder = mkdtempSync(join(tmpdir(), 'carillon-cli-'));

  constructor(readonly prefix: string) {
    onCleanup('files of the command line', () => rmSync(this.#folder, { recursive: true, force: true }));
  }

  /** A file for the command line to read; its path. */
  file(name: string, text: string): string {
    const path = join(this.#folder, name);
    writeFileSync(path, text);
    return path;
  }

  async run(...args: string[]): Promise<CliOutcome> {
    let stdout = '';
    let stderr = '';
    const out = vi.spyOn(process.stdout, 'write').mockImplementation((text) => {
      stdout += text;
      return true;
    });
    const err = vi.spyOn(process.stderr, 'write').mockImplementation((text) => {
      stderr += text;
      return true;
    });
    try {
      const code = await run(['--redis', sharedRedisUrl(), '--prefix', this.prefix, ...args]);
      return { code, stdout, stderr };
    } finally {
      out.mockRestore();
      err.mockRestore();
      process.exitCode = undefined;
    }
  }

  /** Its standard output; the command must succeed. */
  async text(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...args);
    if (code !== 0) throw new Error(`exit code ${code}: ${stderr}${stdout}`);
    return stdout;
  }

  /** The one document of `--json`. */
  async json<T = Record<string, unknown>>(...args: string[]): Promise<T> {
    return JSON.parse(await this.text(...args, '--json')) as T;
  }
}

/** A command line, and the queues of these names in its namespace. */
export function cliAndQueues(task: { name: string }, ...names: string[]) {
  const cli = new InProcessCli(namespaceFor(task));
  const queues = names.map((name) => {
    const queue = new Queue(name, { connection: sharedRedisUrl(), prefix: cli.prefix });
    onCleanup(`queue ${name}`, () => queue.close());
    return queue;
  });
  return { cli, queues: queues as [Queue, ...Queue[]] };
}

/** The ids of a queue's schedules, sorted. */
export async function idsOf(queue: Queue): Promise<string[]> {
  const ids: string[] = [];
  for await (const { id } of queue.schedules.list()) ids.push(id);
  return ids.sort();
}
