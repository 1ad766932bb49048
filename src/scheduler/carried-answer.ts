import type { CalendarSet } from '../domain/calendar.js';
import { carryTicks } from '../domain/carried-ticks.js';
import { RecordedOffsets, type RecordedZone } from '../domain/recorded-offsets.js';
import { compileStored, type StoredPolicies } from '../domain/schedule.js';
import { Ticks } from '../domain/ticks.js';
import type { TimeZoneData } from '../domain/time-zone-offsets.js';
import type { PlanAnswer } from '../redis/leader-scripts.js';
import type { ZoneUser } from '../redis/time-zone-store.js';

/**
 * Where the pending ticks of a schedule are by newer rules of its zone; undefined when there is nothing to carry. Pure.
 * @param recorded the zone as the ticks were computed with it.
 * @param carrying records of a higher `ver` were carried, or written, since it began.
 * @throws CarillonError when the definition cannot be compiled: the planner will say so.
 */
export function carriedAnswer(
  { bucket, identity, record, now }: ZoneUser,
  policies: StoredPolicies,
  recorded: RecordedZone,
  carrying: number,
  timeZones: TimeZoneData,
  calendars: CalendarSet | undefined,
): PlanAnswer | undefined {
  const { last, cur, next, inc, ver, anchor, state } = record;
  if (ver > carrying) return undefined;
  if (state === 'ended' || (cur === 0 && last === 0)) return undefined;
  const timing = compileStored(policies, identity, anchor, calendars, timeZones);
  const ticks = new Ticks(timing, policies, identity);
  const carried = carryTicks(ticks, new RecordedOffsets(recorded), { last, cur, next }, now);
  return {
    op: 'replan',
    bucket,
    identity,
    inc: String(inc),
    ver: String(ver),
    cur,
    last,
    next,
    newCur: carried.cur?.tick ?? 0,
    newCurFire: carried.cur?.fireAt ?? 0,
    newNext: carried.next?.tick ?? 0,
    newNextFire: carried.next?.fireAt ?? 0,
  };
}
