import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { ownChild } from './child-guard.js';

/** Starts a server of a test's own, which dies with this process; `log` gets all that it prints, and why it did not start. */
export function spawnServer(
  file: string,
  args: readonly string[],
  dir: string,
  log: (text: string) => void,
): ChildProcess {
  const child = spawn(file, args, { cwd: dir, stdio: ['ignore', 'pipe', 'pipe'] });
  child.on('error', (error) => log(`${error.message}\n`));
  const keep = (chunk: Buffer) => log(chunk.toString());
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  ownChild(child);
  return child;
}

/** Ends a server, also a frozen one. Resolves when it is gone. */
export async function endServer(child: ChildProcess, signal: NodeJS.Signals): Promise<void> {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGCONT');
  child.kill(signal);
  await exited;
}
