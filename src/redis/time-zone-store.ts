import { type RecordedZone, readRecordedZone } from '../domain/recorded-offsets.js';
import type { OwnedRange } from './leader-scripts.js';
import { packOwned } from './owned-ranges.js';
import { decodeRecord, type JobOrSchedule, type ScheduleRecord } from './record.js';
import { asBytes, asList, asNumber, asText } from './replies.js';
import type { Shard } from './shard.js';
import { redisError, statusError } from './status.js';

/** A schedule as it was read. `now`: Redis' TIME then, ms. */
export interface ZoneUser {
  bucket: number;
  identity: string;
  record: ScheduleRecord;
  now: number;
}

/** A zone in use. */
export interface ZoneInUse {
  /** What its ticks are computed with; undefined where it cannot be read. */
  recorded: RecordedZone | undefined;
  /** As it is stored: what {@link TimeZoneStore.set} compares. */
  text: string;
  /** While its pending ticks are carried over to that, bucket by bucket. */
  move?: ZoneMove;
}

export interface ZoneMove {
  /** What the ticks of buckets that are not done were computed with. */
  before: RecordedZone;
  /** Buckets whose ticks were carried over. */
  done: Set<number>;
}

const RECORDS_A_PAGE = 200;
const DONE = -1;

/**
 * The offsets that the pending ticks of a namespace are computed with, zone by zone, how far they were carried over from
 * older ones, and the schedules of a zone.
 */
export class TimeZoneStore {
  constructor(private readonly shard: Shard) {}

  /** Every zone that some schedule was planned in. */
  async all(): Promise<Map<string, ZoneInUse>> {
    const { client, keys } = this.shard;
    // At one instant: a zone that has newer offsets already, and no move yet, would look carried over.
    const replies = await client
      .multi()
      .hgetall(keys.zones)
      .hgetall(keys.zoneMoves)
      .exec()
      .catch((error: unknown) => {
        throw redisError(error);
      });
    const [zones, moves] = (replies ?? []).map(([error, reply]) => {
      if (error) throw redisError(error);
      return reply as Record<string, string>;
    });
    const found = new Map<string, ZoneInUse>();
    for (const [tz, text] of Object.entries(zones ?? {})) {
      const move = moveOf(tz, moves ?? {});
      found.set(tz, { recorded: readRecordedZone(text), text, ...(move && { move }) });
    }
    return found;
  }

  /**
   * The ticks of a zone are computed with these offsets from now on, if nobody else has changed them meanwhile.
   * @param expected what stands there as far as known: {@link ZoneInUse.text}, or nothing.
   * @param how `move`: pending ticks are to be carried over; `keep`: they are the same by both.
   * @returns false when it is otherwise by now, or when an earlier move is not done yet.
   */
  async set(tz: string, expected: string, zone: RecordedZone, how: 'move' | 'keep'): Promise<boolean> {
    const { status } = await this.shard.run('set-zone', 'deny-oom', [
      tz,
      expected,
      JSON.stringify(zone),
      how,
    ]);
    if (status !== 'OK' && status !== 'CONFLICT') throw statusError(status);
    return status === 'OK';
  }

  /**
   * A bucket's ticks of some zones begin to be carried over.
   * @returns for each zone the highest `inc` or `ver` of any record when that began, whoever began it: what is above it
   *   was carried, or written, since; zones with nothing to do are left out. Undefined when the bucket is not ours.
   */
  async beginCarrying(
    owned: readonly OwnedRange[],
    bucket: number,
    zones: readonly string[],
  ): Promise<Map<string, number> | undefined> {
    const states = await this.#carry(owned, bucket, 'begin', zones);
    if (states === undefined) return undefined;
    return new Map(zones.map((tz, i) => [tz, states[i] as number] as const).filter(([, at]) => at !== DONE));
  }

  /** They are carried over. False when the bucket is not ours any more. */
  async doneCarrying(
    owned: readonly OwnedRange[],
    bucket: number,
    zones: readonly string[],
  ): Promise<boolean> {
    return (await this.#carry(owned, bucket, 'done', zones)) !== undefined;
  }

  async #carry(
    owned: readonly OwnedRange[],
    bucket: number,
    what: 'begin' | 'done',
    zones: readonly string[],
  ): Promise<number[] | undefined> {
    const args = [packOwned(owned), bucket, what, zones.join(',')];
    const { status, rest } = await this.shard.run('carry-zone', 'deny-oom', args);
    if (status === 'FENCED') return undefined;
    if (status !== 'OK') throw statusError(status);
    return asList(rest[0]).map(asNumber);
  }

  /** Every schedule of a bucket that names one of these zones; one may come twice. */
  async *users(bucket: number, zones: readonly string[]): AsyncGenerator<ZoneUser> {
    let cursor = '0';
    do {
      const args = [bucket, cursor, RECORDS_A_PAGE, zones.join(',')];
      const { status, rest } = await this.shard.run('zone-users', 'read-only', args);
      if (status !== 'OK') throw statusError(status);
      const now = asNumber(rest[0]);
      cursor = asText(rest[1]);
      const items = asList(rest[2]);
      for (let i = 0; i < items.length; i += 2) {
        const record = readRecord(asBytes(items[i + 1]));
        if (record?.kind === 'schedule') yield { bucket, identity: asText(items[i]), record, now };
      }
    } while (cursor !== '0');
  }
}

/** `<zone>` → the zone before, `<bucket>|<zone>` → how far it is; lua/carry-zone.lua. */
function moveOf(tz: string, moves: Readonly<Record<string, string>>): ZoneMove | undefined {
  const before = readRecordedZone(moves[tz] ?? '');
  if (before === undefined) return undefined;
  const done = new Set<number>();
  for (const [field, state] of Object.entries(moves)) {
    const bar = field.indexOf('|');
    if (bar > 0 && field.slice(bar + 1) === tz && Number(state) === DONE)
      done.add(Number(field.slice(0, bar)));
  }
  return { before, done };
}

/** Undefined for what this version cannot read: its next pop sets it aside. */
function readRecord(bytes: Buffer): JobOrSchedule | undefined {
  try {
    return decodeRecord(bytes);
  } catch {
    return undefined;
  }
}
