import type { Command } from 'commander';
import type { ScheduleHandle } from '../client/schedule-handle.js';
import { scheduleNotFound } from '../client/schedule-not-found.js';
import type { ChangeManyOptions, ChangeVerb } from '../client/schedules.js';
import { withKnownQueue } from './connect.js';
import { refuseArgument } from './failure.js';
import { offered } from './import.js';
import type { OfferFlags } from './offer-changes.js';
import { plain, printJson, printLine } from './output.js';
import { addFilterOptions, type FilterFlags, toFilter } from './schedule-filter-flags.js';
import { changeMany, DONE } from './schedules-change-many.js';
import { settingsOf } from './settings.js';

const HELP = `
With an id it is that schedule, at once. Without one it is every schedule of the queue that --tag, --state and --text
mean: they are shown first, and you are asked.`;

interface ChangeFlags extends FilterFlags, OfferFlags {
  note?: string;
  reason?: string;
  overlap?: 'allow' | 'policy';
  cancelRuns?: boolean;
  requestId?: string;
}

/** `carillon schedules pause`, `resume`, `trigger` and `delete`: of one, or of all that a filter means. */
export function addChanges(schedules: Command): void {
  verb(
    schedules,
    'pause',
    'keep schedules from firing until they are resumed',
    'pause billing --tag nightly',
  ).option('--note <text>', 'why, for whoever finds it');
  verb(
    schedules,
    'resume',
    'let paused or suspended schedules fire again',
    'resume billing --state suspended',
  );
  verb(schedules, 'trigger', 'run schedules now, beside their ticks', 'trigger billing nightly').option(
    '--overlap <policy>',
    'allow starts at once, policy takes its turn behind open runs (default: allow)',
  );
  verb(schedules, 'delete', 'delete schedules, with their ledgers', 'delete billing --tag old --dry-run')
    .option('--reason <text>', 'for the history')
    .option(
      '--cancel-runs',
      'also take back runs in the queue that no worker has fetched (default: they stay)',
    );
}

function verb(schedules: Command, name: ChangeVerb, description: string, example: string): Command {
  return offered(addFilterOptions(schedules.command(`${name} <queue> [id]`)))
    .description(description)
    .option('--request-id <text>', 'names this call: repeated with the same id it has its effect once')
    .addHelpText('after', `${HELP}\n\nExamples:\n  carillon schedules ${example}`)
    .action((queue: string, id: string | undefined, flags: ChangeFlags, command: Command) =>
      change(name, queue, id, flags, command),
    );
}

async function change(
  name: ChangeVerb,
  queue: string,
  id: string | undefined,
  flags: ChangeFlags,
  command: Command,
): Promise<void> {
  const settings = settingsOf(command);
  const filter = toFilter(flags);
  const options = optionsOf(flags);
  if (id === undefined) {
    if (filter === undefined) {
      refuseArgument('id', undefined, 'is missing', 'Give an id, or --tag, --state or --text.');
    }
    return changeMany(settings, queue, name, filter, options, flags);
  }
  if (filter !== undefined) refuseArgument('id', id, 'and a filter exclude each other', 'Give one.');
  const runId = await withKnownQueue(settings, queue, async (q) => {
    if (flags.dryRun !== true) return changeOne(name, queue, q.schedules.get(id), options);
    const meant = await q.schedules.change(name, { ids: [id] }, { dryRun: true });
    if (meant.length === 0) throw scheduleNotFound(queue, id);
    return undefined;
  });
  if (settings.json) {
    return printJson({
      queue,
      id,
      ...(flags.dryRun ? { dryRun: true } : {}),
      done: DONE[name],
      ...(runId && { runId }),
    });
  }
  const how = flags.dryRun ? 'would be ' : '';
  printLine(`${how}${DONE[name]} ${plain(id)} of ${queue}${runId ? `: ${plain(runId)}` : ''}`);
}

/** @returns the id of the run that it started. */
async function changeOne(
  name: ChangeVerb,
  queue: string,
  handle: ScheduleHandle,
  { note, ...options }: ChangeManyOptions,
): Promise<string | undefined> {
  if (name === 'trigger') return (await handle.trigger(options)).runId;
  if (name === 'resume') await handle.resume(options);
  else if (name === 'pause') await handle.pause({ ...options, ...(note === undefined ? {} : { note }) });
  else if (!(await handle.delete({ ...options, ...(note === undefined ? {} : { reason: note }) }))) {
    throw scheduleNotFound(queue, handle.id);
  }
  return undefined;
}

function optionsOf({ note, reason = note, overlap, cancelRuns, requestId }: ChangeFlags): ChangeManyOptions {
  return {
    ...(reason === undefined ? {} : { note: reason }),
    ...(overlap === undefined ? {} : { overlap }),
    ...(cancelRuns === undefined ? {} : { cancelRuns }),
    ...(requestId === undefined ? {} : { requestId }),
  };
}
