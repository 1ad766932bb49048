import { createInterface } from 'node:readline/promises';
import { UsageError } from './failure.js';

/** Where a question is asked; standard output holds what was asked for, not the asking. */
interface Terminal {
  input: NodeJS.ReadableStream & { isTTY?: boolean };
  output: NodeJS.WritableStream;
}

/**
 * Whether to go on: `--yes` says so, else whoever sits at the terminal.
 * @throws UsageError where nobody can be asked
 */
export async function confirmed(
  yes: boolean,
  question: string,
  { input, output }: Terminal = { input: process.stdin, output: process.stderr },
): Promise<boolean> {
  if (yes) return true;
  if (input.isTTY !== true) {
    throw new UsageError(
      'nothing was written: standard input is no terminal, so nobody can be asked',
      'Add --yes to apply it, or --dry-run to look at it.',
    );
  }
  const lines = createInterface({ input, output });
  try {
    return /^y(es)?$/i.test((await lines.question(`${question} [y/N] `)).trim());
  } finally {
    lines.close();
  }
}
