import type { Command } from 'commander';
import type { BackfillRange } from '../client/schedule-handle.js';
import { instantArgument } from './arguments.js';
import { withKnownQueue } from './connect.js';
import { plain, printJson, printLine, remark } from './output.js';
import { settingsOf } from './settings.js';

const HELP = `
Both ends are included. A tick that ran before, as far as the ledger or BullMQ remembers, is left out unless --rerun is
given, and so are ticks that the schedule has yet to judge by itself. One that is older than the ledger (--keep-runs)
and whose job BullMQ has removed nobody remembers: it runs again. Look with --dry-run first.

Example:
  carillon schedules backfill billing nightly --from 2027-01-01T00:00:00Z --to 2027-01-03T00:00:00Z --dry-run`;

interface BackfillFlags {
  from: string;
  to: string;
  overlap?: 'bufferAll' | 'allow';
  rerun?: boolean;
  dryRun?: boolean;
  requestId?: string;
}

/** `carillon schedules backfill`. */
export function addBackfill(schedules: Command): void {
  schedules
    .command('backfill <queue> <id>')
    .description('run ticks of the past that did not run')
    .requiredOption('--from <instant>', 'the first: 2027-01-31T09:12:00Z, or ms since 1970')
    .requiredOption('--to <instant>', 'the last, not later than now')
    .option(
      '--overlap <policy>',
      'bufferAll runs one at a time, allow beside each other (default: bufferAll)',
    )
    .option('--rerun', 'run also what ran before, under ids of its own')
    .option('--dry-run', 'only show which ticks would run')
    .option('--request-id <text>', 'names this call: repeated with the same id it has its effect once')
    .addHelpText('after', HELP)
    .action(backfill);
}

async function backfill(queue: string, id: string, flags: BackfillFlags, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const { overlap, rerun = false, dryRun = false, requestId } = flags;
  const range: BackfillRange = {
    from: instantArgument(flags.from, 'from'),
    to: instantArgument(flags.to, 'to'),
    rerun,
    dryRun,
    ...(overlap === undefined ? {} : { overlap }),
    ...(requestId === undefined ? {} : { requestId }),
  };
  const ticks = await withKnownQueue(settings, queue, (q) => q.schedules.get(id).backfill(range));
  if (settings.json) {
    const times = ticks.map((tick) => ({ at: tick.getTime(), utc: tick.toISOString() }));
    return printJson({ queue, id, dryRun, ticks: times });
  }
  for (const tick of ticks) printLine(`  ${tick.toISOString()}`);
  const size = `${ticks.length} ${ticks.length === 1 ? 'tick' : 'ticks'} of ${plain(id)} in ${queue}`;
  if (dryRun) remark(`a dry run of ${size}: nothing was written`);
  else printLine(`${size} to run, ${overlap === 'allow' ? 'beside each other' : 'one at a time'}`);
}
