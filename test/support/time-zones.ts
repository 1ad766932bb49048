import { HOST_TIME_ZONES } from '../../src/domain/time-zone-offsets.js';
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
