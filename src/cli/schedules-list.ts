import type { Command } from 'commander';
import type { JobListOptions, ListedJob } from '../client/admin-listing.js';
import type { RecordState } from '../domain/states.js';
import { integerArgument } from './arguments.js';
import { withAdmin } from './connect.js';
import { away, printJson, printTable, remark, utc } from './output.js';
import { addFilterOptions, type FilterFlags } from './schedule-filter-flags.js';
import { timingText } from './schedule-timing.js';
import { settingsOf } from './settings.js';

const EXAMPLE = '\nExample:\n  carillon schedules list billing --tag nightly --state paused,suspended';

interface ListFlags extends FilterFlags {
  limit?: string;
  cursor?: string;
}

/** `carillon schedules list`. */
export function addList(schedules: Command): void {
  addFilterOptions(schedules.command('list [queue]'))
    .description('schedules with their pending ticks, in no order; a comma stands between several states')
    .option('--limit <count>', 'at most so many, 1 to 1000 (default: 100)')
    .option('--cursor <cursor>', 'go on where the page before ended')
    .addHelpText('after', EXAMPLE)
    .action(list);
}

async function list(queue: string | undefined, flags: ListFlags, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const page = await withAdmin(settings, (admin) => admin.jobs(listingOf(queue, flags)));
  if (settings.json) {
    const schedules = page.items.map(({ data, kind, priority, scheduledFor, ...schedule }) => ({
      ...schedule,
      next: scheduledFor ?? null,
    }));
    return printJson({ schedules, cursor: page.cursor ?? null });
  }
  await printTable(['queue', 'id', 'state', 'when', 'next', '', 'repeats', 'note'], page.items.map(row));
  if (page.items.length === 0) remark('there are no such schedules');
  if (page.cursor !== undefined) remark(`there is more: --cursor ${page.cursor}`);
}

function listingOf(queue: string | undefined, flags: ListFlags): JobListOptions {
  const { tag, state, text, cursor } = flags;
  const options: JobListOptions = { kind: 'schedule' };
  if (queue !== undefined) options.queue = queue;
  if (tag !== undefined) options.tag = tag;
  if (state !== undefined) options.states = state.split(',') as RecordState[];
  if (text !== undefined) options.text = text;
  if (cursor !== undefined) options.cursor = cursor;
  if (flags.limit !== undefined) options.limit = integerArgument(flags.limit, 'limit', 1, 1000);
  return options;
}

function row(job: ListedJob): string[] {
  const when = job.definition === undefined ? '?' : timingText(job.definition);
  const next = [utc(job.scheduledFor), away(job.scheduledFor)];
  return [job.queue, job.id, job.state, when, ...next, job.repeats ?? '', job.note ?? ''];
}
