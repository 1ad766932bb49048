import type { ScheduleInfo } from '../client/schedule-info.js';
import type { WantedSchedule } from '../client/wanted-schedule.js';

/** What an apply puts on the schedules that it creates, so that a later one may prune them. */
export const APPLIED = 'applied:';
/** What stands between that and the name of a file that says no label: no label holds a colon. */
const UNLABELLED = 'file:';
const FILE_NAME = /^[A-Za-z0-9._-]{1,60}$/;
/** The same of an import. */
export const IMPORTED = 'imported:';

/** The mark of a file without a label; undefined where its name can be none. */
export function markOfName(name: string): string | undefined {
  return FILE_NAME.test(name) ? `${APPLIED}${UNLABELLED}${name}` : undefined;
}

function isOfName(tag: string): boolean {
  return tag.startsWith(APPLIED + UNLABELLED);
}

/** True for a tag by which a file knows what it made. */
export function isMark(tag: string): boolean {
  return tag.startsWith(APPLIED) || tag.startsWith(IMPORTED);
}

/**
 * What is created gets the mark, if there is one; of what stands its marks stay. A schedule that an import made is
 * the latest import's: a line may move from one file to another. One that a file without a label made is that of the
 * label under which it stands by now.
 */
export function keepMarks(
  mark: string | undefined,
  wanted: WantedSchedule,
  existing: ScheduleInfo | undefined,
): WantedSchedule {
  const own = mark === undefined ? [] : [mark];
  const kept = (existing?.definition.tags ?? []).filter(isMark).map((tag) => {
    const isImports = tag.startsWith(IMPORTED) && mark?.startsWith(IMPORTED);
    const isLabels = isOfName(tag) && mark?.startsWith(APPLIED) && !isOfName(mark);
    return isImports || isLabels ? (mark ?? tag) : tag;
  });
  const tags = [...(wanted.policies.tags ?? []), ...(existing === undefined ? own : kept)];
  if (tags.length === 0) return wanted;
  return { ...wanted, policies: { ...wanted.policies, tags: [...new Set(tags)].sort() } };
}
