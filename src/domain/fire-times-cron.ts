import type { CronPattern } from './cron.js';
import { type OffsetSource, type OffsetSpan, YEARLY_RULES_FROM } from './time-zone-offsets.js';
import { DAY_MS, nextWallClock } from './wall-clock.js';

/**
 * What happens to a time that the clock skips, on the day it is put forward: it moves forward by the length of the
 * gap (`shift`), to the instant of the change (`edge`), or does not happen (`skip`).
 */
export type GapPolicy = 'shift' | 'edge' | 'skip';
/** Which pass counts of a time that the clock shows twice, on the day it is put back. */
export type FoldPolicy = 'first' | 'last' | 'both';

/** What a fire time depends on, besides the scheduled time before it. */
export interface CronRule {
  readonly pattern: CronPattern;
  readonly zone: OffsetSource;
  readonly gap: GapPolicy;
  readonly fold: FoldPolicy;
}

/** 9999-12-31T23:59:59Z: the last scheduled time. */
export const LAST_TIME = 253_402_300_799_000;
/** More than any offset and any change of offset: an instant lies within it of its wall-clock time. */
export const WIDEST_OFFSET = 2 * DAY_MS;
/** 400 years: once clock changes follow yearly rules, calendar and changes both repeat after them. */
const CYCLE = 146_097 * DAY_MS;

/**
 * The first instant strictly after `after` at which the rule fires; undefined if there is none up to 9999.
 *
 * Time is walked one span of equal offset at a time. Within a span, instants and wall-clock times run in step, so the
 * answer is the next named wall-clock time, less those that the fold policy gives to the other pass, and besides
 * those that the gap policy moves in from the gap at the span's start.
 * @param after ms since the epoch, any number; no time before 1970 is given.
 */
export function nextCronTime(rule: CronRule, after: number): number | undefined {
  let from = Math.max(0, (Math.floor(after / 1000) + 1) * 1000);
  // A time that every year's change skips never comes; one cycle without it is proof.
  const last = Math.min(LAST_TIME, Math.max(from, YEARLY_RULES_FROM) + CYCLE + WIDEST_OFFSET);
  while (from <= last) {
    const span = rule.zone.spanAt(from);
    const moved = movedFromGap(rule, span, from);
    const seenFrom = Math.max(from + span.offset, ownStart(rule, span));
    const wallClock = nextWallClock(rule.pattern, seenFrom);
    if (wallClock !== undefined && wallClock < ownEnd(rule, span)) {
      return upToLast(Math.min(wallClock - span.offset, moved ?? Number.POSITIVE_INFINITY));
    }
    if (moved !== undefined) return upToLast(moved);
    if (wallClock === undefined) return undefined;
    // No time is named up to that wall clock, whatever the offsets in between, unless the clock is put back at the
    // end of this span to times before those looked at.
    const putBack = span.end + span.offsetAfter < seenFrom;
    from = putBack ? span.end : Math.max(span.end, wallClock - WIDEST_OFFSET);
  }
  return undefined;
}

/** The first wall-clock time of a span that is its own to fire: `fold: 'first'` leaves the second pass out. */
function ownStart(rule: CronRule, span: OffsetSpan): number {
  const first = !rule.pattern.interval && rule.fold === 'first';
  return span.start + (first ? Math.max(span.offset, span.offsetBefore) : span.offset);
}

/** The wall-clock time at which a span's own end: `fold: 'last'` leaves the first pass out. */
function ownEnd(rule: CronRule, span: OffsetSpan): number {
  const last = !rule.pattern.interval && rule.fold === 'last';
  return span.end + (last ? Math.min(span.offset, span.offsetAfter) : span.offset);
}

/** The first instant at or after `from`, in this span, that stands for a time in the gap at the span's start. */
function movedFromGap(rule: CronRule, span: OffsetSpan, from: number): number | undefined {
  const length = span.offset - span.offsetBefore;
  if (length <= 0 || rule.pattern.interval || rule.gap === 'skip' || from >= span.start + length)
    return undefined;
  if (rule.gap === 'edge' && from > span.start) return undefined;
  const skipped = nextWallClock(rule.pattern, from + span.offsetBefore);
  if (skipped === undefined || skipped >= span.start + span.offset) return undefined;
  return rule.gap === 'edge' ? span.start : skipped - span.offsetBefore;
}

function upToLast(time: number): number | undefined {
  return time > LAST_TIME ? undefined : time;
}
