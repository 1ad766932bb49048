import { rejectUnknown } from '../config/unknown-options.js';
import { CarillonError } from '../domain/errors.js';
import { checkSchedule, type StoredPolicies } from '../domain/schedule.js';
import type { ScheduleInfo } from './schedules.js';

/** BullMQ's own form of a schedule: the second argument of `upsertJobScheduler`. */
export interface JobSchedulerOptions {
  pattern?: string;
  /** ms */
  every?: number;
  tz?: string;
  startDate?: Date | string | number;
  endDate?: Date | string | number;
  limit?: number;
}

/** What BullMQ's `getJobScheduler` gives. Times in ms. */
export interface JobSchedulerJson<Data = unknown> {
  key: string;
  id: string;
  name: string;
  iterationCount: number;
  next?: number;
  limit?: number;
  startDate?: number;
  endDate?: number;
  tz?: string;
  pattern?: string;
  every?: number;
  template: { data?: Data; opts?: Record<string, unknown> };
}

const KNOWN = ['pattern', 'every', 'tz', 'startDate', 'endDate', 'limit'];
/** Options of BullMQ's that we refuse, and what does their work here. */
const REFUSED: Record<string, string> = {
  immediately: 'Add a job beside the schedule: queue.add(name, data). An every starts at once anyway.',
  count: 'Leave it out: Carillon counts ticks itself.',
  offset: 'Use queue.schedules.upsert with every and phase.',
  key: 'Leave it out: the id is the key.',
  jobId: 'Leave it out: run ids are <schedule>@<ms>.',
  prevMillis: 'Leave it out: it is BullMQ’s own.',
};

/**
 * BullMQ's behaviour, stated (I11): the newest missed tick runs, runs may overlap, an `every` starts at once.
 * @param hostZone the host's time zone; BullMQ reads a pattern without `tz` in it, we never do.
 * @throws CarillonError INVALID_OPTION, UNSUPPORTED
 */
export function fromJobSchedulerForm(
  options: JobSchedulerOptions,
  seed: string,
  hostZone: string,
): StoredPolicies {
  if (typeof options !== 'object' || options === null) {
    throw new CarillonError('INVALID_OPTION', 'repeatOpts must be an object', {
      field: 'repeatOpts',
      given: options,
    });
  }
  for (const [field, todo] of Object.entries(REFUSED)) {
    const given = (options as Record<string, unknown>)[field];
    if (given !== undefined)
      throw new CarillonError('UNSUPPORTED', `${field} is refused`, { field, given, todo });
  }
  rejectUnknown(options, KNOWN);
  if (options.pattern !== undefined && options.tz === undefined && !isUtc(hostZone)) {
    throw new CarillonError(
      'INVALID_OPTION',
      `tz is missing, and this host’s zone is ${hostZone}: BullMQ would read the pattern in it, so hosts would disagree`,
      { field: 'tz', todo: `Write tz: '${hostZone}', or tz: 'UTC'.` },
    );
  }
  const policies = checkSchedule({ ...options, missed: 'latest', overlap: 'allow' }, seed);
  return policies.every === undefined ? policies : { ...policies, startsAtOnce: true };
}

/** A schedule as BullMQ's getters give it. */
export function toJobSchedulerForm(info: ScheduleInfo): JobSchedulerJson {
  const { cron, every, tz, startDate, endDate, limit } = info.definition;
  return {
    key: info.id,
    id: info.id,
    name: info.template.name,
    iterationCount: info.count,
    ...(info.next === undefined ? {} : { next: info.next }),
    ...(limit === undefined ? {} : { limit }),
    ...(startDate === undefined ? {} : { startDate }),
    ...(endDate === undefined ? {} : { endDate }),
    ...(tz === undefined ? {} : { tz }),
    ...(cron === undefined ? {} : { pattern: cron.join(' | ') }),
    ...(every === undefined ? {} : { every }),
    template: { data: info.template.data, opts: info.template.opts },
  };
}

function isUtc(zone: string): boolean {
  return ['UTC', 'Etc/UTC', 'Etc/GMT', 'GMT', 'UCT', 'Etc/UCT', 'Zulu', 'Etc/Zulu'].includes(zone);
}
