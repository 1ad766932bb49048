import { identityOf } from '../domain/ids.js';
import { storedNeverFires } from '../domain/never-fires.js';
import { compileTimes, type StoredPolicies } from '../domain/schedule.js';
import { type Difference, differences, writtenSchedule } from '../domain/written-schedule.js';
import { decodeOptions } from '../queue/job-json.js';
import { storePaused } from './paused-schedule.js';
import type { Queue } from './queue.js';
import type { ScheduleInfo } from './schedule-info.js';
import { encodeTemplate } from './schedule-template.js';
import type { ScheduleTemplate } from './schedules-port.js';

/** A schedule as a file or another scheduler wants it. */
export interface WantedSchedule {
  readonly id: string;
  readonly policies: StoredPolicies;
  readonly template: ScheduleTemplate;
  /** True: it is not to fire. False: it is to fire. Undefined: that is left as it is. */
  readonly paused?: boolean;
  /** Why it is paused. */
  readonly note?: string;
}

/** What storing it would do. */
export interface ScheduleChange {
  readonly kind: 'added' | 'changed' | 'unchanged';
  readonly differences: readonly Difference[];
}

const ANY_SIZE = Number.MAX_SAFE_INTEGER;

/**
 * Compares what is wanted with what stands. Templates count by what a worker would see.
 * @throws CarillonError for a template that no queue would take
 */
export function compareSchedule(existing: ScheduleInfo | undefined, wanted: WantedSchedule): ScheduleChange {
  const template = templateOf(wanted.id, wanted.template);
  if (existing === undefined) return { kind: 'added', differences: [] };
  const found = differences(
    { ...writtenSchedule(existing.definition), ...templateOf(existing.id, existing.template) },
    { ...writtenSchedule(wanted.policies), ...template },
  );
  const isPaused = existing.state === 'paused';
  if (
    wanted.paused !== undefined &&
    (wanted.paused !== isPaused || (isPaused && wanted.note !== existing.note))
  ) {
    found.push({
      option: 'paused',
      from: isPaused ? (existing.note ?? true) : false,
      to: wanted.paused ? (wanted.note ?? true) : false,
    });
  }
  return { kind: found.length === 0 ? 'unchanged' : 'changed', differences: found };
}

/** What its author may not mean, where nothing of the namespace is there yet. */
export function doubtsOfNew(
  queue: string,
  { id, policies }: Pick<WantedSchedule, 'id' | 'policies'>,
): string[] {
  const now = Date.now();
  const identity = identityOf(queue, id);
  const why = storedNeverFires(policies, identity, now, now);
  return [...compileTimes(policies, identity, now).warnings, ...(why === undefined ? [] : [why])];
}

/**
 * Makes it so. Stored again and again it has its effect once.
 * @throws CarillonError as `queue.schedules.upsert`
 */
export async function storeWanted(queue: Queue, wanted: WantedSchedule): Promise<void> {
  const { id, policies, template, paused, note } = wanted;
  if (paused === true) {
    await storePaused(queue, id, policies, template, note ?? '');
    return;
  }
  const { state } = await queue.schedules.store(id, policies, template);
  if (paused === false && state === 'paused') await queue.schedules.get(id).resume();
}

function templateOf(id: string, template: ScheduleTemplate): { name: string; data: unknown; opts: unknown } {
  const { name, data, opts } = encodeTemplate(id, template, {}, ANY_SIZE);
  return { name, data: JSON.parse(data), opts: opts === '' ? {} : decodeOptions(opts) };
}
