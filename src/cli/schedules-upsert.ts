import type { Command } from 'commander';
import type { ScheduleInfo } from '../client/schedule-info.js';
import type { ScheduleChange, WantedSchedule } from '../client/wanted-schedule.js';
import { checkSchedule } from '../domain/check-schedule.js';
import { checkScheduleId, identityOf } from '../domain/ids.js';
import type { ScheduleDefinition } from '../domain/schedule.js';
import { namespaceIsThere } from './apply-changes.js';
import { withQueue } from './connect.js';
import { printJson, printLine, remark } from './output.js';
import { printDifferences, remarkDryRun, remarkRepeated, scheduleLine } from './print-schedule.js';
import { addScheduleOptions, namedBy, type ScheduleFlags } from './schedule-flags.js';
import { type Settings, settingsOf } from './settings.js';

const HELP = `
What is not said here goes back to its default, also of a schedule that exists: the lines below the first say what became
otherwise. \`schedules update\` changes what is named and keeps the rest.

Examples:
  carillon schedules upsert billing nightly --cron '30 2 * * *' --tz Europe/London --missed latest
  carillon schedules upsert health ping --every 15m --missed skip --name ping --data '{"url":"https://example.com"}'
  carillon schedules upsert billing hourly --cron '@hourly' --missed all --max-catchup 24 --overlap bufferOne
  carillon schedules upsert billing report --cron '0 3 * * *' --missed latest --after nightly --after etl:load`;

/** One of these takes the place of another: none was forgotten. */
const SOURCES = ['cron', 'crons', 'every'];

/** `carillon schedules upsert`. */
export function addUpsert(schedules: Command): void {
  addScheduleOptions(schedules.command('upsert <queue> <id>'), 'required')
    .description('create a schedule, or make the one of that id what is said here')
    .addHelpText('after', HELP)
    .action(upsert);
}

async function upsert(queue: string, id: string, flags: ScheduleFlags, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const { dryRun = false, requestId } = flags;
  const { template, ...named } = namedBy(flags);
  const definition = named.definition as ScheduleDefinition;
  const policies = checkSchedule(definition, identityOf(queue, checkScheduleId(id)));
  const change = await compare(settings, queue, { id, policies, template });
  const info = dryRun
    ? undefined
    : await withQueue(settings, queue, (q) =>
        q.schedules.upsert(id, definition, template, requestId === undefined ? {} : { requestId }),
      );
  const repeated = info?.repeated ?? false;
  const { kind, differences } = repeated ? { kind: 'unchanged', differences: [] } : change;
  if (settings.json) {
    const shown = info ?? { id, dryRun: true, definition: policies, template };
    return printJson({ queue, ...shown, change: kind, differences });
  }
  warn(info);
  if (repeated) remarkRepeated();
  const would = info === undefined ? `${kind === 'unchanged' ? '' : 'would be '}${kind} ` : '';
  printLine(`${would}${scheduleLine(queue, info ?? { id, definition: policies, next: undefined })}`);
  printDifferences(differences);
  const said = [...SOURCES, ...Object.keys(definition), ...Object.keys(template)];
  const reset = differences.map(({ option }) => option).filter((option) => !said.includes(option));
  if (reset.length > 0) {
    remark(
      `not said here, so back to the default: ${reset.join(', ')}; \`schedules update\` keeps what is not named`,
    );
  }
  if (dryRun) remarkDryRun();
}

/** What it will change, as of now. */
async function compare(settings: Settings, queue: string, wanted: WantedSchedule): Promise<ScheduleChange> {
  const { compareSchedule } = await import('../client/wanted-schedule.js');
  const existing = (await namespaceIsThere(settings))
    ? await withQueue(settings, queue, (q) => q.schedules.get(wanted.id).describe())
    : undefined;
  return compareSchedule(existing, wanted);
}

function warn(info: ScheduleInfo | undefined): void {
  for (const warning of info?.warnings ?? []) remark(`warning: ${warning}`);
}
