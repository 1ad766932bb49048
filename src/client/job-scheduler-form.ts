import { checkObject, refuse } from '../config/check.js';
import { rejectUnknown } from '../config/unknown-options.js';
import { readAsBullmq } from '../domain/bullmq-pattern.js';
import { checkSchedule } from '../domain/check-schedule.js';
import { refusalOf } from '../domain/cron-refusal.js';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import type { ScheduleDefinition, StoredPolicies } from '../domain/schedule.js';
import type { ScheduleInfo } from './schedule-info.js';

/** BullMQ's own form of a schedule: the second argument of `upsertJobScheduler`. */
export interface JobSchedulerOptions {
  pattern?: string;
  /** ms */
  every?: number;
  /** ms; moves the ticks of `every` off the multiples of it that count from 1970. */
  offset?: number;
  tz?: string;
  startDate?: Date | string | number;
  endDate?: Date | string | number;
  limit?: number;
  /** An `every` starts at once anyway; for a pattern it is refused. */
  immediately?: boolean;
}

/** What BullMQ's `getJobScheduler` gives. Times in ms. */
export interface JobSchedulerJson<Data = unknown> {
  key: string;
  name: string;
  /** Ticks so far, the pending one included. */
  iterationCount: number;
  next?: number;
  limit?: number;
  startDate?: number;
  endDate?: number;
  tz?: string;
  pattern?: string;
  every?: number;
  offset?: number;
  template?: { data?: Data; opts?: Record<string, unknown> };
}

const KNOWN = ['pattern', 'every', 'offset', 'tz', 'startDate', 'endDate', 'limit', 'immediately'];
/** Options of BullMQ's that we refuse, and what does their work here. */
const REFUSED: Record<string, string> = {
  count: 'Leave it out: Carillon counts ticks itself.',
  key: 'Leave it out: the id is the key.',
  jobId: 'Leave it out: run ids are <schedule>@<ms>.',
  prevMillis: 'Leave it out: it is BullMQ’s own.',
};

/**
 * BullMQ's behaviour, stated (I11): the newest missed tick runs, runs may overlap, an `every` starts at once, and a
 * pattern names the days that BullMQ makes of it.
 * @param hostZone the host's time zone; BullMQ reads a pattern without `tz` in it, we never do.
 * @throws CarillonError INVALID_OPTION, INVALID_CRON, INVALID_TIME_ZONE, INVALID_DURATION, UNSUPPORTED
 */
export function fromJobSchedulerForm(
  options: JobSchedulerOptions,
  seed: string,
  hostZone: string,
): StoredPolicies {
  checkObject('repeatOpts', options);
  for (const [field, todo] of Object.entries(REFUSED)) {
    const given = (options as Record<string, unknown>)[field];
    if (given !== undefined) refuse(field, given, 'is refused', todo, 'UNSUPPORTED');
  }
  rejectUnknown(options, KNOWN);
  const { immediately, offset, ...timing } = options;
  if (immediately && options.every === undefined) {
    refuse(
      'immediately',
      immediately,
      'is refused for a pattern',
      'Add a job beside it: queue.add(name, data).',
      'UNSUPPORTED',
    );
  }
  if (options.pattern !== undefined && options.tz === undefined && !isUtc(hostZone)) {
    refuse(
      'tz',
      undefined,
      `is missing, and this host’s zone is ${hostZone}: BullMQ would read the pattern in it, so hosts would disagree`,
      `Write tz: '${hostZone}', or tz: 'UTC'.`,
    );
  }
  const aligned = alignment(options);
  const policies = checkPattern({ ...timing, ...aligned, missed: 'latest', overlap: 'allow' }, seed);
  // What was given is told again by the getters, also where it is our default.
  if (options.tz !== undefined) policies.tz = options.tz;
  if (policies.every !== undefined && aligned === undefined) policies.startsAtOnce = true;
  return policies;
}

/** Keeps a pattern beside the `cron` that says here what it says to BullMQ. */
function checkPattern(definition: ScheduleDefinition, seed: string): StoredPolicies {
  const { pattern, ...rest } = definition;
  const cron = typeof pattern === 'string' ? readAsBullmq(pattern) : undefined;
  if (pattern === undefined || cron === undefined || cron === pattern) return checkSchedule(definition, seed);
  try {
    return { ...checkSchedule({ ...rest, cron }, seed), bullmqPattern: pattern };
  } catch (error) {
    if (!isCarillonError(error) || error.code !== 'INVALID_CRON') throw error;
    const { code, todo } = error;
    const message = refusalOf(error, cron, { text: pattern, option: 'pattern' });
    throw new CarillonError(code, message, { field: 'pattern', given: pattern, todo });
  }
}

/** An `every` with an offset does not start at once: BullMQ waits for the next slot. */
function alignment({
  every,
  offset,
  startDate,
}: JobSchedulerOptions): { anchor: number; phase: number } | undefined {
  // BullMQ takes 0 for none, and lets patterns ignore it.
  if (!offset || every === undefined) return undefined;
  if (startDate !== undefined) {
    refuse('offset', offset, 'and startDate exclude each other', 'Leave one out: a start date is an offset.');
  }
  return { anchor: 0, phase: offset };
}

/** A schedule as BullMQ's getters give it. */
export function toJobSchedulerForm(info: ScheduleInfo): JobSchedulerJson {
  const { cron, bullmqPattern, every, tz, startDate, endDate, limit } = info.definition;
  const { name, data, opts } = info.template;
  const template = { ...(isEmpty(data) ? {} : { data }), ...(isEmpty(opts) ? {} : { opts }) };
  const json = {
    key: info.id,
    name,
    iterationCount: info.count + (info.next === undefined ? 0 : 1),
    next: info.next,
    limit,
    startDate,
    endDate,
    tz,
    pattern: bullmqPattern ?? cron?.join(' | '),
    every,
    offset: every === undefined ? 0 : (info.next ?? 0) % every,
    template: isEmpty(template) ? undefined : template,
  };
  return Object.fromEntries(
    Object.entries(json).filter(([, value]) => value !== undefined),
  ) as unknown as JobSchedulerJson;
}

/** BullMQ leaves `{}` out. */
function isEmpty(value: unknown): boolean {
  return JSON.stringify(value) === '{}';
}

function isUtc(zone: string): boolean {
  return ['UTC', 'Etc/UTC', 'Etc/GMT', 'GMT', 'UCT', 'Etc/UCT', 'Zulu', 'Etc/Zulu'].includes(zone);
}
