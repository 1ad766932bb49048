import { checkObject, refuse } from '../config/check.js';
import { rejectUnknown } from '../config/unknown-options.js';
import { type RecordState, STATES } from '../domain/states.js';
import type { ScheduleInfo } from './schedule-info.js';

/** Which schedules of a queue are meant; all conditions must hold. */
export interface ScheduleFilter {
  /** Schedules that carry this tag. */
  tag?: string;
  state?: RecordState;
  /** Schedules whose id, name, note, expression or zone holds this text, in any case. */
  text?: string;
}

/** @throws CarillonError INVALID_OPTION */
export function checkFilter(filter: ScheduleFilter): ScheduleFilter {
  const given = checkObject('filter', filter);
  rejectUnknown(given, ['tag', 'state', 'text'], 'filter.');
  for (const key of ['tag', 'text'] as const) {
    const value = given[key];
    if (value !== undefined && (typeof value !== 'string' || value === '')) {
      refuse(`filter.${key}`, value, 'must be a text', 'Give a word, or leave it out.');
    }
  }
  if (given.state !== undefined && !Object.hasOwn(STATES, String(given.state))) {
    refuse('filter.state', given.state, 'is no state', `Give one of ${Object.keys(STATES).join(', ')}.`);
  }
  return filter;
}

export function matches(info: ScheduleInfo, { tag, state, text }: ScheduleFilter): boolean {
  if (state !== undefined && info.state !== state) return false;
  if (tag !== undefined && !(info.definition.tags ?? []).includes(tag)) return false;
  if (text === undefined) return true;
  const words = [
    info.id,
    info.template.name,
    info.note ?? '',
    info.definition.tz ?? '',
    ...(info.definition.cron ?? []),
  ];
  return words.some((word) => word.toLowerCase().includes(text.toLowerCase()));
}
