import type { CalendarSet } from '../domain/calendar.js';
import { NO_CALENDARS } from '../domain/exclusions.js';
import { storedNeverFires } from '../domain/never-fires.js';
import { compileTimes, MISSED_CODES, type MissedPolicy, type StoredPolicies } from '../domain/schedule.js';
import type { RecordState } from '../domain/states.js';
import { decodeOptions } from '../queue/job-json.js';
import type { ScheduleRecord, ScheduleRun } from '../redis/record.js';
import type { Stored } from './store-schedule.js';

/** What is known of a schedule. Times in ms. */
export interface ScheduleInfo {
  id: string;
  state: RecordState;
  /** The pending tick; undefined while none is planned. */
  next: number | undefined;
  /** When it fires: `next` and jitter. */
  nextFireAt: number | undefined;
  /** The last tick that fired or was passed over. */
  last: number | undefined;
  /** Ticks that ran or are sure to; a limit counts them. */
  count: number;
  /** Runs that were open when they were last looked at, and runs that wait for their turn. */
  open: ScheduleRun[];
  waiting: ScheduleRun[];
  /** Ticks skipped in a row; failed runs in a row. */
  skips: number;
  failures: number;
  /** As it is stored: durations and times in ms, defaults left out; `tz` is UTC when it is not there. */
  definition: StoredPolicies;
  /** What each run is; its options as BullMQ names them. */
  template: { name: string; data: unknown; opts: Record<string, unknown> };
  /** Why it is paused or suspended. */
  note: string | undefined;
  /** What the author may not have meant, and what this machine cannot make of the definition, as sentences. */
  warnings: readonly string[];
}

/** A schedule as a call left it. */
export interface StoredSchedule extends ScheduleInfo {
  /** The call repeats one with its `requestId` that was carried out before, and changed nothing. */
  repeated: boolean;
}

/** A schedule that was just written, with why that ended it. */
export function describeStored(
  queueName: string,
  id: string,
  stored: Omit<Stored, 'before'>,
): StoredSchedule {
  const { after, calendars, endsBecause, repeated } = stored;
  const info = { ...describeSchedule(queueName, id, after, calendars), repeated };
  return endsBecause === undefined
    ? info
    : { ...info, warnings: [...new Set([...info.warnings, endsBecause])] };
}

/**
 * A record as people read it. A definition that this machine cannot compile is described all the same.
 * @param calendars those that it names: without them nobody tells whether they leave it a tick.
 */
export function describeSchedule(
  queueName: string,
  id: string,
  record: ScheduleRecord,
  calendars: CalendarSet = NO_CALENDARS,
): ScheduleInfo {
  const { definition, warnings } = readDefinition(`${queueName}:${id}`, record, calendars);
  return {
    id,
    state: record.state,
    next: record.cur || undefined,
    nextFireAt: record.curFire || undefined,
    last: record.last || undefined,
    count: record.count,
    open: record.open,
    waiting: record.waiting,
    skips: record.skips,
    failures: record.failures,
    definition,
    template: {
      name: record.name,
      data: JSON.parse(record.data),
      opts: readOptions(record.opts),
    },
    note: record.note,
    warnings,
  };
}

/** The options of a template, as people write them. */
export function readOptions(text: string): Record<string, unknown> {
  if (text === '') return {};
  const { attempts, ...rest } = decodeOptions(text);
  // BullMQ stores a default that nobody wrote.
  return attempts === 0 ? rest : { attempts, ...rest };
}

function readDefinition(
  identity: string,
  record: ScheduleRecord,
  calendars: CalendarSet,
): Pick<ScheduleInfo, 'definition' | 'warnings'> {
  let definition: StoredPolicies = { missed: missedOf(record.missed) };
  try {
    definition = JSON.parse(record.policies) as StoredPolicies;
    const { warnings } = compileTimes(definition, identity, record.anchor);
    const why = record.cur > 0 ? undefined : neverFired(definition, identity, record, calendars);
    return { definition, warnings: why === undefined ? warnings : [...warnings, why] };
  } catch (error) {
    return { definition, warnings: [`its definition cannot be read: ${(error as Error).message}`] };
  }
}

/** Why it stands without a tick. Its limit, or an endDate that it lived to see, is no reason to warn of. */
function neverFired(
  definition: StoredPolicies,
  identity: string,
  record: ScheduleRecord,
  calendars: CalendarSet,
): string | undefined {
  const { limit, endDate } = definition;
  if (limit !== undefined && record.count >= limit) return undefined;
  const since = endDate === undefined ? Math.max(record.last, record.timestamp) : record.timestamp;
  return storedNeverFires(definition, identity, record.anchor, since, calendars);
}

function missedOf(code: number): MissedPolicy {
  return (Object.keys(MISSED_CODES) as MissedPolicy[]).find((word) => MISSED_CODES[word] === code) ?? 'skip';
}
