import { tickRunId } from '../domain/ids.js';
import type { PreviewedTime } from '../domain/preview.js';
import { latenessWords, policyWords } from '../domain/schedule-words.js';
import type { LedgerRow } from '../redis/schedule-scripts.js';
import type { ScheduleInfo } from './schedule-info.js';

/** A row of the ledger, joined with what BullMQ knows of its run while it keeps it. */
export interface ScheduleRunRow extends LedgerRow {
  /** The run's id in BullMQ; undefined for a tick that did not run. */
  runId: string | undefined;
  /** How long after its scheduled time it went into the queue, jitter included; ms. */
  lateBy: number | undefined;
  /** BullMQ's state of it (`completed`, `failed`, `active`, …); `unknown` when it keeps it no more. */
  outcome: string | undefined;
}

/** Everything about a schedule that a person may ask for. */
export interface ScheduleDescription extends ScheduleInfo {
  /** Its policies as sentences, defaults spelled out. */
  words: string[];
  /** How late a tick may run, as a sentence. */
  lateness: string;
  /** What repeats of its runs do, by what their handlers say: see `effects` of a handler. */
  repeats: string;
  /** The next ten ticks. */
  upcoming: PreviewedTime[];
  /** The last ten rows of its ledger, oldest first. */
  recent: ScheduleRunRow[];
}

const RAN: ReadonlySet<LedgerRow['what']> = new Set(['dispatched', 'caught up', 'backfilled', 'triggered']);

/** Joins ledger rows with BullMQ's states. */
export async function joinOutcomes(
  scheduleId: string,
  rows: readonly LedgerRow[],
  stateOf: (runId: string) => Promise<string>,
): Promise<ScheduleRunRow[]> {
  return Promise.all(
    rows.map(async (row) => {
      if (!RAN.has(row.what)) return { ...row, runId: undefined, lateBy: undefined, outcome: undefined };
      const runId = tickRunId(scheduleId, row.scheduledFor) + row.suffix;
      // TIME may have stepped back meanwhile.
      const lateBy = Math.max(0, row.at - row.scheduledFor);
      return { ...row, runId, lateBy, outcome: await stateOf(runId) };
    }),
  );
}

export function describeWhole(
  info: ScheduleInfo,
  repeats: string,
  upcoming: PreviewedTime[],
  recent: ScheduleRunRow[],
): ScheduleDescription {
  return {
    ...info,
    words: policyWords(info.definition),
    lateness: latenessWords(info.definition, shortestPeriod(upcoming)),
    repeats,
    upcoming,
    recent,
  };
}

/** The shortest time between two of the ticks to come, ms. */
function shortestPeriod(upcoming: readonly PreviewedTime[]): number | undefined {
  const gaps = upcoming.slice(1).map(({ at }, i) => at - (upcoming[i] as PreviewedTime).at);
  return gaps.length === 0 ? undefined : Math.min(...gaps);
}
