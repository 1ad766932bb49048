import { type ChildProcess, spawn } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/**
 * A shell that outlives this process by an instant. It learns the pids and folders that this process owns over
 * its standard input; at end of input, which the kernel sends however we die, it kills and removes them.
 */
const GUARD_SCRIPT = `
trap '' INT TERM HUP
pids=' '; dirs=' '
while read -r verb what; do
  case $verb in
    own) pids="$pids$what " ;;
    disown) pids="\${pids%% $what *} \${pids#* $what }" ;;
    dir) dirs="$dirs$what " ;;
  esac
done
for pid in $pids; do kill -KILL "$pid" 2>/dev/null; done
for dir in $dirs; do rm -rf "$dir"; done
`;

let guard: ChildProcess | undefined;

function tell(line: string): void {
  if (guard === undefined) {
    guard = spawn('/bin/sh', ['-c', GUARD_SCRIPT], { detached: true, stdio: ['pipe', 'ignore', 'ignore'] });
    guard.unref();
    // The pipe must not keep a finished test file alive.
    (guard.stdin as unknown as { unref?: () => void }).unref?.();
    guard.stdin?.on('error', () => undefined);
  }
  guard.stdin?.write(`${line}\n`);
}

/** Kills `child` if this process dies first. */
export function ownChild(child: ChildProcess): void {
  const { pid } = child;
  if (pid === undefined) return;
  tell(`own ${pid}`);
  child.once('exit', () => tell(`disown ${pid}`));
}

/** Removes `dir` when this process has died. Only folders made by these tests under the temporary folder. */
export function ownFolder(dir: string): void {
  if (!dir.startsWith(join(tmpdir(), 'carillon-')) || /\s/.test(dir)) {
    throw new Error(`not a test folder: ${dir}`);
  }
  tell(`dir ${dir}`);
}
