import type { Command } from 'commander';
import { integerArgument } from './arguments.js';
import { withAdmin } from './connect.js';
import { away, printJson, printTable, remark, utc } from './output.js';
import { settingsOf } from './settings.js';

/** `carillon jobs history`. */
export function addHistory(jobs: Command): void {
  jobs
    .command('history [queue] [id]')
    .description('ends that BullMQ does not know of, newest first: skipped, cancelled, quarantined, …')
    .option('--limit <count>', 'at most so many, 1 to 1000 (default: 100)')
    .action(history);
}

async function history(
  queue: string | undefined,
  jobId: string | undefined,
  flags: { limit?: string },
  command: Command,
): Promise<void> {
  const settings = settingsOf(command);
  const limit = flags.limit === undefined ? 100 : integerArgument(flags.limit, 'limit', 1, 1000);
  const entries = await withAdmin(settings, (admin) =>
    admin.history({ limit, ...(queue && { queue }), ...(jobId && { jobId }) }),
  );
  if (settings.json) return printJson({ history: entries });
  await printTable(
    ['when', 'job', 'what', 'reason', 'due'],
    entries.map(({ at, job, what, reason, scheduledFor }) => [
      away(at),
      job,
      what,
      reason,
      utc(scheduledFor),
    ]),
  );
  if (entries.length === 0) remark('nothing ended here that BullMQ does not know of');
}
