import { readdirSync, readFileSync } from 'node:fs';
import { type CrontabLine, isCarillonError, parseCrontab, type Queue, type ScheduleInfo } from 'carillon';
import Table from 'cli-table3';

const FOLDER = new URL('../crontabs/', import.meta.url);
/** Fire times shown of each line. */
const SHOWN = 2;

/** Loads every crontab file of examples/crontabs as schedules and prints each line. @returns what was stored. */
export async function loadCrontabFiles(queue: Queue): Promise<ScheduleInfo[]> {
  const stored: ScheduleInfo[] = [];
  for (const file of readdirSync(FOLDER).sort()) {
    const lines = parseCrontab(readFileSync(new URL(file, FOLDER), 'utf8'), {
      // Files of /etc/cron.d carry a user column.
      userColumn: file.endsWith('.cron'),
    });
    const table = new Table({
      head: ['line', 'expression', 'zone', 'next, in its zone', 'the same in UTC'],
      style: { head: [], border: [], compact: true },
    });
    for (const line of lines) {
      const row = await loadLine(queue, file, line, stored);
      if (row !== undefined) table.push(row);
    }
    console.log(`\n${file}\n${table.toString()}`);
  }
  return stored;
}

type Row = (string | { content: string; colSpan: number })[];

async function loadLine(
  queue: Queue,
  file: string,
  line: CrontabLine,
  stored: ScheduleInfo[],
): Promise<Row | undefined> {
  if (line.kind !== 'entry' && line.kind !== 'refused') return undefined;
  const { expression, command } = line;
  const zone = line.tz ?? 'UTC';
  const refused = (reason: string): Row => [
    String(line.line),
    clip(`${expression} ${line.kind === 'refused' ? command : ''}`),
    zone,
    { content: `refused: ${reason}`, colSpan: 2 },
  ];
  if (line.kind === 'refused') return refused(line.reason);

  const id = `${file}:${line.line}`;
  try {
    const info = await queue.schedules.upsert(
      id,
      { cron: expression, tz: zone, missed: 'latest', tags: ['crontab'] },
      { name: 'run-command', data: { command, user: line.user, stdin: line.stdin, env: line.env } },
    );
    stored.push(info);
    const next = await queue.schedules.get(id).preview(SHOWN);
    return [
      String(line.line),
      expression,
      zone,
      next.map(({ wallClock }) => readable(wallClock)).join('\n'),
      next.map(({ at }) => readable(new Date(at).toISOString())).join('\n'),
    ];
  } catch (error) {
    if (isCarillonError(error)) return refused(error.message);
    throw error;
  }
}

function readable(time: string): string {
  return time.replace('T', ' ').replace('.000Z', '');
}

function clip(text: string): string {
  return text.length <= 40 ? text.trimEnd() : `${text.slice(0, 39)}…`;
}
