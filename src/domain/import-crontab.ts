import { type CrontabEntry, parseCrontab } from './crontab.js';
import type { Imported, ImportedSchedule } from './imported.js';
import type { MissedPolicy } from './schedule.js';
import { stableHash } from './stable-hash.js';

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
}

/** The job name of a command: what a worker's handler is chosen by. */
export const COMMAND_JOB = 'run-command';
const LONGEST_SLUG = 40;

/**
 * Reads a crontab as schedules whose runs carry the command, its standard input, its user and its variables. What
 * crond would do is kept: missed ticks are dropped, runs may overlap.
 */
export function importCrontab(text: string, options: CrontabImportOptions = {}): Imported[] {
  const { tz = 'UTC', missed = 'skip', idPrefix = '' } = options;
  const taken = new Map<string, number>();
  const imported: Imported[] = [];
  for (const line of parseCrontab(text, { userColumn: options.userColumn ?? false })) {
    if (line.kind === 'refused') {
      const { expression, command, reason } = line;
      imported.push({ kind: 'refused', line: line.line, text: `${expression} ${command}`.trim(), reason });
    }
    if (line.kind === 'entry') {
      const id = idPrefix + commandId(line);
      const earlier = taken.get(id) ?? 0;
      taken.set(id, earlier + 1);
      imported.push(scheduleOf(line, earlier === 0 ? id : `${id}-${earlier + 1}`, line.tz ?? tz, missed));
    }
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
    warnings: entry.notes.filter(
      (note) => note !== 'no newline at end of file' && !note.startsWith('text after the first bare %'),
    ),
  };
}

function notTranslated({ user, env }: CrontabEntry): string[] {
  const lost: string[] = [];
  if (user !== undefined)
    lost.push(`user ${user}: the worker runs as who started it, unless it reads data.user`);
  if (env.MAILTO !== undefined && env.MAILTO !== '')
    lost.push(`MAILTO=${env.MAILTO}: no output is sent by mail`);
  return lost;
}

/**
 * A name that stays when the times change: the command's first words, and six characters for the whole of it with
 * its user and input. A second line with the same command gets `-2`.
 */
function commandId({ command, user = '', stdin = '' }: CrontabEntry): string {
  const words = command.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  let slug = '';
  for (const word of words) {
    const longer = slug === '' ? word.slice(0, LONGEST_SLUG) : `${slug}-${word}`;
    if (longer.length > LONGEST_SLUG) break;
    slug = longer;
  }
  const hash = stableHash(`${user}\n${command}\n${stdin}`).toString(36).padStart(6, '0').slice(-6);
  return slug === '' ? hash : `${slug}-${hash}`;
}
