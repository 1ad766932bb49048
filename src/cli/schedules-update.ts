import type { Command } from 'commander';
import type { JobOptions } from '../client/job-options.js';
import type { ScheduleDefinitionChange, ScheduleTemplateChange } from '../client/schedule-change.js';
import { SCHEDULE_KEYS } from '../domain/check-schedule.js';
import { nearestWord } from '../domain/nearest-word.js';
import { withKnownQueue } from './connect.js';
import { refuseArgument } from './failure.js';
import { printJson, printLine, remark } from './output.js';
import { printDifferences, remarkDryRun, remarkRepeated, scheduleLine } from './print-schedule.js';
import { addScheduleOptions, namedBy, type ScheduleFlags } from './schedule-flags.js';
import { settingsOf } from './settings.js';

/** Every schedule has these: they are replaced, never cleared. */
const NEEDED = ['cron', 'crons', 'pattern', 'every', 'missed'];
const TEMPLATE = ['name', 'data', 'opts'];
/** What `--clear` takes, by the names of the flags, and the option of each. */
const CLEARABLE = new Map(
  [...SCHEDULE_KEYS.filter((key) => !NEEDED.includes(key)), ...TEMPLATE].map((key) => [flagOf(key), key]),
);

const HELP = `
What is not named stays. --cron takes the place of --every and the other way round; --tag, --exclude, --after and --data
are replaced whole; --opts changes the options that it names, and null takes one away. Pending ticks move only when the times become others.
--clear takes: ${[...CLEARABLE.keys()].join(', ')}.

Examples:
  carillon schedules update billing nightly --cron '0 3 * * *' --dry-run
  carillon schedules update billing nightly --jitter 10m --clear end-date --clear tag`;

interface UpdateFlags extends ScheduleFlags {
  clear?: string[];
}

/** `carillon schedules update`. */
export function addUpdate(schedules: Command): void {
  addScheduleOptions(schedules.command('update <queue> <id>'), 'optional')
    .description('change what is named of a schedule, and keep the rest')
    .option('--clear <option>', 'take an option back to its default; may be given again', collect)
    .addHelpText('after', HELP)
    .action(update);
}

async function update(queue: string, id: string, flags: UpdateFlags, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const { dryRun = false, requestId } = flags;
  const { changes, template } = changesOf(id, flags);
  const options = { dryRun, ...(requestId === undefined ? {} : { requestId }) };
  const info = await withKnownQueue(settings, queue, (q) =>
    q.schedules.get(id).update(changes, template, options),
  );
  if (settings.json) return printJson({ queue, ...info, ...(dryRun ? { dryRun } : {}) });
  for (const warning of info.warnings) remark(`warning: ${warning}`);
  if (info.repeated) remarkRepeated();
  const done = info.differences.length === 0 ? 'unchanged' : dryRun ? 'would be updated' : 'updated';
  printLine(`${done} ${scheduleLine(queue, info)}`);
  printDifferences(info.differences);
  if (dryRun) remarkDryRun();
}

/** What the flags set and clear. @throws CarillonError INVALID_OPTION */
function changesOf(
  id: string,
  flags: UpdateFlags,
): { changes: ScheduleDefinitionChange; template: ScheduleTemplateChange<unknown, string, JobOptions> } {
  const { definition, template } = namedBy(flags);
  const changes: Record<string, unknown> = { ...definition };
  const parts: Record<string, unknown> = { ...template };
  const defaults: Record<string, unknown> = { name: id, data: {}, opts: null };
  for (const word of new Set(flags.clear)) {
    const option = CLEARABLE.get(word);
    if (option === undefined) {
      const meant = nearestWord(word, [...CLEARABLE.keys()]);
      const hint = meant === undefined ? '' : `Did you mean ${meant}? `;
      const todo = `${hint}Give one of ${[...CLEARABLE.keys()].join(', ')}.`;
      refuseArgument('clear', word, `${JSON.stringify(word)} is nothing that can be cleared`, todo);
    }
    if ((changes[option] ?? parts[option] ?? undefined) !== undefined) {
      refuseArgument(word, word, 'is both given and cleared', 'Do one of the two.');
    }
    if (TEMPLATE.includes(option)) parts[option] = defaults[option];
    else changes[option] = null;
  }
  if (Object.keys(changes).length + Object.keys(parts).length === 0) {
    refuseArgument(
      'update',
      undefined,
      'names nothing to change',
      'Give --cron, --jitter, --clear or another.',
    );
  }
  return { changes: changes as ScheduleDefinitionChange, template: parts };
}

/** The flag of an option, without its dashes. */
function flagOf(option: string): string {
  return option === 'tags' ? 'tag' : option.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

function collect(value: string, known: string[] = []): string[] {
  return [...known, value];
}
