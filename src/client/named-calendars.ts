import type { CalendarSet } from '../domain/calendar.js';
import { NO_CALENDARS } from '../domain/exclusions.js';
import { calendarsOf } from '../domain/exclusions-definition.js';
import type { StoredPolicies } from '../domain/schedule.js';
import type { CalendarStore } from '../redis/calendar-store.js';
import type { ScheduleRecord } from '../redis/record.js';

/** The calendars that a stored definition names; none where it cannot be read. */
export function calendarsNamed(record: ScheduleRecord | undefined): string[] {
  try {
    return calendarsOf((JSON.parse(record?.policies ?? '{}') as StoredPolicies).exclude);
  } catch {
    return [];
  }
}

/** Those that tell why a schedule has no tick; while it has one they are not asked for. */
export async function calendarsIfIdle(store: CalendarStore, record: ScheduleRecord): Promise<CalendarSet> {
  const names = record.cur > 0 ? [] : calendarsNamed(record);
  return names.length === 0 ? NO_CALENDARS : store.named(names);
}
