import { isDeepStrictEqual } from 'node:util';
import { bucketOf } from '../domain/buckets.js';
import { identityOf } from '../domain/ids.js';
import { decodeRecord, type ScheduleRecord } from './record.js';
import { asBytes, asList, asNumber, asText } from './replies.js';
import { requestHash } from './request-id.js';
import type { Reply } from './script-runner.js';
import type { Shard } from './shard.js';
import { statusError } from './status.js';

/** A schedule as the client hands it over; times in ms of Redis' clock, 0 for none. */
export interface ScheduleWrite {
  /** The record that was read before, or undefined to create one. */
  expected: { inc: number; ver: number; last: number } | undefined;
  /** Redis' TIME that the ticks were computed from. */
  asOf: number;
  /** What an `every` without an anchor counts from. */
  anchor: number;
  /** Only policies or the template changed: pending ticks stay. */
  keepTicks: boolean;
  cur: number;
  curFire: number;
  next: number;
  nextFire: number;
  /** No tick will ever come. */
  ends: boolean;
  /** The newest tick of the old definition that is due and did not fire, and what its row says; 0 for none. */
  overdueTo: number;
  overdueReason: string;
  grace: number;
  /** ms, 0 for none. */
  runTimeout: number;
  missed: number;
  overlap: number;
  maxOpen: number;
  /** 0 for no limit. */
  maxConcurrent: number;
  keptRows: number;
  /** 0 for never. */
  pauseAfter: number;
  name: string;
  data: string;
  opts: string;
  priority: number;
  lifo: boolean;
  policies: string;
  /** The zone that the ticks were computed in, and its offsets then, as JSON; none for UTC. */
  zone?: { tz: string; offsets: string };
}

export type ScheduleWritten =
  | { status: 'OK'; record: ScheduleRecord; now: number }
  /** Somebody else wrote it meanwhile: read again. */
  | { status: 'CONFLICT' }
  /** The ticks must be computed again from `now`, and after `last`. */
  | { status: 'RETRY'; now: number; last: number };

/** Writes of schedules, by compare-and-set. */
export class ScheduleScripts {
  constructor(private readonly shard: Shard) {}

  /** @throws CarillonError ID_IN_USE, BAD_RECORD */
  async upsert(
    queue: string,
    scheduleId: string,
    write: ScheduleWrite,
    requestId: string,
    operation: 'upsert' | 'update' = 'upsert',
  ): Promise<ScheduleWritten> {
    const identity = identityOf(queue, scheduleId);
    const definition = {
      inc: write.expected ? String(write.expected.inc) : '',
      ver: write.expected ? String(write.expected.ver) : '',
      last: write.expected?.last ?? 0,
      asOf: write.asOf,
      anchor: write.anchor,
      keepTicks: write.keepTicks,
      cur: write.cur,
      curFire: write.curFire,
      next: write.next,
      nextFire: write.nextFire,
      ends: write.ends,
      overdueTo: write.overdueTo,
      overdueReason: write.overdueReason,
      grace: write.grace,
      runTimeout: write.runTimeout,
      missed: write.missed,
      overlap: write.overlap,
      maxOpen: write.maxOpen,
      maxConcurrent: write.maxConcurrent,
      keptRows: write.keptRows,
      pauseAfter: write.pauseAfter,
      priority: write.priority,
      lifo: write.lifo,
      zone: write.zone?.tz,
      zoneOffsets: write.zone?.offsets,
    };
    const { status, rest } = await this.shard.run('upsert-schedule', 'deny-oom', [
      this.shard.base,
      bucketOf(identity),
      identity,
      requestHash(operation, requestId),
      JSON.stringify(definition),
      write.name,
      write.data,
      write.opts,
      write.policies,
    ]);
    if (status === 'CONFLICT') return { status };
    if (status === 'RETRY') return { status, now: asNumber(rest[0]), last: asNumber(rest[1]) };
    if (status !== 'OK') {
      const word = status === 'UNKNOWN_PARENT' ? 'UNKNOWN_SCHEDULE' : status;
      throw statusError(word, rest[0] === undefined ? undefined : asText(rest[0]), 'scheduleId');
    }
    return { status, record: decodeRecord(asBytes(rest[0])) as ScheduleRecord, now: asNumber(rest[1]) };
  }

  /**
   * Runs a schedule now, beside its ticks. `suffix` makes the run's id its own; `inTurn` waits behind open runs.
   * @throws CarillonError NOT_FOUND, UNSUPPORTED, QUEUE_BROKEN, QUOTA, ID_IN_USE
   */
  async trigger(
    queue: string,
    scheduleId: string,
    suffix: string,
    inTurn: boolean,
    requestId: string,
  ): Promise<ScheduleRecord> {
    const [record] = await this.#run(
      'trigger-schedule',
      queue,
      scheduleId,
      requestHash('trigger', requestId),
      [this.shard.namespace, suffix, inTurn ? 1 : 0],
    );
    // It ran, and somebody deleted the schedule since.
    if (asBytes(record).length === 0) throw statusError('NOT_FOUND', undefined, 'scheduleId');
    return decodeRecord(asBytes(record)) as ScheduleRecord;
  }

  /**
   * Gives it ticks of the past to run, in order: one at a time, or `beside` each other.
   * @param options.suffix makes the ids of the runs their own, so that what ran before runs again.
   * @param options.dry only tells which would run.
   * @returns the ticks that run: those that did not run before and are not the schedule's own to come; undefined for a
   *   request that was answered before.
   * @throws CarillonError NOT_FOUND, UNSUPPORTED, QUOTA
   */
  async backfill(
    queue: string,
    scheduleId: string,
    ticks: readonly number[],
    options: { suffix: string; beside: boolean; dry: boolean },
    requestId: string,
  ): Promise<number[] | undefined> {
    const [, , ran] = await this.#run(
      'backfill-schedule',
      queue,
      scheduleId,
      requestHash('backfill', requestId),
      [JSON.stringify(ticks), options.suffix, options.beside ? 1 : 0, options.dry ? 1 : 0],
    );
    return ran === undefined ? undefined : asList(ran).map(asNumber);
  }

  /**
   * Deletes it, with `cancelRuns` also its runs that no worker has fetched.
   * @throws CarillonError NOT_FOUND
   */
  async delete(
    queue: string,
    scheduleId: string,
    reason: string,
    cancelRuns: boolean,
    requestId: string,
  ): Promise<void> {
    const args = [reason, 'schedule', cancelRuns ? 1 : 0];
    await this.#run('cancel-job', queue, scheduleId, requestHash('delete', requestId), args, 'allow-oom');
  }

  /** The rows of its ledger, oldest first; times in ms. */
  async ledger(queue: string, scheduleId: string): Promise<LedgerRow[]> {
    const identity = identityOf(queue, scheduleId);
    const { client, keys } = this.shard;
    const read = client
      .multi()
      .hvals(keys.ledger(identity))
      .hgetBuffer(keys.jobs(bucketOf(identity)), identity);
    const [texts, bytes] = ((await read.exec()) ?? []).map(([error, value]) => {
      if (error !== null) throw error;
      return value;
    });
    const rows = ((texts ?? []) as string[]).map(readRow);
    const { owed, kept } = owedRow((bytes ?? null) as Buffer | null);
    if (owed !== undefined && !rows.some((row) => isDeepStrictEqual(row, owed))) rows.push(owed);
    return rows.sort((a, b) => a.at - b.at || a.scheduledFor - b.scheduledFor).slice(-kept);
  }

  async #run(
    script: string,
    queue: string,
    scheduleId: string,
    request: Buffer,
    args: readonly (string | number)[],
    flag: 'deny-oom' | 'allow-oom' = 'deny-oom',
  ): Promise<Reply[]> {
    const identity = identityOf(queue, scheduleId);
    const { status, rest } = await this.shard.run(script, flag, [
      this.shard.base,
      bucketOf(identity),
      identity,
      request,
      ...args,
    ]);
    if (status !== 'OK') {
      throw statusError(status, rest[0] === undefined ? undefined : asText(rest[0]), 'scheduleId');
    }
    return rest;
  }
}

/** One row of a schedule's ledger: the fate of a tick, or of a span of ticks. */
export interface LedgerRow {
  /** The tick, or the last of its span; ms. */
  scheduledFor: number;
  /**
   * `cancelled`: a run that was in the queue already gave way to a newer one. `timed out`: a run that did not end counts
   * as ended. Both come after the row that tells of the run's start.
   */
  what:
    | 'dispatched'
    | 'caught up'
    | 'backfilled'
    | 'triggered'
    | 'skipped'
    | 'refused'
    | 'quarantined'
    | 'cancelled'
    | 'timed out';
  /** When that was decided, ms. */
  at: number;
  /** What stands behind the run's id. */
  suffix: string;
  /** Why; empty for a run. */
  reason: string;
}

/** The row of the last tick while the record alone tells it (lua/lib/ledger.lua): it takes the place of the oldest. */
function owedRow(bytes: Buffer | null): { owed?: LedgerRow; kept: number } {
  const none = { kept: Number.POSITIVE_INFINITY };
  try {
    const record = bytes === null ? undefined : decodeRecord(bytes);
    if (record?.kind !== 'schedule' || !record.owed) return none;
    const run = record.open.find(({ scheduledFor, kind }) => scheduledFor === record.last && kind === 'tick');
    const at = run?.since ?? record.last;
    return {
      owed: { scheduledFor: record.last, what: 'dispatched', at, suffix: '', reason: '' },
      kept: record.keptRows,
    };
  } catch {
    // A damaged record tells nothing; doctor names it.
    return none;
  }
}

function readRow(text: string): LedgerRow {
  const [scheduledFor = '0', what = '', at = '0', suffix = '', ...reason] = text.split('|');
  return {
    scheduledFor: Number(scheduledFor),
    what: what as LedgerRow['what'],
    at: Number(at),
    suffix,
    reason: reason.join('|'),
  };
}
