import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect } from 'vitest';
import { compiled } from '../support/compiled.js';
import { type NodeProcess, spawnNode } from '../support/node-process.js';

const ROOT = fileURLToPath(new URL('../..', import.meta.url));

/** The entry of the command line, as tests start it. */
export const CLI = compiled(join(ROOT, 'src', 'cli', 'main.ts'));

export interface CliResult {
  code: number | null;
  stdout: string;
  stderr: string;
}

/** Variables of the machine that would decide what the tests are to decide. */
const CLEAN = {
  CARILLON_REDIS_URL: undefined,
  REDIS_URL: undefined,
  CARILLON_PREFIX: undefined,
  CARILLON_NAMESPACE: undefined,
  CARILLON_LOG_LEVEL: undefined,
} as const;

/** Calls the command line in processes of their own, against one Redis and prefix. */
export class Cli {
  constructor(
    readonly main: string,
    readonly redis: string,
    readonly prefix: string,
  ) {}

  get env(): Record<string, string | undefined> {
    return { ...CLEAN, CARILLON_REDIS_URL: this.redis, CARILLON_PREFIX: this.prefix };
  }

  /** Starts one command and lets it run. */
  spawn(...args: string[]): NodeProcess {
    return spawnNode(this.main, args, this.env);
  }

  /** Runs one command to its end, whatever that is. */
  async run(...args: string[]): Promise<CliResult> {
    const child = this.spawn(...args);
    const { code } = await child.exited;
    return { code, stdout: child.lines.join('\n'), stderr: child.stderr };
  }

  /** Its standard output; it must succeed, and say nothing on standard error. */
  async text(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...args);
    expect(stderr).toBe('');
    expect(code).toBe(0);
    return stdout;
  }

  /** The one document of `--json`. */
  async json<T = Record<string, unknown>>(...args: string[]): Promise<T> {
    return JSON.parse(await this.text(...args, '--json')) as T;
  }

  /** The line of a failure that ends with exit code 1. */
  async failure(...args: string[]): Promise<string> {
    const { code, stdout, stderr } = await this.run(...args);
    expect(stdout).toBe('');
    expect(stderr).toMatch(/^error: [^\n]+\n$/);
    expect(code).toBe(1);
    return stderr.trimEnd();
  }
}
