import { type ChildProcessByStdio, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, realpath } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Writable } from 'node:stream';

/**
 * Outlives this process by an instant. It is told the pids of servers, and `well` when they have ended; at the end of the
 * pipe, which comes however we die, it kills those that still run and removes the data.
 */
const GUARD = `
trap '' INT TERM HUP
pids=''
while read -r word; do
  case $word in
    well) pids='' ;;
    *) pids="$pids $word" ;;
  esac
done
for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
rm -rf "$1"
`;

/** A folder in the temporary files for servers of a bench; folder and servers do not outlive this process. */
export class BenchGuard {
  private constructor(
    readonly dir: string,
    private readonly shell: ChildProcessByStdio<Writable, null, null>,
  ) {}

  static async start(): Promise<BenchGuard> {
    const dir = await realpath(await mkdtemp(join(tmpdir(), 'carillon-bench-')));
    const shell = spawn('/bin/sh', ['-c', GUARD, 'sh', dir], {
      detached: true,
      stdio: ['pipe', 'ignore', 'ignore'],
    });
    return new BenchGuard(dir, shell);
  }

  owns(pid: number | undefined): void {
    if (pid !== undefined) this.shell.stdin.write(`${pid}\n`);
  }

  /** The servers have ended: removes the folder. */
  async end(): Promise<void> {
    const ended = once(this.shell, 'exit');
    this.shell.stdin.end('well\n');
    await ended;
  }
}
