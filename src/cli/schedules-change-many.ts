import type { ScheduleFilter } from '../client/schedule-filter.js';
import type { ChangedSchedule, ChangeManyOptions, ChangeVerb } from '../client/schedules.js';
import { confirmed } from './confirm.js';
import { withKnownQueue } from './connect.js';
import type { OfferFlags } from './offer-changes.js';
import { plain, printJson, printLine, remark } from './output.js';
import type { Settings } from './settings.js';

/** What is said of a change that was made. */
export const DONE: Record<ChangeVerb, string> = {
  pause: 'paused',
  resume: 'resumed',
  trigger: 'triggered',
  delete: 'deleted',
};

/**
 * Shows which schedules a filter means, asks, and changes those that were shown and that it still means. Exit code 1
 * when some of them refused.
 */
export async function changeMany(
  settings: Settings,
  queue: string,
  verb: ChangeVerb,
  filter: ScheduleFilter,
  options: ChangeManyOptions,
  { dryRun = false, yes = false }: OfferFlags,
): Promise<void> {
  const { applied, schedules } = await withKnownQueue(settings, queue, async (q) => {
    const meant = await q.schedules.change(verb, filter, { ...options, dryRun: true });
    meant.sort((a, b) => (a.id < b.id ? -1 : 1));
    if (!settings.json) for (const { id } of meant) printLine(`  ${plain(id)}`);
    const goesOn =
      !dryRun &&
      meant.length > 0 &&
      (await confirmed(yes, `${capital(verb)} ${countText(meant)} of ${queue}?`));
    if (!goesOn) return { applied: false, schedules: meant };
    // What came since was not shown to anybody.
    const shown = { ...filter, ids: meant.map(({ id }) => id) };
    return { applied: true, schedules: await q.schedules.change(verb, shown, options) };
  });
  const refused = schedules.filter(({ problem }) => problem !== undefined);
  if (settings.json) printJson({ queue, verb, dryRun, applied, schedules });
  else {
    for (const { id, problem } of refused) printLine(`  ! ${plain(id)}: ${plain(problem ?? '')}`);
    if (applied) printLine(`${DONE[verb]} ${countText(schedules.filter(({ done }) => done))} of ${queue}`);
    else if (schedules.length === 0) remark('the filter means no schedule');
    else remark(`${dryRun ? 'a dry run of ' : ''}${countText(schedules)}: nothing was written`);
  }
  if (refused.length > 0) process.exitCode = 1;
}

function countText({ length }: readonly ChangedSchedule[]): string {
  return `${length} ${length === 1 ? 'schedule' : 'schedules'}`;
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1);
}
