import { type Command, Option } from 'commander';
import type { ScheduleInfo } from '../client/schedule-info.js';
import { exportCrontab } from '../domain/export-crontab.js';
import { namespaceIsThere } from './apply-changes.js';
import { withAdmin, withQueue } from './connect.js';
import { refuseArgument } from './failure.js';
import { offered } from './import.js';
import type { OfferFlags } from './offer-changes.js';
import { printJson, remark } from './output.js';
import { type Settings, settingsOf } from './settings.js';

const EXAMPLES = `
Examples:
  carillon export > schedules.yaml
  carillon export crontab --format crontab
  carillon export --to bullmq emails --dry-run`;

interface Flags extends OfferFlags {
  queue?: string;
  format: 'yaml' | 'crontab';
  userColumn?: boolean;
  to?: 'bullmq';
}

/** Schedules as a file, or all that a queue's timers hold back into BullMQ: `carillon export`. */
export function addExport(program: Command): void {
  offered(program.command('export [queue]'))
    .description('print schedules as a file that apply takes back, or move a queue back into BullMQ')
    .option('--queue <name>', 'only of this queue (default: all)')
    .addOption(
      new Option('--format <name>', 'of the file; crontab holds runs of commands')
        .choices(['yaml', 'crontab'])
        .default('yaml'),
    )
    .option('--user-column', 'write the user column of system crontabs')
    .addOption(
      new Option('--to <where>', 'into Job Schedulers and delayed jobs; shows it and asks').choices([
        'bullmq',
      ]),
    )
    .addHelpText('after', EXAMPLES)
    .action(exportSchedules);
}

async function exportSchedules(
  positional: string | undefined,
  flags: Flags,
  command: Command,
): Promise<void> {
  const settings = settingsOf(command);
  const queue = positional ?? flags.queue;
  if (positional !== undefined && flags.queue !== undefined && positional !== flags.queue) {
    refuseArgument('queue', flags.queue, 'is named twice', 'Name it once.');
  }
  if (flags.to === 'bullmq') {
    if (queue === undefined) {
      refuseArgument(
        'queue',
        queue,
        'is missing',
        'Name the queue to move: carillon export --to bullmq emails.',
      );
    }
    const { exportBullmq } = await import('./export-bullmq.js');
    return exportBullmq(settings, queue, flags);
  }
  const queues = await readQueues(settings, queue);
  if (settings.json) {
    return printJson({ queues: Object.fromEntries(queues) });
  }
  if (flags.format === 'yaml') {
    const { schedulesYaml } = await import('./export-yaml.js');
    process.stdout.write(schedulesYaml(queues));
    return;
  }
  const schedules = [...queues.values()].flat().map(({ id, definition, template, state }) => ({
    id,
    definition,
    template,
    paused: state !== 'scheduled',
  }));
  const { text, refused } = exportCrontab(schedules, { userColumn: flags.userColumn ?? false });
  process.stdout.write(text);
  for (const { id, reason } of refused) remark(`not exported: ${id}: ${reason}`);
}

/** The schedules of one queue or of all, by queue and id in order. */
async function readQueues(
  settings: Settings,
  only: string | undefined,
): Promise<Map<string, ScheduleInfo[]>> {
  const found = new Map<string, ScheduleInfo[]>();
  if (!(await namespaceIsThere(settings))) return found;
  const names =
    only === undefined
      ? (await withAdmin(settings, (admin) => admin.queues()))
          .filter(({ schedules }) => schedules > 0)
          .map(({ name }) => name)
      : [only];
  for (const name of names.sort()) {
    const infos: ScheduleInfo[] = [];
    await withQueue(settings, name, async (q) => {
      for await (const info of q.schedules.list()) infos.push(info);
    });
    if (only !== undefined && infos.length === 0) remark(`the queue ${name} has no schedules`);
    found.set(
      name,
      infos.sort((a, b) => (a.id < b.id ? -1 : 1)),
    );
  }
  return found;
}
