import { checkBoolean, checkObject, checkOneOf, refuse } from '../config/check.js';
import { rejectUnknown } from '../config/unknown-options.js';
import { jobIdOfRun } from '../domain/ids.js';
import type { RecordState } from '../domain/states.js';
import { refuseEmptyFilter } from './filter-means.js';

/** Where a job may stand: in the timers by its record's state, or in BullMQ. */
export type JobPlace = Exclude<RecordState, 'suspended' | 'ended'> | QueuePlace;
export type QueuePlace = 'dispatched' | 'retrying' | 'running';

/**
 * Which one-time jobs of a queue are meant; all conditions must hold. Runs of schedules, and jobs that plain BullMQ put
 * into the queue, are meant only by `ids`.
 */
export interface JobFilter {
  /**
   * Only jobs that stand there. `dispatched`: BullMQ has them, no worker does; `retrying`: they wait for another attempt;
   * `running`. Defaults to all but `running`.
   */
  states?: readonly JobPlace[];
  /** Only jobs of this name. */
  name?: string;
  /** Only jobs with this text in their id or name, in any case. */
  text?: string;
  /** Only these ids. Each that is not met is answered too, and why. */
  ids?: readonly string[];
  /** Every one-time job that is not running. Without other conditions. */
  all?: boolean;
}

export const IN_TIMERS = [
  'scheduled',
  'paused',
  'parked',
  'waiting',
  'held',
] as const satisfies readonly JobPlace[];
/** BullMQ's lists of each place. */
export const IN_QUEUE: Readonly<Record<QueuePlace, readonly string[]>> = {
  dispatched: ['wait', 'prioritized'],
  retrying: ['delayed'],
  running: ['active'],
};
const PLACES: readonly JobPlace[] = [...IN_TIMERS, 'dispatched', 'retrying', 'running'];
/** A filter that names no state does not stop what runs. */
export const UNLESS_NAMED: readonly JobPlace[] = PLACES.filter((place) => place !== 'running');

/** @throws CarillonError INVALID_OPTION: a filter that is no filter, or names nothing, must not mean no job, or all. */
export function checkJobFilter(value: unknown): JobFilter {
  const filter = checkObject('filter', value);
  rejectUnknown(filter, ['states', 'name', 'text', 'ids', 'all'], 'filter.');
  for (const state of listOf('filter.states', filter.states)) checkOneOf('filter.states', state, PLACES);
  for (const id of listOf('filter.ids', filter.ids)) checkText('filter.ids', id);
  for (const key of ['name', 'text'] as const) {
    if (filter[key] !== undefined) checkText(`filter.${key}`, filter[key]);
  }
  if (filter.all !== undefined) checkBoolean('filter.all', filter.all);
  refuseEmptyFilter(filter, 'job', 'states, a name, a text or ids');
  return filter as JobFilter;
}

/**
 * Tells the jobs that a filter means, apart from where they stand.
 * @returns a function of a job's id and name, and whether our tier holds or dispatched it.
 */
export function jobMatcher({
  ids,
  name,
  text,
}: JobFilter): (id: string, of: string, ours: boolean) => boolean {
  const wanted = ids === undefined ? undefined : new Set(ids);
  const part = text?.toLowerCase();
  return (id, of, ours) => {
    if (wanted === undefined ? !ours || jobIdOfRun(id) !== id : !wanted.has(id)) return false;
    if (name !== undefined && name !== of) return false;
    return part === undefined || id.toLowerCase().includes(part) || of.toLowerCase().includes(part);
  };
}

function listOf(field: string, value: unknown): readonly unknown[] {
  if (value === undefined) return [];
  if (!Array.isArray(value)) refuse(field, value, 'must be a list', "Give ['…'].");
  return value;
}

function checkText(field: string, value: unknown): void {
  if (typeof value !== 'string' || value === '') {
    refuse(field, value, 'must be a text of at least one character', 'Give a text, or leave it out.');
  }
}
