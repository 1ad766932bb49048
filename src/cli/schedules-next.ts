import type { Command } from 'commander';
import { compileSchedule } from '../domain/fire-times.js';
import { neverFires } from '../domain/never-fires.js';
import { type PreviewedTime, previewTicks } from '../domain/preview.js';
import { durationArgument, instantArgument, integerArgument } from './arguments.js';
import { withKnownQueue } from './connect.js';
import { addExclusionOptions, type ExclusionFlags, excludeByFlags } from './exclusion-flags.js';
import { refuseArgument } from './failure.js';
import { printJson, printTable, remark, utc } from './output.js';
import { addTimingOptions, type TimingFlags, timingText, toDefinition } from './schedule-timing.js';
import { settingsOf } from './settings.js';

const HELP = `
With one argument it is a cron expression, and nothing is asked of any server; with two, a queue and the id of a
schedule that is stored. Times are shown as the clock of the zone shows them, and in UTC.

Examples:
  carillon schedules next '30 2 * * *' --tz Europe/London --count 5
  carillon schedules next '30 1 * * *' --tz America/New_York --fold both --after 2026-10-31T12:00:00Z
  carillon schedules next '0 0 12 ? * 2-6' --dialect quartz
  carillon schedules next --every 90m --anchor 2026-01-01T00:00:00Z
  carillon schedules next '0 9 * * 5' --exclude 2026-12-25 --exclude calendar:uk-holidays --on-excluded next
  carillon schedules next billing nightly`;

const MOST = 1000;

interface NextFlags extends TimingFlags, ExclusionFlags {
  count?: string;
  after?: string;
  seed?: string;
  jitter?: string;
}

interface Preview {
  when: string;
  tz: string;
  times: PreviewedTime[];
  warnings: readonly string[];
}

/** `carillon schedules next`. */
export function addNext(schedules: Command): void {
  addExclusionOptions(addTimingOptions(schedules.command('next [expression-or-queue] [id]')))
    .description('the next times of an expression, or of a stored schedule')
    .option('--count <count>', `how many, 1 to ${MOST} (default: 10)`)
    .option('--after <instant>', 'the times after this one (default: now)')
    .option('--seed <queue:id>', 'the schedule’s identity, which H, ~ and jitter take their values from')
    .option('--jitter <duration>', 'spread fire times by up to this; needs --seed')
    .addHelpText('after', HELP)
    .action(next);
}

async function next(
  first: string | undefined,
  id: string | undefined,
  flags: NextFlags,
  command: Command,
): Promise<void> {
  const { json } = settingsOf(command);
  const count = flags.count === undefined ? 10 : integerArgument(flags.count, 'count', 1, MOST);
  const preview =
    first !== undefined && id !== undefined
      ? await ofStored(first, id, count, flags, command)
      : await ofDefinition(first, count, flags, command);
  if (json) return printJson({ ...preview, times: preview.times.map(timeJson) });
  for (const warning of preview.warnings) remark(`warning: ${warning}`);
  const jitters = preview.times.some(({ at, fireAt }) => fireAt !== at);
  await printTable(
    [preview.tz, 'UTC', ...(jitters ? ['fires'] : []), ''],
    preview.times.map(({ at, fireAt, wallClock, notes, excluded = [] }) => [
      wallClock,
      utc(at),
      ...(jitters ? [utc(fireAt)] : []),
      [...excluded, ...notes].map(({ text }) => text).join('; '),
    ]),
  );
  if (preview.times.length === 0) remark('no tick comes');
}

async function ofDefinition(
  expression: string | undefined,
  count: number,
  flags: NextFlags,
  command: Command,
): Promise<Preview> {
  const after = flags.after === undefined ? Date.now() : instantArgument(flags.after, 'after');
  const definition = toDefinition(flags, expression === undefined ? [] : [expression]);
  const options = { createdAt: after, ...(flags.seed === undefined ? {} : { seed: flags.seed }) };
  const compiled = compileSchedule(definition, options);
  const timing = await excludeByFlags(compiled, flags, settingsOf(command));
  const limit = Math.min(count, timing.limit ?? count);
  const when =
    definition.every === undefined
      ? [definition.cron ?? definition.crons].flat().join(' | ')
      : `every ${definition.every}`;
  const jitter = jitterOf(flags);
  const times = previewTicks(timing, { missed: 'skip', jitter }, flags.seed ?? '', after, limit);
  const why = neverFires(timing, definition, options, after);
  const warnings = why === undefined ? timing.warnings : [...timing.warnings, why];
  return { when, tz: timing.tz, times, warnings };
}

/** ms; a tick's jitter is the identity's own. */
function jitterOf({ jitter, seed }: NextFlags): number {
  if (jitter === undefined) return 0;
  if (seed === undefined) refuseArgument('jitter', jitter, 'needs seed', 'Give --seed <queue:id>.');
  return durationArgument(jitter, 'jitter');
}

async function ofStored(
  queue: string,
  id: string,
  count: number,
  flags: NextFlags,
  command: Command,
): Promise<Preview> {
  const given = Object.keys(flags).find(
    (name) => !['count'].includes(name) && flags[name as keyof NextFlags] !== undefined,
  );
  if (given !== undefined) {
    refuseArgument(
      given,
      flags[given as keyof NextFlags],
      'is not asked of a stored schedule',
      'Leave it out.',
    );
  }
  return withKnownQueue(settingsOf(command), queue, async (q) => {
    const handle = q.schedules.get(id);
    const times = await handle.preview(count);
    const info = await handle.describe();
    const definition = info?.definition;
    return {
      when: definition === undefined ? '' : timingText(definition),
      tz: definition?.tz ?? 'UTC',
      times,
      warnings: info?.warnings ?? [],
    };
  });
}

function timeJson({ at, fireAt, wallClock, notes, excluded = [], movedFrom }: PreviewedTime) {
  return { at, utc: utc(at), local: wallClock, fireAt, notes, excluded, movedFrom };
}
