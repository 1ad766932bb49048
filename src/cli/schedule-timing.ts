import { type Command, Option } from 'commander';
import { DIALECTS, type Dialect } from '../domain/dialect.js';
import { formatDuration } from '../domain/durations.js';
import type { TimingDefinition } from '../domain/fire-times-definition.js';
import type { StoredPolicies } from '../domain/schedule.js';
import { instantArgument, integerArgument } from './arguments.js';
import { remark } from './output.js';
import { translateCrons } from './schedule-dialect.js';

/** The flags that say when a schedule fires. */
export interface TimingFlags {
  cron?: string[];
  dialect?: Dialect;
  every?: string;
  anchor?: string;
  phase?: string;
  tz?: string;
  gap?: string;
  fold?: string;
  startDate?: string;
  endDate?: string;
  limit?: string;
}

/** Adds the flags of {@link TimingFlags} to a command. */
export function addTimingOptions(command: Command): Command {
  return command
    .option(
      '--cron <expression>',
      'five fields, six with seconds, or @daily; may be given again',
      (value, known) => [...((known as string[] | undefined) ?? []), value],
    )
    .addOption(
      new Option('--dialect <name>', 'the expressions are in the notation of another scheduler').choices(
        DIALECTS,
      ),
    )
    .option('--every <duration>', 'an interval: 15m, 1h30m')
    .option('--anchor <instant>', 'what an interval counts from (default: its creation)')
    .option('--phase <duration>', 'moves an interval’s ticks off its anchor')
    .option('--tz <zone>', 'an IANA time zone (default: UTC)')
    .option('--gap <policy>', 'a time that the clock skips: shift, edge or skip (default: shift)')
    .option('--fold <policy>', 'a time that the clock shows twice: first, last or both (default: first)')
    .option('--start-date <instant>', 'no tick before it')
    .option('--end-date <instant>', 'no tick after it')
    .option('--limit <count>', 'ends after so many ticks');
}

/** The definition behind the flags; what it means is checked by the domain. */
export function toDefinition(flags: TimingFlags, expressions: readonly string[] = []): TimingDefinition {
  const crons = [...(flags.cron ?? []), ...expressions];
  const [only] = crons;
  const { dialect, every, phase, tz, gap, fold, anchor, startDate, endDate, limit } = flags;
  const definition = {
    cron: crons.length === 1 ? only : undefined,
    crons: crons.length > 1 ? crons : undefined,
    every: every === undefined ? undefined : milliseconds(every),
    phase: phase === undefined ? undefined : milliseconds(phase),
    tz,
    gap,
    fold,
    anchor: anchor === undefined ? undefined : instantArgument(anchor, 'anchor'),
    startDate: startDate === undefined ? undefined : instantArgument(startDate, 'start-date'),
    endDate: endDate === undefined ? undefined : instantArgument(endDate, 'end-date'),
    limit: limit === undefined ? undefined : integerArgument(limit, 'limit', 1, Number.MAX_SAFE_INTEGER),
  };
  for (const key of Object.keys(definition) as (keyof typeof definition)[]) {
    if (definition[key] === undefined) delete definition[key];
  }
  if (dialect === undefined) return definition as TimingDefinition;
  const { cron, crons: _crons, ...rest } = definition;
  return {
    ...rest,
    ...translateCrons(dialect, crons, tz, (warning) => remark(`warning: ${warning}`)),
  } as TimingDefinition;
}

/** When a stored schedule fires, in a few words: `30 2 * * * Europe/London`, `every 15m`. */
export function timingText({ cron, every, tz }: StoredPolicies): string {
  if (every !== undefined) return `every ${formatDuration(every)}`;
  return `${(cron ?? []).join(' | ')} ${tz ?? 'UTC'}`;
}

/** Digits are ms on the command line. */
function milliseconds(text: string): number | string {
  return /^\d+$/.test(text) ? Number(text) : text;
}
