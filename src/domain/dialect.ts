import { clockChanges } from './clock-changes.js';
import { type CronSource, refusalOf } from './cron-refusal.js';
import { eventBridgeTiming } from './dialect-eventbridge.js';
import type { DialectTiming } from './dialect-fields.js';
import { quartzTiming } from './dialect-quartz.js';
import { springTiming } from './dialect-spring.js';
import { isCarillonError } from './errors.js';
import { compileSchedule } from './fire-times.js';
import type { TimingDefinition } from './fire-times-definition.js';

/** Notations of other schedulers that look like cron and mean something else. */
export type Dialect = 'quartz' | 'spring' | 'eventbridge';

/** A foreign expression as a timing of ours, or why there is none. */
export type Translation =
  | { readonly timing: TimingDefinition; readonly warnings: readonly string[] }
  | { readonly refused: string };

const READERS: Readonly<Record<Dialect, (source: CronSource) => DialectTiming>> = {
  quartz: quartzTiming,
  spring: springTiming,
  eventbridge: eventBridgeTiming,
};

export const DIALECTS = Object.keys(READERS) as readonly Dialect[];

/** Whether a zone changes its clocks at all is asked from 2026 on. */
const FROM = Date.UTC(2026, 0, 1);

/**
 * Translates an expression of another scheduler. What that scheduler would refuse has never run and is refused here
 * too; so is what no timing of ours can say. Never throws for an expression.
 * @param tz the zone it is read in; an expression that names its own wins. Left out of the timing when undefined.
 */
export function translateExpression(dialect: Dialect, text: string, tz?: string): Translation {
  const source = { text, option: 'expression', tz };
  let cron: string | undefined;
  try {
    const { timing, warnings = [] } = READERS[dialect](source);
    cron = timing.cron;
    const zoned = timing.every === undefined && tz !== undefined ? { tz, ...timing } : timing;
    const compiled = compileSchedule(zoned, { seed: dialect, createdAt: 0 });
    return { timing: zoned, warnings: [...warnings, ...compiled.warnings, ...hourWarning(cron, zoned.tz)] };
  } catch (error) {
    if (isCarillonError(error)) return { refused: refusalOf(error, cron, source) };
    throw error;
  }
}

/** `0/2` is how Quartz's users write "every two hours", and the hour then counts as fixed. */
function hourWarning(cron: string | undefined, tz = 'UTC'): string[] {
  const fields = cron?.split(' ') ?? [];
  const [, step] = /^0+\/(\d+)$/.exec(fields.at(-4) ?? '') ?? [];
  if (step === undefined || clockChanges(tz, FROM, 1).length === 0) return [];
  return [
    `the hour ${fields.at(-4)} runs once through an hour that the clocks repeat; write */${step} to run through the repeated hour`,
  ];
}
