import { stableHash } from './stable-hash.js';

/** What a line of a crontab does, and when. */
export interface CommandLine {
  readonly cron: string;
  readonly tz: string;
  readonly command: string;
  readonly user: string | undefined;
  readonly stdin: string | undefined;
}

/** A schedule that an earlier import of the same crontab made. */
export interface StandingCommand extends CommandLine {
  readonly id: string;
}

/** The ids of lines, and what stands of their commands beyond them. */
export interface CommandIds {
  /** One for each line, in their order. */
  readonly ids: readonly string[];
  /** Ids that stand for a command, whatever its input, and no line has. */
  leftOf(line: Pick<CommandLine, 'command' | 'user'>): readonly string[];
}

const LONGEST_SLUG = 40;

/**
 * Chooses an id for each line: the command's first words, and six characters for the whole of it with its user and
 * input. It stays when the times change. A command under several zones has a zone among what the six stand for; one
 * that stands twice in a zone gets `-2`. A line whose times stand already keeps the id that it has there, wherever
 * it is in the file, and so does one whose command stands in its zone.
 */
export function commandIds(
  lines: readonly CommandLine[],
  { idPrefix = '', standing = [] }: { idPrefix?: string; standing?: readonly StandingCommand[] } = {},
): CommandIds {
  const ids: string[] = [];
  const used = new Set<string>();
  const stands = grouped(standing.filter(({ id }) => id.startsWith(idPrefix)));
  for (const [key, group] of grouped(lines.map((line, at) => ({ ...line, at })))) {
    const left = (stands.get(key) ?? []).sort(byNumber);
    const keep = (isSame: (line: CommandLine, old: StandingCommand) => boolean) => {
      for (const line of group) {
        const found = ids[line.at] === undefined ? left.findIndex((old) => isSame(line, old)) : -1;
        if (found >= 0) take(line.at, left.splice(found, 1)[0]?.id ?? '');
      }
    };
    keep((line, old) => old.tz === line.tz && old.cron === line.cron);
    keep((line, old) => old.tz === line.tz);
    const inZones = new Set(group.map(({ tz }) => tz)).size > 1;
    for (const line of group) {
      if (ids[line.at] !== undefined) continue;
      const first = idPrefix + commandId(line, inZones ? line.tz : '');
      let id = first;
      for (let n = 2; used.has(id); n++) id = `${first}-${n}`;
      take(line.at, id);
      const replaced = left.findIndex((old) => old.id === id);
      if (replaced >= 0) left.splice(replaced, 1);
    }
  }
  const leftOf = ({ command, user }: Pick<CommandLine, 'command' | 'user'>) =>
    [...stands.values()]
      .flat()
      .filter((old) => old.command === command && old.user === user)
      .map(({ id }) => id);
  return { ids, leftOf };

  function take(at: number, id: string): void {
    ids[at] = id;
    used.add(id);
  }
}

function grouped<T extends CommandLine>(all: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one]);
  return groups;
}

function keyOf({ command, user = '', stdin = '' }: CommandLine): string {
  return `${user}\n${command}\n${stdin}`;
}

/** `run-2` before `run-10`. */
function byNumber(a: StandingCommand, b: StandingCommand): number {
  return a.id.length - b.id.length || (a.id < b.id ? -1 : 1);
}

function commandId(line: CommandLine, zone: string): string {
  const words = line.command.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  let slug = '';
  for (const word of words) {
    const longer = slug === '' ? word.slice(0, LONGEST_SLUG) : `${slug}-${word}`;
    if (longer.length > LONGEST_SLUG) break;
    slug = longer;
  }
  const whole = zone === '' ? keyOf(line) : `${keyOf(line)}\n${zone}`;
  const hash = stableHash(whole).toString(36).padStart(6, '0').slice(-6);
  return slug === '' ? hash : `${slug}-${hash}`;
}
