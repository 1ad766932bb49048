import { checkBoolean, checkObject, refuse } from '../config/check.js';
import { rejectUnknown } from '../config/unknown-options.js';
import type { StoredPolicies } from '../domain/schedule.js';
import { type RecordState, STATES } from '../domain/states.js';

/** Which schedules of a queue are meant; all conditions must hold. */
export interface ScheduleFilter {
  /** Schedules that carry this tag. */
  tag?: string;
  state?: RecordState;
  /** Schedules whose id, name, note, expression or zone holds this text, in any case. */
  text?: string;
  /** Only some of these. */
  ids?: readonly string[];
  /** Every schedule; for changes, which refuse a filter that names nothing. Without other conditions. */
  all?: boolean;
}

/** What a filter looks at. */
export interface FilterSubject {
  id: string;
  state: RecordState;
  /** Of its runs. */
  name: string;
  note: string | undefined;
  /** Of a schedule that can be read. */
  definition?: StoredPolicies | undefined;
}

/** @throws CarillonError INVALID_OPTION */
export function checkFilter(filter: ScheduleFilter): ScheduleFilter {
  const given = checkObject('filter', filter);
  rejectUnknown(given, ['tag', 'state', 'text', 'ids', 'all'], 'filter.');
  for (const key of ['tag', 'text'] as const) {
    const value = given[key];
    if (value !== undefined && (typeof value !== 'string' || value === '')) {
      refuse(`filter.${key}`, value, 'must be a text', 'Give a word, or leave it out.');
    }
  }
  if (given.state !== undefined && !Object.hasOwn(STATES, String(given.state))) {
    refuse('filter.state', given.state, 'is no state', `Give one of ${Object.keys(STATES).join(', ')}.`);
  }
  if (given.all !== undefined) checkBoolean('filter.all', given.all);
  const { ids } = given;
  if (ids !== undefined && !(Array.isArray(ids) && ids.every((id) => typeof id === 'string'))) {
    refuse('filter.ids', ids, 'must be a list of texts', 'Give ids, or leave it out.');
  }
  return filter;
}

/** Says of each subject whether the filter, which is checked already, means it. Pure. */
export function matcherOf({ tag, state, text, ids }: ScheduleFilter): (subject: FilterSubject) => boolean {
  const known = ids && new Set(ids);
  const wanted = text?.toLowerCase();
  return (subject) => {
    if (state !== undefined && subject.state !== state) return false;
    if (known?.has(subject.id) === false) return false;
    const { tags = [], tz = '', cron = [] } = subject.definition ?? {};
    if (tag !== undefined && !tags.includes(tag)) return false;
    if (wanted === undefined) return true;
    const words = [subject.id, subject.name, subject.note ?? '', tz, ...cron];
    return words.some((word) => word.toLowerCase().includes(wanted));
  };
}
