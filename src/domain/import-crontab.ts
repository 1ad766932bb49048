import { type CrontabEntry, parseCrontab } from './crontab.js';
import { looksLikeField } from './crontab-fields.js';
import { commandIds, type StandingCommand } from './crontab-ids.js';
import type { Imported, ImportedSchedule } from './imported.js';
import type { MissedPolicy } from './schedule.js';

/** How the lines of a crontab become schedules. */
export interface CrontabImportOptions {
  /** True for system crontabs, whose sixth column is a user. Defaults to false. */
  userColumn?: boolean;
  /** The zone of lines above which no `CRON_TZ` stands. Defaults to `UTC`, never the host's. */
  tz?: string;
  /** crond runs nothing that it missed. Defaults to `skip`. */
  missed?: MissedPolicy;
  /** Put before each id, to keep the tables of several machines apart. Defaults to none. */
  idPrefix?: string;
  /** What earlier imports of this crontab made: a line keeps its id there. Defaults to none. */
  standing?: readonly StandingCommand[];
}

/** The job name of a command: what a worker's handler is chosen by. */
export const COMMAND_JOB = 'run-command';

/** Users whose names are no commands. */
const USERS = new Set(['root', 'nobody', 'daemon', 'www-data', 'nginx', 'apache', 'uucp']);

const FIVE = 'A crontab has five';

/**
 * Reads a crontab as schedules whose runs carry the command, its standard input, its user and its variables. What
 * crond would do is kept: missed ticks are dropped, runs may overlap.
 */
export function importCrontab(text: string, options: CrontabImportOptions = {}): Imported[] {
  const { tz = 'UTC', missed = 'skip', userColumn = false } = options;
  const lines = parseCrontab(text, { userColumn });
  const entries = lines.filter((line) => line.kind === 'entry');
  const { ids, leftOf } = commandIds(
    entries.map((entry) => ({ ...entry, cron: entry.expression, tz: entry.tz ?? tz })),
    options,
  );
  const imported: Imported[] = [];
  let at = 0;
  for (const line of lines) {
    if (line.kind === 'refused') {
      const { expression, command, user, reason } = line;
      imported.push({
        kind: 'refused',
        line: line.line,
        text: `${expression} ${command}`.trim(),
        reason,
        ids: leftOf({ command, user }),
      });
    }
    if (line.kind === 'entry') imported.push(scheduleOf(line, ids[at++] ?? '', line.tz ?? tz, missed));
  }
  return imported;
}

function scheduleOf(entry: CrontabEntry, id: string, tz: string, missed: MissedPolicy): ImportedSchedule {
  const { command, stdin, user, env } = entry;
  return {
    kind: 'schedule',
    line: entry.line,
    id,
    definition: { cron: entry.expression, tz, missed, overlap: 'allow', tags: ['crontab'] },
    template: {
      name: COMMAND_JOB,
      data: {
        command,
        ...(stdin === undefined ? {} : { stdin }),
        ...(user === undefined ? {} : { user }),
        env,
      },
    },
    paused: false,
    notTranslated: notTranslated(entry),
    warnings: [
      ...entry.notes.filter(
        (note) => note !== 'no newline at end of file' && !note.startsWith('text after the first bare %'),
      ),
      ...userHint(entry),
      ...fieldHint(entry),
    ],
  };
}

/** A system crontab that is read as a user's has the user for its first command word. */
function userHint({ user, command }: CrontabEntry): string[] {
  const [first = '', ...more] = command.split(/\s+/);
  if (user !== undefined || more.length === 0 || !USERS.has(first)) return [];
  return [`${first}: a user, not a command? --user-column reads it so`];
}

/** Six fields, as other schedulers have them, leave the last one for a command or a user. */
function fieldHint({ user, command }: CrontabEntry): string[] {
  const [first = '', ...more] = command.split(/\s+/);
  if (user !== undefined && looksLikeField(user)) return [`${user}: a sixth field, not a user? ${FIVE}`];
  if (more.length === 0 || !looksLikeField(first)) return [];
  return [`${first}: a sixth field, not a command? ${FIVE}`];
}

function notTranslated({ user, env }: CrontabEntry): string[] {
  const lost: string[] = [];
  if (user !== undefined)
    lost.push(`user ${user}: the worker runs as who started it, unless it reads data.user`);
  if (env.MAILTO !== undefined && env.MAILTO !== '')
    lost.push(`MAILTO=${env.MAILTO}: no output is sent by mail`);
  const delay = env.RANDOM_DELAY?.trim() ?? '';
  if (delay !== '' && Number(delay) !== 0)
    lost.push(
      `RANDOM_DELAY=${delay}: no delay is drawn as cronie draws it, in minutes; jitter does the like`,
    );
  return lost;
}
