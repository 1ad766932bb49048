import type { CalendarSet } from './calendar.js';
import { IMPOSSIBLE_DAY } from './cron.js';
import { NO_CALENDARS } from './exclusions.js';
import { calendarsOf } from './exclusions-definition.js';
import { type CompiledTiming, type CompileOptions, compileSchedule } from './fire-times.js';
import type { TimingDefinition } from './fire-times-definition.js';
import { compact, compileStored, compileTimes, type StoredPolicies, timesOf } from './schedule.js';

/**
 * Why a schedule has no time after an instant, as a sentence; undefined when it has one, or when its own warnings say so.
 * @param timing the compiled definition, without what is excluded.
 * @param after ms
 */
export function neverFires(
  timing: CompiledTiming,
  definition: TimingDefinition,
  options: CompileOptions,
  after: number,
): string | undefined {
  if (timing.next(after) !== undefined) return undefined;
  const nextOf = (over: { [K in keyof TimingDefinition]: TimingDefinition[K] | undefined }) =>
    compileSchedule(compact({ ...definition, ...over }) as TimingDefinition, options).next(after);
  const { tz, endDate, warnings } = timing;
  if (nextOf({}) !== undefined) return 'it never fires: each of its times is excluded';
  const endless = { endDate: undefined };
  if (endDate !== undefined && nextOf(endless) !== undefined) {
    return endDate <= after
      ? `it never fires: its endDate ${iso(endDate)} is over`
      : `it never fires: none of its times comes before its endDate ${iso(endDate)}`;
  }
  if (nextOf({ ...endless, gap: undefined }) !== undefined) {
    return `it never fires: the clock of ${tz} skips each of its times, and gap: 'skip' drops those`;
  }
  return warnings.includes(IMPOSSIBLE_DAY)
    ? undefined
    : 'it never fires: none of its times comes before the year 10000';
}

/**
 * The same of a stored definition.
 * @param after ms; a schedule that starts at once may have its first time then.
 * @param calendars with one of its own missing, its exclusions do not count.
 */
export function storedNeverFires(
  policies: StoredPolicies,
  identity: string,
  createdAt: number,
  after: number,
  calendars: CalendarSet = NO_CALENDARS,
): string | undefined {
  const isKnown = calendarsOf(policies.exclude).every((name) => calendars.has(name));
  const timing = isKnown
    ? compileStored(policies, identity, createdAt, calendars)
    : compileTimes(policies, identity, createdAt);
  const from = policies.startsAtOnce ? after - 1 : after;
  return neverFires(timing, timesOf(policies, createdAt), { seed: identity, createdAt }, from);
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}
