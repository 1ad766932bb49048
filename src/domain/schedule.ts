import type { CalendarSet } from './calendar.js';
import type { Duration } from './durations.js';
import { compileExclusions, NO_CALENDARS } from './exclusions.js';
import type { Exclusion, OnExcluded, StoredExclusion } from './exclusions-definition.js';
import { withExclusions } from './exclusions-timing.js';
import { type CompiledTiming, compileSchedule } from './fire-times.js';
import type { TimingDefinition } from './fire-times-definition.js';
import type { TimeZoneData } from './time-zone-offsets.js';

/** What happens to ticks that came while nobody served the schedule. */
export type MissedPolicy = 'skip' | 'latest' | 'all';

/** What happens to a tick that comes while runs of its schedule are open. */
export type OverlapPolicy = 'skip' | 'bufferOne' | 'bufferAll' | 'cancelOther' | 'allow';

/** A schedule of another queue that one follows. */
export interface FollowedSchedule {
  queue: string;
  scheduleId: string;
}

/** A schedule as its author writes it. */
export interface ScheduleDefinition extends TimingDefinition {
  /**
   * Ticks whose grace ended while nobody served them, or (but for `all`) whose next one came before they ran: `skip`
   * runs none of them, `latest` the newest one, `all` each of them in order, one at a time. Required: no schedule
   * leaves it to chance.
   */
  missed: MissedPolicy;
  /** How late a tick may be and still fire as if on time. Defaults to 30 s. */
  grace?: Duration;
  /**
   * Spreads fire times: each tick fires up to this much after its scheduled time, but before the next one's; always the
   * same for one tick, on every machine. Up to 31 days. Defaults to 0.
   */
  jitter?: Duration;
  /** `latest` and `all` do not run a tick older than this. Defaults to one day. */
  catchupWindow?: Duration;
  /** How many ticks `all` runs at most after one outage, 1 to 1,000. Defaults to 100. */
  maxCatchup?: number;
  /** When more than that were missed: `refuse` (the default) runs none and records it, `newest` runs the newest ones. */
  onTooMany?: 'refuse' | 'newest' | 'suspend';
  /**
   * A tick that comes while a run is open (it waits, runs, or waits for a retry): `skip` (the default) drops it,
   * `bufferOne` keeps one, `bufferAll` each, `cancelOther` takes back runs that no worker has fetched and asks
   * Carillon's worker to stop the one that it has, `allow` runs it beside the others. Kubernetes' `Forbid`, `Replace`, `Allow` and Temporal's names are taken.
   */
  overlap?: OverlapPolicy | keyof typeof OVERLAP_ALIASES;
  /** How many runs may be open at once, 1 to 64. Defaults to 1, and to no limit for `allow`. */
  maxConcurrent?: number;
  /** Open and waiting runs together, 1 to 64; a tick beyond is skipped. Defaults to 32. */
  maxOpenRuns?: number;
  /**
   * For runs that may never end: one that was put into the queue this long ago counts as ended, and the schedule goes
   * on beside it. At least 1 s, at most 49 days. Defaults to never.
   */
  runTimeout?: Duration;
  /**
   * Pauses the schedule after so many failed runs in a row, 1 to 255, as its next tick finds them. A run that BullMQ
   * removes at once (`removeOnFail: true`) is not seen to fail. Defaults to never.
   */
  pauseOnFailure?: number;
  /** Rows of its ledger that are kept, 0 to 255; `backfill` knows by them what ran. Defaults to 50. */
  keepRuns?: number;
  /** When it does not fire: local dates, ranges, calendars. See docs/exclusions.md. */
  exclude?: readonly Exclusion[];
  /** An excluded tick: `skip` (the default) drops it, `next` runs it at the same time on the next date that is free. */
  onExcluded?: OnExcluded;
  /**
   * Schedules of its own queue by id, or of others: each tick waits for their runs of the same scheduled time, if they
   * have a tick then, and fires when all have succeeded. They must exist, and may not follow this one.
   */
  after?: readonly (string | FollowedSchedule)[];
  /** When a run that it follows is dead, cancelled, removed or lost: `skip` (the default) its own tick, or `run` it. */
  onParentFailed?: 'skip' | 'run';
  /** When a schedule that it follows skips that tick. Defaults to `skip`. */
  onParentSkipped?: 'skip' | 'run';
  /** Words to find it by: up to 32, of up to 100 characters. */
  tags?: readonly string[];
}

/** The definition as it is stored: checked, durations and times in ms, defaults left out. */
export interface StoredPolicies {
  cron?: string[];
  every?: number;
  anchor?: number;
  phase?: number;
  tz?: string;
  gap?: 'shift' | 'edge' | 'skip';
  fold?: 'first' | 'last' | 'both';
  startDate?: number;
  endDate?: number;
  limit?: number;
  missed: MissedPolicy;
  grace?: number;
  jitter?: number;
  catchupWindow?: number;
  maxCatchup?: number;
  onTooMany?: 'newest' | 'suspend';
  overlap?: OverlapPolicy;
  maxConcurrent?: number;
  maxOpenRuns?: number;
  runTimeout?: number;
  pauseOnFailure?: number;
  keepRuns?: number;
  exclude?: StoredExclusion[];
  onExcluded?: 'next';
  after?: (string | FollowedSchedule)[];
  onParentFailed?: 'run';
  onParentSkipped?: 'run';
  tags?: string[];
  /** BullMQ's `every`: the first tick is the moment of creation. */
  startsAtOnce?: true;
  /** BullMQ's form: the pattern as it is written there, where `cron` says the same in other words. */
  bullmqPattern?: string;
}

/** The numbers of {@link MissedPolicy} in a record's header; the scripts know them. */
export const MISSED_CODES = { skip: 0, latest: 1, all: 2 } as const;
/** The numbers of {@link OverlapPolicy} in a record's header. */
export const OVERLAP_CODES = { skip: 0, bufferOne: 1, bufferAll: 2, cancelOther: 3, allow: 4 } as const;
/** Words of other systems for the same: Kubernetes', Temporal's, and those of Temporal's TypeScript SDK. */
export const OVERLAP_ALIASES = {
  Forbid: 'skip',
  Replace: 'cancelOther',
  Allow: 'allow',
  Skip: 'skip',
  BufferOne: 'bufferOne',
  BufferAll: 'bufferAll',
  CancelOther: 'cancelOther',
  // Nothing here ends a run by force: it is asked to stop, as for CancelOther.
  TerminateOther: 'cancelOther',
  AllowAll: 'allow',
  SKIP: 'skip',
  BUFFER_ONE: 'bufferOne',
  BUFFER_ALL: 'bufferAll',
  CANCEL_OTHER: 'cancelOther',
  TERMINATE_OTHER: 'cancelOther',
  ALLOW_ALL: 'allow',
} as const;
export const DEFAULT_MAX_CATCHUP = 100;
export const DEFAULT_MAX_OPEN_RUNS = 32;
export const DEFAULT_KEPT_RUNS = 50;
export const DEFAULT_GRACE = 30_000;
export const DEFAULT_CATCHUP_WINDOW = 86_400_000;
/** ms; a record holds it in four bytes. */
export const LONGEST_GRACE = 0xffffffff;
export const SHORTEST_RUN_TIMEOUT = 1000;
/** ms, as the grace. */
export const LONGEST_RUN_TIMEOUT = 0xffffffff;
export const MOST_TAGS = 32;
export const LONGEST_TAG = 100;
export const MOST_FOLLOWED = 32;

/**
 * The stored form, ready to be asked for times.
 * @param createdAt what `every` without an anchor counts from, ms.
 * @param calendars those that the definition names, see `calendarsOf`.
 * @param timeZones defaults to the data of this Node.
 * @throws CarillonError NOT_FOUND for a calendar that is not among them
 */
export function compileStored(
  policies: StoredPolicies,
  seed: string,
  createdAt: number,
  calendars: CalendarSet = NO_CALENDARS,
  timeZones?: TimeZoneData,
): CompiledTiming {
  const timing = compileTimes(policies, seed, createdAt, timeZones);
  const { exclude, onExcluded } = policies;
  if (exclude === undefined) return timing;
  return withExclusions(timing, compileExclusions(exclude, timing.tz, calendars, timeZones), onExcluded);
}

/** The same without its exclusions. */
export function compileTimes(
  policies: StoredPolicies,
  seed: string,
  createdAt: number,
  timeZones?: TimeZoneData,
): CompiledTiming {
  return compileSchedule(timesOf(policies, createdAt), { seed, createdAt, timeZones });
}

/** The part of a definition that names times. */
export function timesOf(policies: StoredPolicies, createdAt: number): TimingDefinition {
  const { cron, every, phase, tz, gap, fold, startDate, endDate, limit } = policies;
  const anchor = policies.startsAtOnce ? Math.max(policies.startDate ?? 0, createdAt) : policies.anchor;
  return compact({
    crons: cron,
    every,
    anchor,
    phase,
    tz,
    gap,
    fold,
    startDate,
    endDate,
    limit,
  }) as TimingDefinition;
}

/**
 * The part of a definition that names instants: two definitions with one text fire at the same times, so that pending
 * ticks need not move.
 * @throws CarillonError when the definition cannot be compiled (any more: a zone may be unknown on this machine).
 */
export function timingText(policies: StoredPolicies, seed: string): string {
  const { canonical } = compileTimes(policies, seed, 0);
  const { jitter = 0, startsAtOnce = false, exclude = [], onExcluded = 'skip' } = policies;
  return JSON.stringify([canonical, jitter, startsAtOnce, exclude, exclude.length > 0 && onExcluded]);
}

/** Without the fields that are undefined. */
export function compact<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as T;
}
