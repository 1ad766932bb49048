import type { CompiledExclusions } from './exclusions.js';
import { type CronRule, LAST_TIME, WIDEST_OFFSET } from './fire-times-cron.js';
import { instantOf, instantsOf, lowestWallClock, namesWallClock } from './fire-times-named.js';
import { DAY_MS, nextWallClock, type WallClockPattern } from './wall-clock.js';

/**
 * `onExcluded: 'next'`. A tick is a date and a time of day that an expression names. If its instant is excluded, it
 * moves to the same time of day on the next date on which that time exists and is not excluded. Several may meet
 * there, with each other or with a tick of that date: they are one tick.
 */
export interface MoveRule {
  readonly rule: CronRule;
  readonly exclusions: CompiledExclusions;
  /** Before it no tick is, so that none is moved; ms. */
  readonly earliest: number;
}

/**
 * The first instant strictly after `after` and before `before` to which a tick is moved.
 *
 * Walks the times of day that the expression names, on whatever dates, and asks of each whether a tick was moved
 * there. Stretches that can hold no such time are jumped over: excluded ones, and those with nothing excluded on the
 * date before.
 */
export function nextMovedTime(
  { rule, exclusions, earliest }: MoveRule,
  after: number,
  before: number,
): number | undefined {
  const times = everyDay(rule.pattern);
  let wallClock = lowestWallClock(rule.zone, after);
  let best: number | undefined;
  for (;;) {
    const named = nextWallClock(times, Math.ceil(wallClock / 1000) * 1000);
    if (named === undefined) return best;
    wallClock = named + 1000;
    const at = instantOf(rule, named);
    if (at === undefined || at <= after) continue;
    const { start, offset } = rule.zone.spanAt(at);
    // Out of a gap: later names stand for earlier instants, from those on that the clock shows at its end.
    const shifted = at + offset !== named;
    if (at >= Math.min(before, best ?? before)) {
      if (!shifted) return best;
      wallClock = Math.max(wallClock, start + offset);
      continue;
    }
    const span = exclusions.spanAt(at);
    if (span !== undefined) {
      wallClock = Math.max(wallClock, lowestWallClock(rule.zone, span.end));
      continue;
    }
    const origin = findOrigin({ rule, exclusions, earliest }, named);
    if (origin.at === undefined) {
      if (origin.retryFrom === undefined) return best;
      wallClock = Math.max(wallClock, origin.retryFrom);
      continue;
    }
    best = at;
    if (!shifted) return best;
    wallClock = Math.max(wallClock, start + offset);
  }
}

/** Where the tick goes that a date and time name, if its own instant is excluded; undefined if nowhere up to 9999. */
export function movedTo({ rule, exclusions }: Omit<MoveRule, 'earliest'>, named: number): number | undefined {
  for (let wallClock = named + DAY_MS; wallClock <= LAST_TIME; ) {
    const at = instantOf(rule, wallClock);
    const span = at === undefined ? undefined : exclusions.spanAt(at);
    if (at !== undefined && span === undefined) return at;
    const days = at === undefined || span === undefined ? 1 : Math.floor((span.end - at) / DAY_MS);
    wallClock += Math.max(1, days) * DAY_MS;
  }
  return undefined;
}

/** A tick that was moved to a date and time, or from which wall-clock time on there may be one again. */
interface Origin {
  readonly at?: number;
  readonly retryFrom?: number;
}

/** Looks back, date by date, while the time of day is excluded on each, for a date that the expression names. */
export function findOrigin({ rule, exclusions, earliest }: MoveRule, named: number): Origin {
  const edges: number[] = [];
  let wallClock = named - DAY_MS;
  for (;;) {
    const at = instantOf(rule, wallClock);
    if (at === undefined) {
      // The date has no such time: what was moved passed over it.
      wallClock -= DAY_MS;
      continue;
    }
    const span = at < earliest ? undefined : exclusions.spanAt(at);
    if (span === undefined) {
      // Of a repeated hour the second pass may be excluded alone.
      const second = instantsOf(rule, wallClock)[1] ?? Number.NEGATIVE_INFINITY;
      const excluded = second >= earliest && exclusions.spanAt(second) !== undefined;
      if (excluded && namesWallClock(rule, wallClock)) return { at: second };
      const following = exclusions.spanAt(at) === undefined ? exclusions.spanAfter(at)?.start : earliest;
      // Around a gap the time of day decides: some are skipped, and some that come later stand for earlier instants.
      const { start, end } = rule.zone.spanAt(at);
      edges.push(...[start, end].filter((change) => Math.abs(change - at) < WIDEST_OFFSET));
      if (edges.length === 0) return nothingUntil(rule, named, following);
      // What is excluded next in the second pass may lie behind much that is excluded in the first.
      const followingSecond = second > at ? exclusions.spanAfter(second)?.start : undefined;
      edges.push(...[following, followingSecond].filter((start) => start !== undefined));
      break;
    }
    const first = firstDateIn(rule, wallClock, at, Math.max(span.start, earliest));
    const found = namedDate(rule, first, wallClock, edges);
    if (found !== undefined) return { at: found };
    edges.push(span.start, span.end);
    wallClock = first - DAY_MS;
  }
  return { retryFrom: nextEdge(rule, named, [...edges, earliest]) };
}

/** Nothing that is moved from before an instant, or ever. */
function nothingUntil(rule: CronRule, named: number, instant: number | undefined): Origin {
  if (instant === undefined) return {};
  const retryFrom = lowestWallClock(rule.zone, instant) + DAY_MS;
  return { retryFrom: retryFrom > named ? retryFrom : nextEdge(rule, named, [instant]) };
}

/** The earliest date on which the time of day lies at or after `from`; `wallClock`, which stands for `at`, does. */
function firstDateIn(rule: CronRule, wallClock: number, at: number, from: number): number {
  const onDate = (date: number) => instantOf(rule, date) ?? Number.NEGATIVE_INFINITY;
  let first = wallClock - Math.floor((at - from) / DAY_MS) * DAY_MS;
  while (first < wallClock && onDate(first) < from) first += DAY_MS;
  while (onDate(first - DAY_MS) >= from) first -= DAY_MS;
  return first;
}

/**
 * The instant of the first date from `first` to `last`, wall-clock times of one time of day, that the rule names.
 * @param edges takes an instant near each change of offset that skipped the time on a named date.
 */
function namedDate(rule: CronRule, first: number, last: number, edges: number[]): number | undefined {
  let from = first;
  for (;;) {
    const found = nextWallClock(rule.pattern, from);
    if (found === undefined) return undefined;
    const date = first + Math.floor(found / DAY_MS - Math.floor(first / DAY_MS)) * DAY_MS;
    if (date > last) return undefined;
    const at = instantOf(rule, date);
    if (at !== undefined) return at;
    edges.push(date - WIDEST_OFFSET);
    from = date + DAY_MS;
  }
}

/**
 * The first wall-clock time after `named`, on its date, at which the answer may change, or the next midnight. That is
 * the time of day of an end of an excluded stretch, or of a change of offset near one, whichever clock shows it.
 */
function nextEdge(rule: CronRule, named: number, instants: readonly number[]): number {
  const midnight = Math.floor(named / DAY_MS) * DAY_MS;
  let next = midnight + DAY_MS;
  for (const instant of instants) {
    const { start, end, offset, offsetBefore, offsetAfter } = rule.zone.spanAt(instant);
    for (const wallClock of [
      instant + offset,
      instant + offsetBefore,
      start + offset,
      start + offsetBefore,
      end + offset,
      end + offsetAfter,
    ]) {
      const edge = midnight + (((wallClock % DAY_MS) + DAY_MS) % DAY_MS);
      if (edge > named && edge < next) next = edge;
    }
  }
  return next;
}

const everyDays = new WeakMap<WallClockPattern, WallClockPattern>();

/** The pattern's times of day, on every date. */
function everyDay(pattern: WallClockPattern): WallClockPattern {
  let found = everyDays.get(pattern);
  if (found === undefined) {
    const days = new Int32Array(pattern.days.length).fill(0x7fffffff);
    found = { ...pattern, days, months: 0xfff };
    everyDays.set(pattern, found);
  }
  return found;
}
