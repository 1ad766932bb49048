import { BUCKETS } from '../domain/buckets.js';
import { type RecordedZone, readRecordedZone } from '../domain/recorded-offsets.js';
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

const RECORDS_A_PAGE = 200;

/** The offsets that the pending ticks of a namespace were computed with, zone by zone, and the schedules of a zone. */
export class TimeZoneStore {
  constructor(private readonly shard: Shard) {}

  /** Every zone that some schedule was planned in. */
  async all(): Promise<Map<string, RecordedZone>> {
    const { client, keys } = this.shard;
    const texts = await client.hgetall(keys.zones).catch((error: unknown) => {
      throw redisError(error);
    });
    const found = new Map<string, RecordedZone>();
    for (const [tz, text] of Object.entries(texts)) {
      const zone = readRecordedZone(text);
      if (zone !== undefined) found.set(tz, zone);
    }
    return found;
  }

  /** The ticks of this zone are computed with these offsets from now on. */
  async record(tz: string, zone: RecordedZone): Promise<void> {
    const { client, keys } = this.shard;
    await client.hset(keys.zones, tz, JSON.stringify(zone)).catch((error: unknown) => {
      throw redisError(error);
    });
  }

  /** The highest `inc` or `ver` that any record has. */
  async lastVersion(): Promise<number> {
    const { client, keys } = this.shard;
    const text = await client.hget(keys.meta, 'inc').catch((error: unknown) => {
      throw redisError(error);
    });
    return Number(text ?? 0);
  }

  /** Every schedule that names one of these zones; one may come twice. */
  async *users(zones: readonly string[]): AsyncGenerator<ZoneUser> {
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      let cursor = '0';
      do {
        const { status, rest } = await this.shard.run('zone-users', 'read-only', [
          bucket,
          cursor,
          RECORDS_A_PAGE,
          zones.join(','),
        ]);
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
}

/** Undefined for what this version cannot read: its next pop sets it aside. */
function readRecord(bytes: Buffer): JobOrSchedule | undefined {
  try {
    return decodeRecord(bytes);
  } catch {
    return undefined;
  }
}
