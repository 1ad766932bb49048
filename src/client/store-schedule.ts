import { setTimeout } from 'node:timers/promises';
import type { CalendarSet } from '../domain/calendar.js';
import { CarillonError } from '../domain/errors.js';
import { calendarsOf } from '../domain/exclusions-definition.js';
import { identityOf } from '../domain/ids.js';
import type { StoredPolicies } from '../domain/schedule.js';
import type { JobRecord, ScheduleRecord } from '../redis/record.js';
import type { ScheduleWrite } from '../redis/schedule-scripts.js';
import { calendarsNamed } from './named-calendars.js';
import { type RequestOptions, requestOf } from './request-ids.js';
import { type EncodedTemplate, endsBecause, writeOf } from './schedule-write.js';
import type { SchedulesPort } from './schedules-port.js';

/** Writers of one schedule who meet rest before they try again, each a little longer than before, by chance. */
const TRIES = 20;
const LONGEST_REST = 100;

/** What a schedule is to be. */
export interface Wanted {
  policies: StoredPolicies;
  template: EncodedTemplate;
}

type WantedOf = (read: { now: number; record: JobRecord | ScheduleRecord | undefined }) => Wanted;

/** A schedule as it stood, and as it stands now. */
export interface Stored {
  before: ScheduleRecord | undefined;
  after: ScheduleRecord;
  /** Those that it names. */
  calendars: CalendarSet;
  /** Why this write ended it, as a sentence. */
  endsBecause?: string | undefined;
  /** An earlier call with this request id was carried out; this one changed nothing. */
  repeated: boolean;
}

interface StoreOptions extends RequestOptions {
  /** What the caller's request id names. Defaults to `upsert`. */
  operation?: 'upsert' | 'update';
  dryRun?: boolean;
  /** What the call keeps in this process until Redis answers; nothing to speak of by default. */
  waits?: EncodedTemplate;
}

/**
 * Reads a schedule, has it said what it is to be, and stores that by compare-and-set; all of it again when somebody else
 * wrote it in between, so that no edit is lost.
 * @param wantedOf is asked anew for each reading; what it throws ends the call. It refuses a one-time job.
 * @param options.dryRun only tells what would become of a schedule that there is; nothing is written.
 * @throws CarillonError OFFLINE_FULL while Redis is away; CONFLICT when others were first each time; what the script refuses
 */
export async function storeSchedule(
  port: SchedulesPort,
  id: string,
  wantedOf: WantedOf,
  options: StoreOptions,
): Promise<Stored> {
  const requestId = requestOf(options);
  return port.unanswered.hold([options.waits ?? { data: '', opts: '' }], () =>
    compareAndSet(port, id, wantedOf, requestId, options),
  );
}

async function compareAndSet(
  port: SchedulesPort,
  id: string,
  wantedOf: WantedOf,
  requestId: string,
  { operation = 'upsert', dryRun = false }: StoreOptions,
): Promise<Stored> {
  const { jobs, scripts, queueName } = port;
  for (let attempt = 0; attempt < TRIES; attempt++) {
    if (attempt > 0) await setTimeout(Math.random() * Math.min(LONGEST_REST, 2 ** attempt));
    const read = await jobs.get(queueName, id);
    port.unanswered.answered();
    const { policies, template } = wantedOf(read);
    const before = read.record as ScheduleRecord | undefined;
    const names = [...calendarsOf(policies.exclude), ...calendarsNamed(before)];
    const calendars = await port.calendars.named(names);
    const identity = identityOf(queueName, id);
    const found = { now: read.now, record: before, spentLast: read.last, calendars };
    const write = writeOf(identity, policies, template, found);
    if (write === undefined) return { before, after: before as ScheduleRecord, calendars, repeated: false };
    const stored = { before, calendars, endsBecause: endsBecause(identity, policies, write, found) };
    if (dryRun) return { ...stored, after: asWritten(before as ScheduleRecord, write), repeated: false };
    const written = await scripts.upsert(queueName, id, write, requestId, operation);
    if (written.status !== 'OK') continue;
    // Whatever changes a record gives it a version.
    const { inc, ver } = written.record;
    if (inc === before?.inc && ver === before.ver) {
      return { before, after: written.record, calendars, repeated: true };
    }
    await followCalendars(port, names, calendars);
    return { ...stored, after: written.record, repeated: false };
  }
  throw new CarillonError(
    'CONFLICT',
    `the schedule ${id} was changed by others ${TRIES} times while it was being written`,
    {
      field: 'scheduleId',
      given: id,
      todo: 'Write a schedule from one place; repeat the call.',
      retryable: true,
    },
  );
}

/** A record as the script would leave it, as far as people see it. */
function asWritten(before: ScheduleRecord, write: ScheduleWrite): ScheduleRecord {
  const { policies, name, data, opts, priority, lifo } = write;
  const after = { ...before, policies, name, data, opts, priority, lifo };
  if (write.keepTicks) return after;
  const { cur, curFire, next, nextFire, anchor } = write;
  const isPaused = before.state === 'paused';
  const ends = write.ends && before.waiting.length === 0;
  const state = ends ? 'ended' : isPaused ? 'paused' : 'scheduled';
  return { ...after, cur, curFire, next, nextFire, anchor, state, note: isPaused ? before.note : undefined };
}

/** A calendar that changed while a schedule was written may have passed it over. */
async function followCalendars(
  port: SchedulesPort,
  names: readonly string[],
  used: CalendarSet,
): Promise<void> {
  if (names.length === 0) return;
  const now = await port.calendars.named(names);
  for (const name of names) {
    const version = now.get(name)?.version;
    if (version !== undefined && version !== used.get(name)?.version) {
      await port.calendars.settle(name, version);
    }
  }
}
