import { compileTimes, MISSED_CODES, type MissedPolicy, type StoredPolicies } from '../domain/schedule.js';
import type { RecordState } from '../domain/states.js';
import { decodeOptions } from '../queue/job-json.js';
import type { ScheduleRecord, ScheduleRun } from '../redis/record.js';

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

/** A record as people read it. A definition that this machine cannot compile is described all the same. */
export function describeSchedule(queueName: string, id: string, record: ScheduleRecord): ScheduleInfo {
  const { definition, warnings } = readDefinition(`${queueName}:${id}`, record);
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
): Pick<ScheduleInfo, 'definition' | 'warnings'> {
  let definition: StoredPolicies = { missed: missedOf(record.missed) };
  try {
    definition = JSON.parse(record.policies) as StoredPolicies;
    return { definition, warnings: compileTimes(definition, identity, record.anchor).warnings };
  } catch (error) {
    return { definition, warnings: [`its definition cannot be read: ${(error as Error).message}`] };
  }
}

function missedOf(code: number): MissedPolicy {
  return (Object.keys(MISSED_CODES) as MissedPolicy[]).find((word) => MISSED_CODES[word] === code) ?? 'skip';
}
