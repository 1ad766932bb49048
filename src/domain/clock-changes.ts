import { compileSchedule } from './fire-times.js';
import type { TimingDefinition } from './fire-times-definition.js';
import { zoneOffsets } from './time-zone-offsets.js';
import { DAY_MS } from './wall-clock.js';

/** A zone that has not changed its clocks for so long has no rule to change them. */
const LOOKED_AHEAD = 3 * 366 * DAY_MS;

/** Longer than any change that a zone still makes, and the hour that it repeats. */
export const ROUND_CHANGE = 4 * 3_600_000;
/** Ten years of changes: a date meets one of them on a Sunday. */
const CHANGES = 20;

/**
 * True if a timing would fire at other times round the next changes of its zone's clocks, did each local time count
 * as the clocks show it: none that they skip, and both of one that they show twice.
 * @param after the changes after it count; ms.
 */
export function meetsClockChange(timing: TimingDefinition, after: number): boolean {
  const seed = 'any';
  const ours = compileSchedule(timing, { seed, createdAt: 0 });
  if (ours.kind !== 'fixed') return false;
  const literal = compileSchedule({ ...timing, gap: 'skip', fold: 'both' }, { seed, createdAt: 0 });
  return clockChanges(ours.tz, after, CHANGES).some((change) => {
    let time = change - ROUND_CHANGE;
    while (time < change + ROUND_CHANGE) {
      const next = ours.next(time);
      if (next !== literal.next(time)) return true;
      if (next === undefined) return false;
      time = next;
    }
    return false;
  });
}

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
