import { bucketOf } from '../domain/buckets.js';
import { identityOf } from '../domain/ids.js';
import { decodeRecord, type ScheduleRecord } from './record.js';
import { asBytes, asNumber } from './replies.js';
import { requestHash } from './request-id.js';
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
  grace: number;
  missed: number;
  name: string;
  data: string;
  opts: string;
  priority: number;
  lifo: boolean;
  policies: string;
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
      grace: write.grace,
      missed: write.missed,
      overlap: 0,
      priority: write.priority,
      lifo: write.lifo,
    };
    const { status, rest } = await this.shard.run('upsert-schedule', 'deny-oom', [
      this.shard.base,
      bucketOf(identity),
      identity,
      requestHash(requestId),
      JSON.stringify(definition),
      write.name,
      write.data,
      write.opts,
      write.policies,
    ]);
    if (status === 'CONFLICT') return { status };
    if (status === 'RETRY') return { status, now: asNumber(rest[0]), last: asNumber(rest[1]) };
    if (status !== 'OK') throw statusError(status, undefined, 'scheduleId');
    return { status, record: decodeRecord(asBytes(rest[0])) as ScheduleRecord, now: asNumber(rest[1]) };
  }
}
