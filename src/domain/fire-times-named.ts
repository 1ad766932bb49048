import { type CronRule, LAST_TIME, WIDEST_OFFSET } from './fire-times-cron.js';
import type { OffsetSource, OffsetSpan } from './time-zone-offsets.js';
import { DAY_MS, nextWallClock } from './wall-clock.js';

/**
 * The instants that a date and time stand for by the policies of a rule, whether or not it names them: none, one, or
 * the two passes of a repeated hour, in order.
 * @param wallClock whole seconds, as a wall-clock time in ms.
 */
export function instantsOf(rule: CronRule, wallClock: number): number[] {
  const passes: number[] = [];
  let gap: OffsetSpan | undefined;
  for (let at = wallClock - WIDEST_OFFSET; at <= wallClock + WIDEST_OFFSET; ) {
    const span = rule.zone.spanAt(at);
    const instant = wallClock - span.offset;
    if (instant >= span.start && instant < span.end) passes.push(instant);
    if (wallClock >= span.start + span.offsetBefore && wallClock < span.start + span.offset) gap = span;
    at = span.end;
  }
  return chosen(rule, wallClock, passes, gap).filter((instant) => instant >= 0 && instant <= LAST_TIME);
}

function chosen(
  rule: CronRule,
  wallClock: number,
  passes: number[],
  gap: OffsetSpan | undefined,
): readonly number[] {
  const { interval } = rule.pattern;
  if (passes.length > 0) {
    if (interval || rule.fold === 'both') return passes;
    return rule.fold === 'first' ? passes.slice(0, 1) : passes.slice(-1);
  }
  if (gap === undefined || interval || rule.gap === 'skip') return [];
  return [rule.gap === 'edge' ? gap.start : wallClock - gap.offsetBefore];
}

/** The first of {@link instantsOf}: where a tick of another date goes that is moved to this one. */
export function instantOf(rule: CronRule, wallClock: number): number | undefined {
  return instantsOf(rule, wallClock)[0];
}

/** The dates and times that an expression names and that stand for an instant; the one shown then comes first. */
export function namesOf(rule: CronRule, at: number): number[] {
  const { start, offset, offsetBefore } = rule.zone.spanAt(at);
  const names: number[] = [];
  const shown = at + offset;
  if (namesWallClock(rule, shown) && instantsOf(rule, shown).includes(at)) names.push(shown);
  if (rule.pattern.interval || rule.gap === 'skip' || offset <= offsetBefore) return names;
  const skipped = nextWallClock(rule.pattern, (rule.gap === 'edge' ? start : at) + offsetBefore);
  if (skipped !== undefined && skipped < start + offset && instantOf(rule, skipped) === at)
    names.push(skipped);
  return names;
}

/** Whether an expression names a date and time. */
export function namesWallClock({ pattern }: CronRule, wallClock: number): boolean {
  return nextWallClock(pattern, wallClock) === wallClock;
}

/** No date and time before this stands for an instant at or after `at`. */
export function lowestWallClock(zone: OffsetSource, at: number): number {
  const { start, end, offset, offsetBefore, offsetAfter } = zone.spanAt(at);
  let lowest = offset;
  if (at - start < DAY_MS) lowest = Math.min(lowest, offsetBefore);
  if (end - at < DAY_MS) lowest = Math.min(lowest, offsetAfter);
  return at + lowest;
}
