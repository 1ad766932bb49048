import type { Command } from 'commander';
import { dataArgument, objectArgument } from './arguments.js';
import { withQueue } from './connect.js';
import { addExclusionOptions, type ExclusionFlags, toExclusions } from './exclusion-flags.js';
import { away, plain, printJson, printLine, remark, utc } from './output.js';
import { addPolicyOptions, type PolicyFlags, toPolicies } from './schedule-policies.js';
import { addTimingOptions, type TimingFlags, timingText, toDefinition } from './schedule-timing.js';
import { settingsOf } from './settings.js';

const EXAMPLES = `
Examples:
  carillon schedules upsert billing nightly --cron '30 2 * * *' --tz Europe/London --missed latest
  carillon schedules upsert health ping --every 15m --missed skip --name ping --data '{"url":"https://example.com"}'
  carillon schedules upsert billing hourly --cron '@hourly' --missed all --max-catchup 24 --overlap bufferOne`;

interface UpsertFlags extends TimingFlags, PolicyFlags, ExclusionFlags {
  name?: string;
  data?: string;
  dataFile?: string;
  opts?: string;
  requestId?: string;
}

/** `carillon schedules upsert`. */
export function addUpsert(schedules: Command): void {
  addExclusionOptions(addPolicyOptions(addTimingOptions(schedules.command('upsert <queue> <id>'))))
    .description('create a schedule, or make the one of that id what is said here')
    .option('--name <text>', 'the name of each run (default: the schedule’s id)')
    .option('--data <json>', 'the payload of each run (default: {})')
    .option('--data-file <path>', 'the payload from a file; - is standard input')
    .option('--opts <json>', 'BullMQ’s options of each run: attempts, backoff, …')
    .option('--request-id <text>', 'names this call: repeated with the same id it has its effect once')
    .addHelpText('after', EXAMPLES)
    .action(upsert);
}

async function upsert(queue: string, id: string, flags: UpsertFlags, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const { name, requestId } = flags;
  const definition = { ...toDefinition(flags), ...toPolicies(flags), ...toExclusions(flags) };
  const data = dataArgument(flags);
  const opts = flags.opts === undefined ? undefined : objectArgument(flags.opts, 'opts');
  const info = await withQueue(settings, queue, (q) =>
    q.schedules.upsert(id, definition, { name, data, opts }, requestId === undefined ? {} : { requestId }),
  );
  if (settings.json) return printJson({ queue, ...info });
  for (const warning of info.warnings) remark(`warning: ${warning}`);
  printLine(
    `${plain(id)} in ${queue}: ${timingText(info.definition)}, next ${utc(info.next)} (${away(info.next)})`,
  );
}
