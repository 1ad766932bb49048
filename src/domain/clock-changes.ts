import { zoneOffsets } from './time-zone-offsets.js';
import { DAY_MS } from './wall-clock.js';

/** A zone that has not changed its clocks for so long has no rule to change them. */
const LOOKED_AHEAD = 3 * 366 * DAY_MS;

/**
 * The next instants at which the clocks of a zone change, strictly after `after`, in ms; fewer than `count`, or
 * none, for a zone that changes them no more.
 * @throws CarillonError `INVALID_TIME_ZONE`
 */
export function clockChanges(tz: string, after: number, count: number): number[] {
  const zone = zoneOffsets(tz);
  const changes: number[] = [];
  let last = after;
  let at = after;
  while (changes.length < count && at - last < LOOKED_AHEAD) {
    const span = zone.spanAt(at);
    at = span.end;
    if (span.offsetAfter === span.offset) continue;
    changes.push(at);
    last = at;
  }
  return changes;
}
