import type { ScheduleInfo } from '../client/schedule-info.js';
import type { WantedSchedule } from '../client/wanted-schedule.js';

/** What an apply puts on the schedules that it creates, so that a later one may prune them. */
export const APPLIED = 'applied:';
/** The same of an import. */
export const IMPORTED = 'imported:';

/** True for a tag by which a file knows what it made. */
export function isMark(tag: string): boolean {
  return tag.startsWith(APPLIED) || tag.startsWith(IMPORTED);
}

/**
 * What is created gets the mark, if there is one; of what stands its marks stay. A schedule that an import made is
 * the latest import's: a line may move from one file to another.
 */
export function keepMarks(
  mark: string | undefined,
  wanted: WantedSchedule,
  existing: ScheduleInfo | undefined,
): WantedSchedule {
  const own = mark === undefined ? [] : [mark];
  const kept = (existing?.definition.tags ?? []).filter(isMark).map((tag) => {
    return tag.startsWith(IMPORTED) && mark?.startsWith(IMPORTED) ? mark : tag;
  });
  const tags = [...(wanted.policies.tags ?? []), ...(existing === undefined ? own : kept)];
  if (tags.length === 0) return wanted;
  return { ...wanted, policies: { ...wanted.policies, tags: [...new Set(tags)].sort() } };
}
