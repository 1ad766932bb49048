import { RecordedOffsets } from '../../src/domain/recorded-offsets.js';
import { HOST_TIME_ZONES, type TimeZoneData, zoneOffsets } from '../../src/domain/time-zone-offsets.js';
import { CalendarStore } from '../../src/redis/calendar-store.js';
import { TimeZoneStore } from '../../src/redis/time-zone-store.js';
import { TimeZoneWatch } from '../../src/scheduler/time-zone-watch.js';
import { defaultLogger } from '../../src/support/logger.js';
import type { Spine } from './spine.js';

/** What a planner asks of time zones, for a test that plans without a scheduler. */
export function timeZonesOf(spine: Spine): TimeZoneWatch {
  return new TimeZoneWatch({
    store: new TimeZoneStore(spine.shard),
    scripts: spine.leader,
    calendars: new CalendarStore(spine.shard),
    owned: () => [],
    logger: defaultLogger(),
    now: () => Date.now(),
    host: HOST_TIME_ZONES,
  });
}

const HOUR = 3600;
/** A zone without summer time, so that a test says all there is to its rules. */
export const DUBAI = 'Asia/Dubai';

/** Dubai as a later version of the tz data would have it: from an instant on at another offset, in hours. */
export function newerDubai(from: string, hours: number, version = '9999a'): TimeZoneData {
  const offsets: [number, number][] = [
    [0, 4 * HOUR],
    [Date.parse(from) / 1000, hours * HOUR],
  ];
  const zone = new RecordedOffsets({ version, at: 0, from: 0, to: 0, offsets });
  return { version, offsetsOf: (tz) => (tz === DUBAI ? zone : zoneOffsets(tz)) };
}
