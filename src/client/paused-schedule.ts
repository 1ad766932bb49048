import type { StoredPolicies } from '../domain/schedule.js';
import type { Queue } from './queue.js';
import type { ScheduleInfo } from './schedule-info.js';
import type { ScheduleTemplate } from './schedules-port.js';

/** Later than any tick that could matter before the pause: ten years, in ms. */
const FAR = 10 * 365 * 86_400_000;

/**
 * Stores a schedule that does not fire until it is resumed, also where it did not exist before: it is created with
 * ticks far away, paused, and only then given its own. A crash in between leaves one that fires nothing.
 */
export async function storePaused(
  queue: Queue,
  id: string,
  policies: StoredPolicies,
  template: ScheduleTemplate,
  note: string,
): Promise<ScheduleInfo> {
  const handle = queue.schedules.get(id);
  const existing = await handle.describe();
  if (existing === undefined) {
    await queue.schedules.store(id, { every: FAR, anchor: Date.now() + FAR, missed: 'skip' }, template);
  }
  if (existing?.state !== 'paused' || existing.note !== note) await handle.pause({ note });
  return queue.schedules.store(id, policies, template);
}
