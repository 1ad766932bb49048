import { type Duration, parseDuration } from './durations.js';
import { CarillonError, shortText } from './errors.js';
import { compileExclusions } from './exclusions.js';
import { checkExclude, checkOnExcluded } from './exclusions-definition.js';
import { withExclusions } from './exclusions-timing.js';
import { type CompiledTiming, compileSchedule } from './fire-times.js';
import type { TimingDefinition } from './fire-times-definition.js';
import { checkQueueName, checkScheduleId } from './ids.js';
import { parseInstant } from './instant.js';
import { nearestWord } from './nearest-word.js';
import {
  compact,
  DEFAULT_MAX_OPEN_RUNS,
  type FollowedSchedule,
  LONGEST_GRACE,
  LONGEST_RUN_TIMEOUT,
  LONGEST_TAG,
  MISSED_CODES,
  type MissedPolicy,
  MOST_FOLLOWED,
  MOST_TAGS,
  OVERLAP_ALIASES,
  OVERLAP_CODES,
  type OverlapPolicy,
  type ScheduleDefinition,
  SHORTEST_RUN_TIMEOUT,
  type StoredPolicies,
} from './schedule.js';

/** A record counts its ticks in four bytes. */
const LARGEST_LIMIT = 0xffffffff;
const LONGEST_JITTER = 31 * 86_400_000;

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
const PAUSING =
  'a definition does not pause; call pause() or resume() of the schedule, or `carillon schedules pause`';
const RUNS = 'it is of the runs; write it into the template, the argument after the definition';
/** What people look for in a definition, and where it is. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    [
      'paused',
      'pause',
      'suspended',
      'suspend',
      'enabled',
      'disabled',
      'active',
      'state',
      'status',
      'note',
    ].map((word) => [word, PAUSING]),
  ),
  ...Object.fromEntries(
    ['name', 'data', 'opts', 'options', 'payload', 'attempts', 'backoff', 'priority', 'template'].map(
      (word) => [word, RUNS],
    ),
  ),
};

/** Every option of a schedule, for messages about unknown ones. */
export const SCHEDULE_KEYS: readonly string[] = [...TIMING_KEYS, ...POLICY_KEYS];

/**
 * Checks a definition whole and gives it the form that is stored: the same for the same definition, however it is
 * written.
 * @param seed the schedule's identity; without one `H` and `~` are refused.
 * @throws CarillonError naming the option, what was given and what to write instead.
 */
export function checkSchedule(definition: ScheduleDefinition, seed: string | undefined): StoredPolicies {
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
  const words = Object.keys(OVERLAP_CODES) as OverlapPolicy[];
  if (given === undefined || words.includes(given as OverlapPolicy))
    return given as OverlapPolicy | undefined;
  const others = Object.keys(OVERLAP_ALIASES).join(', ');
  throw invalid('overlap', given, 'is unknown', `write one of ${words.join(', ')} (taken too: ${others})`);
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
function checkTimes(given: Record<string, unknown>, seed: string | undefined): CompiledTiming {
  const isUnknown = (key: string) => given[key] !== undefined && !SCHEDULE_KEYS.includes(key);
  const unknown = Object.keys(given).find(isUnknown);
  const asked = unknown === undefined ? TIMING_KEYS : [...TIMING_KEYS, unknown];
  const timing = Object.fromEntries(
    asked.filter((key) => given[key] !== undefined).map((key) => [key, given[key]]),
  );
  const compiled = compileSchedule(timing as TimingDefinition, { seed, createdAt: 0 });
  if (unknown === undefined) return compiled;
  const elsewhere = Object.hasOwn(ELSEWHERE, unknown) ? ELSEWHERE[unknown] : undefined;
  if (elsewhere !== undefined)
    throw invalid(unknown, given[unknown], 'is no option of a schedule', elsewhere);
  const meant = nearestWord(unknown, SCHEDULE_KEYS);
  throw invalid(
    unknown,
    given[unknown],
    `is no option of a schedule${meant === undefined ? '' : `; did you mean ${meant}?`}`,
    meant === undefined ? `write one of ${SCHEDULE_KEYS.join(', ')}` : `write ${meant}`,
  );
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

function invalid(field: string, given: unknown, problem: string, todo: string): CarillonError {
  const value = given === undefined ? '' : ` ${shortText(given)}`;
  return new CarillonError('INVALID_OPTION', `${field}${value} ${problem}; ${todo}`, { field, given, todo });
}
