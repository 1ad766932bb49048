import { parseCrontab } from './crontab.js';
import { trimCommand, writeCommand } from './crontab-command.js';
import { crondRefusal } from './crontab-fields.js';
import { COMMAND_JOB } from './import-crontab.js';
import { spelledTimeZone } from './time-zone-names.js';

/** A schedule as an entry of a crontab needs it. */
export interface ExportableSchedule {
  readonly id: string;
  readonly definition: { readonly cron?: readonly string[]; readonly tz?: string };
  readonly template: { readonly name: string; readonly data: unknown };
  /** Not to run: it becomes a comment. */
  readonly paused: boolean;
}

/** A crontab, and the schedules that no line of it can be. */
export interface CrontabExport {
  readonly text: string;
  readonly refused: readonly { readonly id: string; readonly reason: string }[];
}

interface Command {
  readonly command: string;
  readonly stdin: string | undefined;
  readonly user: string | undefined;
  readonly env: Readonly<Record<string, string>>;
}

interface Line {
  readonly id: string;
  readonly tz: string;
  readonly env: Readonly<Record<string, string>>;
  readonly text: string;
}

/**
 * Writes schedules whose runs carry a command as a crontab: the inverse of importCrontab. Policies that crond does
 * not have are lost.
 * @param userColumn as system crontabs have it; the user is `data.user`.
 */
export function exportCrontab(
  schedules: readonly ExportableSchedule[],
  { userColumn = false }: { userColumn?: boolean } = {},
): CrontabExport {
  const refused: { id: string; reason: string }[] = [];
  const lines: Line[] = [];
  for (const schedule of schedules) {
    const line = lineOf(schedule, userColumn);
    if (typeof line === 'string') refused.push({ id: schedule.id, reason: line });
    else lines.push(line);
  }
  // A variable reaches all lines below it and cannot be unset: those with the fewest come first.
  lines.sort(
    (a, b) => Object.keys(a.env).length - Object.keys(b.env).length || order(a.tz, b.tz) || order(a.id, b.id),
  );
  const text: string[] = [];
  let env: Readonly<Record<string, string>> = {};
  let tz: string | undefined;
  for (const line of lines) {
    const leaked = Object.keys(env).find((name) => !Object.hasOwn(line.env, name));
    if (leaked !== undefined) {
      refused.push({
        id: line.id,
        reason: `${leaked} is set for another command, and a crontab cannot unset it`,
      });
      continue;
    }
    for (const [name, value] of Object.entries(line.env)) {
      if (!Object.hasOwn(env, name) || env[name] !== value) text.push(variableOf(name, value));
    }
    env = line.env;
    if (tz !== line.tz) text.push(`CRON_TZ=${line.tz}`);
    tz = line.tz;
    text.push(`# ${line.id}`, line.text);
  }
  return { text: text.map((line) => `${line}\n`).join(''), refused };
}

/** The line, or why there is none. */
function lineOf(
  { id, definition, template, paused }: ExportableSchedule,
  userColumn: boolean,
): Line | string {
  const command = commandOf(template);
  if (typeof command === 'string') return command;
  const [cron, ...more] = definition.cron ?? [];
  if (cron === undefined) return 'it is an interval, and crond knows expressions only';
  if (more.length > 0) return 'it has several expressions';
  const fields = cron.trim().split(/\s+/);
  const isNickname = cron.startsWith('@');
  if (!isNickname && fields.length !== 5) return `${cron}: crond takes five fields`;
  const problem = crondRefusal(fields);
  if (problem !== undefined) return `${cron}: crond does not take it: ${problem}`;
  if (userColumn && command.user === undefined) return 'it names no user (data.user)';
  const lost = Object.entries(command.env).find(([name, value]) => !isReadBack(name, value));
  if (lost !== undefined) return `no line of a crontab can set ${lost[0]} so (data.env)`;
  const user = userColumn ? `${command.user} ` : '';
  const text = `${fields.join(' ')} ${user}${writeCommand(command)}`;
  const unread = unreadOf(text, command, userColumn);
  if (unread !== undefined) return unread;
  const tz = spelledTimeZone(definition.tz ?? 'UTC');
  return { id, tz, env: command.env, text: paused ? `#${text}` : text };
}

/** Why a line is not read back as what it was written from; undefined if it is. */
function unreadOf(text: string, { command, stdin, user }: Command, userColumn: boolean): string | undefined {
  const [read] = parseCrontab(text, { userColumn });
  if (read?.kind === 'refused') return `crond does not take it: ${read.reason}`;
  if (read?.kind !== 'entry' || (userColumn && read.user !== user)) return 'no line of a crontab can say it';
  if (read.command === trimCommand(command) && read.stdin === stdin) return undefined;
  return 'its command or input has a % or a line break behind a backslash, which no crontab can say';
}

function isReadBack(name: string, value: string): boolean {
  const [read] = parseCrontab(variableOf(name, value));
  // One above the line would move its times.
  if (read?.kind !== 'env' || name === 'CRON_TZ') return false;
  return read.name === name && read.value === value;
}

function variableOf(name: string, value: string): string {
  return `${quoted(name)}=${quoted(value)}`;
}

/** What a run is to do, as importCrontab stores it; a text says what is missing. */
function commandOf({ name, data }: ExportableSchedule['template']): Command | string {
  const fields = (typeof data === 'object' && data !== null ? data : {}) as Readonly<Record<string, unknown>>;
  const { command, stdin, user, env = {} } = fields;
  if (name !== COMMAND_JOB || typeof command !== 'string' || command === '') {
    return `its runs are no commands: no name ${COMMAND_JOB} with data.command`;
  }
  if (/[\r\n]/.test(command)) return 'its command has several lines';
  if (
    typeof env !== 'object' ||
    env === null ||
    Object.values(env).some((value) => /[\r\n]/.test(String(value)))
  ) {
    return 'data.env holds what no variable can';
  }
  return {
    command,
    stdin: typeof stdin === 'string' ? stdin : undefined,
    user: typeof user === 'string' ? user : undefined,
    env: Object.fromEntries(Object.entries(env).map(([key, value]) => [key, String(value)])),
  };
}

function quoted(text: string): string {
  if (/^[A-Za-z0-9_@./:,+-]*$/.test(text)) return text;
  if (!text.includes('"')) return `"${text}"`;
  // Behind a first character that is none, quotes are characters as others are.
  return text.includes("'") ? text : `'${text}'`;
}

function order(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
