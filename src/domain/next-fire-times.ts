import { checkSchedule } from './check-schedule.js';
import { CarillonError, shortText } from './errors.js';
import { calendarsOf } from './exclusions-definition.js';
import { following } from './fire-times.js';
import { checkOptionsOf } from './function-options.js';
import { type Instant, parseInstant } from './instant.js';
import { compileStored, type ScheduleDefinition } from './schedule.js';

/** Of {@link nextFireTimes}. */
interface NextFireTimesOptions {
  /** The times after this one. */
  after: Instant;
  /** How many, 1 to 10,000. Defaults to 1. */
  count?: number;
  /** The schedule's identity, `<queue>:<id>`; needed for `H` and `~` only. */
  seed?: string;
}

/**
 * The next scheduled times of a definition, strictly after `after`, in order, as if the schedule were created then: an
 * `every` without `anchor` counts from there, and so does `limit`. Fewer than `count` are given if it ends before. What is
 * excluded is left out; jitter is not added. Pure: no clock, no host zone, no Redis.
 * @param definition as `upsert` takes it; `missed` may be left out.
 * @throws CarillonError as `upsert`, and `INVALID_OPTION` for a calendar, which only `queue.schedules.preview` can read.
 */
export function nextFireTimes(
  definition: Partial<ScheduleDefinition>,
  options: NextFireTimesOptions,
): Date[] {
  checkOptionsOf('nextFireTimes', options, ['after', 'count', 'seed']);
  const { count = 1, seed } = options;
  const after = parseInstant(options.after, 'after');
  if (!Number.isSafeInteger(count) || count < 1 || count > 10_000) {
    const todo = 'write a whole number from 1 to 10000';
    throw invalid('count', `: ${shortText(count)} is out of range`, count, todo);
  }
  const isObject = typeof definition === 'object' && definition !== null && !Array.isArray(definition);
  const whole = isObject ? { ...definition, missed: definition.missed ?? 'skip' } : definition;
  const policies = checkSchedule(whole as ScheduleDefinition, seed);
  const [calendar] = calendarsOf(policies.exclude);
  if (calendar !== undefined) {
    const todo = 'ask queue.schedules.preview, or exclude its dates';
    throw invalid('exclude', ` names the calendar ${calendar}, which Redis holds`, calendar, todo);
  }
  const timing = compileStored(policies, seed ?? '', after);
  const most = Math.min(count, policies.limit ?? count);
  return following(timing, after, most).map((time) => new Date(time));
}

function invalid(field: string, problem: string, given: unknown, todo: string): CarillonError {
  return new CarillonError('INVALID_OPTION', `${field}${problem}; ${todo}`, { field, given, todo });
}
