import type { CalendarSet } from './calendar.js';
import { type Duration, parseDuration } from './durations.js';
import { CarillonError, shortText } from './errors.js';
import { compileExclusions, NO_CALENDARS } from './exclusions.js';
import {
  checkExclude,
  checkOnExcluded,
  type Exclusion,
  type OnExcluded,
  type StoredExclusion,
} from './exclusions-definition.js';
import { withExclusions } from './exclusions-timing.js';
import { type CompiledTiming, compileSchedule } from './fire-times.js';
import type { TimingDefinition } from './fire-times-definition.js';
import { checkQueueName, checkScheduleId } from './ids.js';
import { parseInstant } from './instant.js';
import { nearestWord } from './nearest-word.js';
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
  /** Rows of its ledger that are kept, 0 to 255. Defaults to 50. */
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
}

/** The numbers of {@link MissedPolicy} in a record's header; the scripts know them. */
export const MISSED_CODES = { skip: 0, latest: 1, all: 2 } as const;
/** The numbers of {@link OverlapPolicy} in a record's header. */
export const OVERLAP_CODES = { skip: 0, bufferOne: 1, bufferAll: 2, cancelOther: 3, allow: 4 } as const;
/** Words of other systems for the same. */
const OVERLAP_ALIASES = {
  Forbid: 'skip',
  Replace: 'cancelOther',
  Allow: 'allow',
  Skip: 'skip',
  BufferOne: 'bufferOne',
  BufferAll: 'bufferAll',
  CancelOther: 'cancelOther',
  AllowAll: 'allow',
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
/** A record counts its ticks in four bytes. */
const LARGEST_LIMIT = 0xffffffff;
const LONGEST_JITTER = 31 * 86_400_000;
export const MOST_TAGS = 32;
export const LONGEST_TAG = 100;
export const MOST_FOLLOWED = 32;

const TIMING_KEYS = [
  'cron',
  'crons',
  'pattern',
  'every',
  'anchor',
  'phase',
  'tz',
  'gap',
  'fold',
  'startDate',
  'endDate',
  'limit',
] as const;
const POLICY_KEYS = [
  'missed',
  'grace',
  'jitter',
  'catchupWindow',
  'maxCatchup',
  'onTooMany',
  'overlap',
  'maxConcurrent',
  'maxOpenRuns',
  'runTimeout',
  'pauseOnFailure',
  'keepRuns',
  'exclude',
  'onExcluded',
  'after',
  'onParentFailed',
  'onParentSkipped',
  'tags',
] as const;
/** Every option of a schedule, for messages about unknown ones. */
export const SCHEDULE_KEYS: readonly string[] = [...TIMING_KEYS, ...POLICY_KEYS];

/**
 * Checks a definition whole and gives it the form that is stored: the same for the same definition, however it is
 * written.
 * @param seed the schedule's identity.
 * @throws CarillonError naming the option, what was given and what to write instead.
 */
export function checkSchedule(definition: ScheduleDefinition, seed: string): StoredPolicies {
  if (typeof definition !== 'object' || definition === null || Array.isArray(definition)) {
    throw invalid(
      'definition',
      definition,
      'is not an object',
      "write { cron: '30 2 * * *', tz: 'Europe/London', missed: 'latest' }",
    );
  }
  const given = definition as ScheduleDefinition & Record<string, unknown>;
  const timing = checkTimes(given, seed);
  const exclude = checkExclude(given.exclude);
  const onExcluded = checkOnExcluded(given.onExcluded, exclude);
  // Refuses what cannot be moved; the dates do not matter to that.
  withExclusions(timing, compileExclusions([], timing.tz), onExcluded);
  const missed = oneOf('missed', given.missed, Object.keys(MISSED_CODES) as MissedPolicy[]);
  if (missed === undefined)
    throw invalid('missed', undefined, 'is missing', "write 'skip', 'latest' or 'all'");
  const maxConcurrent = wholeNumber('maxConcurrent', given.maxConcurrent, 1, 64);
  const maxOpenRuns = wholeNumber('maxOpenRuns', given.maxOpenRuns, 1, 64);
  if ((maxConcurrent ?? 1) > (maxOpenRuns ?? DEFAULT_MAX_OPEN_RUNS)) {
    throw invalid('maxConcurrent', maxConcurrent, 'is larger than maxOpenRuns', 'write a smaller one');
  }
  if (given.limit !== undefined && given.limit > LARGEST_LIMIT) {
    throw invalid('limit', given.limit, `is above ${LARGEST_LIMIT}`, 'write less, or leave it out');
  }
  return compact({
    cron:
      given.every === undefined ? (given.crons?.slice() ?? [given.cron ?? given.pattern ?? '']) : undefined,
    every: given.every === undefined ? undefined : parseDuration(given.every, { field: 'every', min: 1 }),
    anchor: optionalInstant(given.anchor, 'anchor'),
    phase: optionalDuration(given.phase, 'phase') || undefined,
    tz: given.tz === 'UTC' ? undefined : given.tz,
    gap: given.gap === 'shift' ? undefined : given.gap,
    fold: given.fold === 'first' ? undefined : given.fold,
    startDate: optionalInstant(given.startDate, 'startDate'),
    endDate: optionalInstant(given.endDate, 'endDate'),
    limit: given.limit,
    missed,
    grace: optionalDuration(given.grace, 'grace', LONGEST_GRACE),
    jitter: optionalDuration(given.jitter, 'jitter', LONGEST_JITTER) || undefined,
    catchupWindow: optionalDuration(given.catchupWindow, 'catchupWindow'),
    maxCatchup: wholeNumber('maxCatchup', given.maxCatchup, 1, 1000),
    onTooMany: unless(
      'refuse',
      oneOf('onTooMany', given.onTooMany, ['refuse', 'newest', 'suspend'] as const),
    ),
    overlap: unless('skip', checkOverlap(given.overlap)),
    maxConcurrent,
    maxOpenRuns,
    runTimeout:
      given.runTimeout === undefined
        ? undefined
        : parseDuration(given.runTimeout, {
            field: 'runTimeout',
            min: SHORTEST_RUN_TIMEOUT,
            max: LONGEST_RUN_TIMEOUT,
          }),
    pauseOnFailure: wholeNumber('pauseOnFailure', given.pauseOnFailure, 1, 255),
    keepRuns: wholeNumber('keepRuns', given.keepRuns, 0, 255),
    exclude,
    onExcluded,
    after: checkAfter(given.after),
    onParentFailed: unless('skip', oneOf('onParentFailed', given.onParentFailed, ['skip', 'run'] as const)),
    onParentSkipped: unless(
      'skip',
      oneOf('onParentSkipped', given.onParentSkipped, ['skip', 'run'] as const),
    ),
    tags: checkTags(given.tags),
  });
}

function checkOverlap(given: unknown): OverlapPolicy | undefined {
  if (typeof given === 'string' && Object.hasOwn(OVERLAP_ALIASES, given)) {
    return OVERLAP_ALIASES[given as keyof typeof OVERLAP_ALIASES];
  }
  return oneOf('overlap', given, Object.keys(OVERLAP_CODES) as OverlapPolicy[]);
}

function oneOf<T extends string>(field: string, given: unknown, words: readonly T[]): T | undefined {
  if (given === undefined || words.includes(given as T)) return given as T | undefined;
  throw invalid(field, given, 'is unknown', `write one of ${words.join(', ')}`);
}

function wholeNumber(field: string, given: unknown, min: number, max: number): number | undefined {
  if (given === undefined) return undefined;
  if (Number.isSafeInteger(given) && (given as number) >= min && (given as number) <= max)
    return given as number;
  throw invalid(field, given, 'is out of range', `write a whole number from ${min} to ${max}`);
}

/** Defaults are left out of what is stored. */
function unless<T extends string, D extends T>(standard: D, value: T | undefined): Exclude<T, D> | undefined {
  return value === standard ? undefined : (value as Exclude<T, D> | undefined);
}

/** What names instants, and an option that nobody reads. The timing knows the names that other libraries use. */
function checkTimes(given: Record<string, unknown>, seed: string): CompiledTiming {
  const isUnknown = (key: string) => given[key] !== undefined && !SCHEDULE_KEYS.includes(key);
  const unknown = Object.keys(given).find(isUnknown);
  const asked = unknown === undefined ? TIMING_KEYS : [...TIMING_KEYS, unknown];
  const timing = Object.fromEntries(
    asked.filter((key) => given[key] !== undefined).map((key) => [key, given[key]]),
  );
  const compiled = compileSchedule(timing as TimingDefinition, { seed, createdAt: 0 });
  if (unknown === undefined) return compiled;
  const meant = nearestWord(unknown, SCHEDULE_KEYS);
  throw invalid(
    unknown,
    given[unknown],
    `is no option of a schedule${meant === undefined ? '' : `; did you mean ${meant}?`}`,
    meant === undefined ? `write one of ${SCHEDULE_KEYS.join(', ')}` : `write ${meant}`,
  );
}

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
  const { cron, every, phase, tz, gap, fold, startDate, endDate, limit } = policies;
  const anchor = policies.startsAtOnce ? Math.max(policies.startDate ?? 0, createdAt) : policies.anchor;
  return compileSchedule(
    compact({
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
    }) as TimingDefinition,
    { seed, createdAt, timeZones },
  );
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

function checkTags(tags: unknown): string[] | undefined {
  if (tags === undefined) return undefined;
  if (!Array.isArray(tags) || tags.length > MOST_TAGS || !tags.every(isTag)) {
    throw invalid(
      'tags',
      tags,
      'is not a list of words',
      `write up to ${MOST_TAGS} words of up to ${LONGEST_TAG} characters, as in ['billing']`,
    );
  }
  return tags.length === 0 ? undefined : [...new Set<string>(tags)].sort();
}

function checkAfter(after: unknown): (string | FollowedSchedule)[] | undefined {
  if (after === undefined) return undefined;
  if (!Array.isArray(after) || after.length > MOST_FOLLOWED) {
    throw invalid(
      'after',
      after,
      'is not a list of schedules',
      `write up to ${MOST_FOLLOWED} ids, as in ['nightly']`,
    );
  }
  const list = after.map((one: unknown, index): string | FollowedSchedule => {
    if (typeof one === 'string') return checkScheduleId(one, `after[${index}]`);
    const { queue, scheduleId, ...rest } = (one ?? {}) as Record<string, unknown>;
    if (Object.keys(rest).length > 0) {
      throw invalid(
        `after[${index}]`,
        one,
        'is no schedule',
        "write { queue: 'etl', scheduleId: 'nightly' }",
      );
    }
    return {
      queue: checkQueueName(queue, `after[${index}].queue`),
      scheduleId: checkScheduleId(scheduleId, `after[${index}].scheduleId`),
    };
  });
  return list.length === 0 ? undefined : list;
}

function isTag(tag: unknown): tag is string {
  return typeof tag === 'string' && tag !== '' && tag.length <= LONGEST_TAG && tag.isWellFormed();
}

function optionalDuration(value: Duration | undefined, field: string, max?: number): number | undefined {
  return value === undefined
    ? undefined
    : parseDuration(value, max === undefined ? { field } : { field, max });
}

function optionalInstant(value: unknown, field: string): number | undefined {
  return value === undefined ? undefined : parseInstant(value, field);
}

function compact<T extends object>(value: T): T {
  return Object.fromEntries(Object.entries(value).filter(([, v]) => v !== undefined)) as T;
}

function invalid(field: string, given: unknown, problem: string, todo: string): CarillonError {
  const value = given === undefined ? '' : ` ${shortText(given)}`;
  return new CarillonError('INVALID_OPTION', `${field}${value} ${problem}; ${todo}`, { field, given, todo });
}
