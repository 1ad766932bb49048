import { readCommand } from './crontab-command.js';
import { crondRefusal, isNumericField, lostJoin } from './crontab-fields.js';
import { isCarillonError } from './errors.js';
import { compileSchedule } from './fire-times.js';
import { checkOptionsOf } from './function-options.js';
import { isTimeZone, spelledTimeZone } from './time-zone-names.js';
import { narrowWideSteps } from './wide-steps.js';

interface Line {
  /** Counted from 1. */
  readonly line: number;
  /** What the reader should know, as short sentences. */
  readonly notes: readonly string[];
}

/** A line that runs a command at times. */
export interface CrontabEntry extends Line {
  readonly kind: 'entry';
  /** Five fields separated by one blank, or a nickname. A step beyond its range is the one value that it names. */
  readonly expression: string;
  /** The zone set by the last `CRON_TZ` above; undefined where none is set. */
  readonly tz: string | undefined;
  /** The user column of a system crontab. */
  readonly user: string | undefined;
  /** The command, with `\%` put back to `%`. */
  readonly command: string;
  /** What follows the first bare `%`, with further ones as line breaks; undefined if there is none. */
  readonly stdin: string | undefined;
  /** The variables set above, without `CRON_TZ`. */
  readonly env: Readonly<Record<string, string>>;
}

export interface CrontabVariable extends Line {
  readonly kind: 'env';
  readonly name: string;
  readonly value: string;
}

export interface CrontabRefusal extends Line {
  readonly kind: 'refused';
  readonly reason: string;
  /** The line's parts as far as they could be told apart. */
  readonly expression: string;
  readonly tz: string | undefined;
  readonly user: string | undefined;
  readonly command: string;
}

export interface CrontabComment extends Line {
  readonly kind: 'comment';
}

export interface CrontabBlank extends Line {
  readonly kind: 'blank';
}

export type CrontabLine = CrontabEntry | CrontabVariable | CrontabRefusal | CrontabComment | CrontabBlank;

export interface CrontabOptions {
  /** True for system crontabs (`/etc/crontab`, `/etc/cron.d`), whose sixth column is a user. Defaults to false. */
  userColumn?: boolean;
}

/** Before the fields it tells cronie not to log the runs. */
const QUIET = /^-(?=[^ \t])/;
const QUIET_NOTE = 'the - before it keeps cronie from logging it; only root’s crontab has that';
const SIX_FIELDS = 'for seconds: carillon schedules upsert <queue> <id> --cron with six';
/** What an unknown zone is to cron anyhow. */
const MEANS_UTC = /^(?:etc\/)?(?:utc|uct|gmt|gmt0|gmt[+-]0|greenwich|universal|zulu)$/i;

/** What the lines above leave behind for those below. */
interface Context {
  readonly userColumn: boolean;
  tz: string | undefined;
  readonly env: Record<string, string>;
}

/**
 * Reads the text of a crontab file as crond would, one result a line. Never throws for a line: what crond or
 * Carillon cannot run is `refused` with a reason, and the other lines stand. A byte order mark and CRLF are taken.
 * @throws CarillonError INVALID_OPTION for an unknown option.
 */
export function parseCrontab(text: string, options: CrontabOptions = {}): CrontabLine[] {
  checkOptionsOf('parseCrontab', options, ['userColumn']);
  const lines = text.replace(/^\uFEFF/, '').split('\n');
  const whole = lines.at(-1) === '';
  if (whole) lines.pop();
  // Without a prototype: `__proto__` is a name like others.
  const context: Context = {
    userColumn: options.userColumn ?? false,
    tz: undefined,
    env: Object.create(null),
  };
  return lines.map((raw, i) => {
    const parsed = parseLine(raw.replace(/\r$/, ''), i + 1, context);
    if (whole || i < lines.length - 1 || parsed.kind !== 'entry') return parsed;
    return { ...parsed, notes: [...parsed.notes, 'no newline at end of file'] };
  });
}

function parseLine(raw: string, line: number, context: Context): CrontabLine {
  const text = raw.replace(/^[ \t]+/, '');
  if (text === '') return { line, kind: 'blank', notes: [] };
  if (text.startsWith('#')) return { line, kind: 'comment', notes: [] };
  return parseVariable(text, line, context) ?? parseEntry(text, line, context);
}

const VARIABLE =
  /^(?:'([^'=]+)'|"([^"=]+)"|([^\s='"]+))[ \t]*=[ \t]*(?:'([^']*)'|"([^"]*)"|([^'"\s].*?)?)[ \t]*$/;

function parseVariable(text: string, line: number, context: Context): CrontabVariable | undefined {
  const match = VARIABLE.exec(text);
  if (match === null) return undefined;
  const name = match[1] ?? match[2] ?? match[3] ?? '';
  const value = match[4] ?? match[5] ?? match[6] ?? '';
  const notes: string[] = [];
  if (name === 'CRON_TZ') {
    context.tz = value === '' ? undefined : value;
    if (zoneRefusal(context.tz) !== undefined) notes.push('unknown zone');
  } else {
    context.env[name] = value;
    if (name === 'TZ') notes.push('TZ is for the command; only CRON_TZ moves the times');
  }
  return { line, kind: 'env', name, value, notes };
}

function parseEntry(raw: string, line: number, context: Context): CrontabEntry | CrontabRefusal {
  const text = raw.replace(QUIET, '');
  const columns = (text.startsWith('@') ? 1 : 5) + (context.userColumn ? 1 : 0);
  const { words, rest } = takeWords(text, columns);
  const user = context.userColumn ? words[columns - 1] : undefined;
  const fields = words.slice(0, context.userColumn ? columns - 1 : columns);
  const { command, stdin } = readCommand(rest);
  const base = { line, expression: fields.join(' '), tz: context.tz, user, command };
  const { fields: narrowed, warnings } = narrowWideSteps(fields, 'crond', 7);
  const reason = refusal(base, fields, context) ?? lostJoin(fields, narrowed);
  if (reason !== undefined) return { ...base, kind: 'refused', reason, notes: [] };
  const notes = [
    ...(stdin === undefined ? [] : ['text after the first bare % is standard input']),
    ...(text !== raw && !context.userColumn ? [QUIET_NOTE] : []),
    ...warnings,
  ];
  const expression = narrowed.join(' ');
  try {
    // The seed only lets `~` be judged; the schedule's own identity chooses the value.
    const timing = compileSchedule({ cron: expression, tz: context.tz }, { seed: 'crontab' });
    return {
      ...base,
      kind: 'entry',
      expression,
      stdin,
      env: { ...context.env },
      notes: [...notes, ...timing.warnings],
    };
  } catch (error) {
    if (isCarillonError(error)) return { ...base, kind: 'refused', reason: error.message, notes };
    throw error;
  }
}

function refusal(
  { user, command, tz }: Pick<CrontabRefusal, 'user' | 'command' | 'tz'>,
  fields: readonly string[],
  { userColumn }: Context,
): string | undefined {
  if (!fields[0]?.startsWith('@') && fields.length < 5) return 'fewer than five fields';
  const problem = crondRefusal(fields);
  if (problem !== undefined) return problem;
  const layout = `a crontab has five fields, ${userColumn ? 'a user and then' : 'and then'} a command; ${SIX_FIELDS}`;
  if (user !== undefined && isNumericField(user)) return `${user} is no user: ${layout}`;
  if (command === '') return 'no command';
  if (command.startsWith('*')) return `${command.split(/[ \t]/)[0]} is no command: ${layout}`;
  return zoneRefusal(tz);
}

function zoneRefusal(tz: string | undefined): string | undefined {
  if (tz === undefined) return undefined;
  if (!isTimeZone(tz)) return `unknown zone ${tz}`;
  const name = spelledTimeZone(tz);
  if (name === tz || MEANS_UTC.test(tz)) return undefined;
  return `unknown zone ${tz}: cron tells large letters from small ones and ran this by UTC; write CRON_TZ=${name}, or CRON_TZ=UTC to keep the times it had`;
}

/** The first `count` words of a line, or fewer if it ends before, and what follows them. */
function takeWords(text: string, count: number): { words: string[]; rest: string } {
  const words: string[] = [];
  let rest = text;
  while (words.length < count) {
    const match = /^([^ \t]+)[ \t]*/.exec(rest);
    if (match === null) break;
    words.push(match[1] ?? '');
    rest = rest.slice(match[0].length);
  }
  return { words, rest };
}
