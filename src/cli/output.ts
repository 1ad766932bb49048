import { formatDuration } from '../domain/durations.js';
import { JsonText } from '../queue/payload.js';
import { exactJson, exactLine } from './exact-json.js';

/** The one document of `--json`; a stored payload in it stands as it is written. */
export function printJson(document: unknown): void {
  process.stdout.write(`${exactJson(document)}\n`);
}

export function printLine(line = ''): void {
  process.stdout.write(`${line}\n`);
}

/** What a person should know, and a program that reads the output need not. */
export function remark(line: string): void {
  process.stderr.write(`${line}\n`);
}

/** A value on one line, for people. */
export function inOneLine(value: unknown): string {
  if (value instanceof JsonText) return plain(exactLine(value));
  return typeof value === 'object' ? JSON.stringify(value) : plain(String(value));
}

/** A table without lines, for people; cells of it are never cut. */
export async function printTable(
  head: readonly string[],
  rows: readonly (readonly string[])[],
): Promise<void> {
  const { default: Table } = await import('cli-table3');
  const none = '';
  const table = new Table({
    head: [...head],
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 2 },
    chars: {
      top: none, 'top-mid': none, 'top-left': none, 'top-right': none, bottom: none, 'bottom-mid': none,
      'bottom-left': none, 'bottom-right': none, left: none, 'left-mid': none, mid: none, 'mid-mid': none,
      right: none, 'right-mid': none, middle: none,
    }, // biome-ignore format: one list
  });
  for (const row of rows) table.push(row.map(plain));
  for (const line of table.toString().split('\n')) printLine(line.trimEnd());
}

/** Control signs of stored text must not steer the terminal. */
export function plain(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
  return text.replace(/[\u0000-\u001f\u007f-\u009f]/g, (sign) => JSON.stringify(sign).slice(1, -1));
}

/** `2027-01-31T09:12:00.000Z`, or a dash. */
export function utc(ms: number | undefined): string {
  return ms === undefined || ms === 0 ? '-' : new Date(ms).toISOString();
}

/** `in 3m` or `2h ago`, to the second, by the clock of this machine. */
export function away(ms: number | undefined, now = Date.now()): string {
  if (ms === undefined || ms === 0) return '-';
  const seconds = Math.round(Math.abs(ms - now) / 1000) * 1000;
  if (seconds === 0) return 'now';
  return ms > now ? `in ${formatDuration(seconds)}` : `${formatDuration(seconds)} ago`;
}
