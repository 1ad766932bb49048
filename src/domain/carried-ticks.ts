import type { CompiledTiming } from './fire-times.js';
import type { CronRule } from './fire-times-cron.js';
import { instantOf, instantsOf, namesOf } from './fire-times-named.js';
import type { PlannedTick, Ticks } from './ticks.js';
import type { OffsetSource } from './time-zone-offsets.js';

/** The known ticks of a schedule, ms; 0 for none. */
export interface KnownTicks {
  last: number;
  cur: number;
  next: number;
}

/** Where they are by the rules of now; undefined for a tick that does not exist any more, or that never was known. */
export interface CarriedTicks {
  cur: PlannedTick | undefined;
  next: PlannedTick | undefined;
}

/**
 * Carries the pending ticks of a schedule over a change of its zone's rules. A tick of a fixed time is a local date and
 * time, and stays one: it moves to the instant that they are now. So the local time that ran last is not run again,
 * none is left out, and nothing is made up for. Intervals have no name: they go on from the next instant that matches.
 *
 * Pure. `ticks` is compiled with the new rules, `old` has the offsets that the known ticks were computed with.
 * @param now ms
 */
export function carryTicks(
  ticks: Ticks,
  old: OffsetSource,
  { last, cur, next }: KnownTicks,
  now: number,
): CarriedTicks {
  const { timing } = ticks;
  const floor = Math.max(last, ...repeatsOf(timing, old, last));
  const after = cur > 0 ? beforeCarried(timing, old, cur) : undefined;
  let carried: PlannedTick | undefined;
  if (after !== undefined) carried = ticks.after(Math.max(after, floor));
  else if (cur > 0 && (cur <= now || timing.next(cur - 1) === cur))
    carried = { tick: cur, fireAt: ticks.fireTimeOf(cur) };
  else if (cur > 0) carried = ticks.after(Math.max(floor, now));
  // The planner names the successor of what ran last by itself, but does not know what would be a repeat of it.
  else if (floor > last) carried = ticks.after(floor);
  return { cur: carried, next: carried !== undefined && next > 0 ? ticks.after(carried.tick) : undefined };
}

/**
 * The instants that now stand for the local time of a tick that ran: it must not run at them again, nor what comes before
 * them. One that the clock now skips, and that stands for nothing, has its place just before the change.
 */
function repeatsOf(timing: CompiledTiming, old: OffsetSource, last: number): number[] {
  if (last === 0) return [];
  return localTimesOf(timing, old, last).flatMap(([rule, local]) => {
    const instants = instantsOf(rule, local);
    if (instants.length > 0) return instants;
    const change = placeOf(rule, local);
    return change === undefined ? [] : [change - 1];
  });
}

/** Where a local time stands among the others, also one that the clock skips: by its policy, or at the change. */
function placeOf(rule: CronRule, local: number): number | undefined {
  return instantOf({ ...rule, gap: rule.gap === 'shift' ? 'shift' : 'edge' }, local);
}

/** Just before the instant that now stands for the local time of a pending tick, the first if it had several names. */
function beforeCarried(timing: CompiledTiming, old: OffsetSource, cur: number): number | undefined {
  const placed = localTimesOf(timing, old, cur).map(([rule, local]) => placeOf(rule, local));
  const instants = placed.filter((instant) => instant !== undefined);
  return instants.length === 0 ? undefined : Math.min(...instants) - 1;
}

/** The local times by which a tick was named; of one that was moved from an excluded date, what the clock showed. */
function localTimesOf(
  timing: CompiledTiming,
  old: OffsetSource,
  tick: number,
): [rule: CronRule, local: number][] {
  const fixed = timing.rules.filter(({ pattern }) => !pattern.interval);
  const named = fixed.flatMap((rule) =>
    namesOf({ ...rule, zone: old }, tick).map((local): [CronRule, number] => [rule, local]),
  );
  const [rule] = fixed;
  if (named.length > 0 || rule === undefined || timing.kind !== 'fixed') return named;
  return [[rule, tick + old.spanAt(tick).offset]];
}
