import type { CompiledTiming } from './fire-times.js';
import { jitterFor } from './jitter.js';
import { DEFAULT_CATCHUP_WINDOW, type StoredPolicies } from './schedule.js';

/** A schedule's place in time, as its record holds it. Times in ms, 0 for none. */
export interface TickState {
  last: number;
  cur: number;
  next: number;
  /** Ticks that fired so far. */
  count: number;
  /** When the schedule was created: no tick at or before it, but for one that starts at once. */
  createdAt: number;
}

export interface PlannedTick {
  tick: number;
  fireAt: number;
}

/** What is to become of a schedule whose pending tick nobody will fire as it stands. */
export interface Resolution {
  newLast: number;
  cur: PlannedTick | undefined;
  next: PlannedTick | undefined;
  /** `cur` was judged: the pop runs it, however late. */
  catchUp: boolean;
  /** The span of ticks that do not run, both ends included. */
  skipped: { from: number; to: number } | undefined;
}

function ended(last: number): Resolution {
  return { newLast: last, cur: undefined, next: undefined, catchUp: false, skipped: undefined };
}

/** Ticks of one schedule: pure arithmetic over its definition; each comes from the one before it (I9). */
export class Ticks {
  constructor(
    readonly timing: CompiledTiming,
    private readonly policies: StoredPolicies,
    private readonly identity: string,
  ) {}

  /** The tick after `after`, with its fire time; undefined when there is none. */
  after(after: number): PlannedTick | undefined {
    const tick = this.timing.next(after);
    return tick === undefined ? undefined : { tick, fireAt: this.fireTimeOf(tick) };
  }

  /** The first tick of a schedule that is created at `createdAt`. */
  first(createdAt: number): PlannedTick | undefined {
    return this.after(this.policies.startsAtOnce ? createdAt - 1 : createdAt);
  }

  /** Scheduled time plus jitter, which stays below the following tick. */
  fireTimeOf(tick: number): number {
    const jitter = this.policies.jitter ?? 0;
    if (jitter === 0) return tick;
    const following = this.timing.next(tick);
    return (
      tick +
      jitterFor(
        this.identity,
        tick,
        jitter,
        following === undefined ? Number.POSITIVE_INFINITY : following - tick,
      )
    );
  }

  /** Whether a tick may still follow `known` pending ones. */
  withinLimit(count: number, known: number): boolean {
    return this.timing.limit === undefined || count + known < this.timing.limit;
  }

  /** The successor of the last known tick, or undefined at the schedule's end. */
  successor(state: TickState): PlannedTick | undefined {
    const known = (state.cur > 0 ? 1 : 0) + (state.next > 0 ? 1 : 0);
    if (!this.withinLimit(state.count, known)) return undefined;
    const tail = state.next || state.cur || state.last;
    return tail > 0 ? this.after(tail) : this.first(state.createdAt);
  }

  /**
   * Judges the ticks up to `now` of a schedule whose pending tick was overtaken or missed, without enumerating them.
   * The newest one is missed when its grace ended before `servedFrom`, or when it came during a pause.
   */
  resolve(
    state: TickState,
    now: number,
    served: { servedFrom: number; grace: number; resumed: boolean },
  ): Resolution {
    if (!this.withinLimit(state.count, 0)) return ended(state.last);
    if (state.cur === 0) {
      // Not judged yet: the pop does that, once the tick is known.
      const pending = this.successor(state);
      return pending === undefined
        ? ended(state.last)
        : this.#from(state, state.last, pending, false, undefined);
    }
    const pending = { tick: state.cur, fireAt: this.fireTimeOf(state.cur) };
    if (pending.fireAt > now) return this.#from(state, state.last, pending, false, undefined);
    const newest = this.newestAtOrBefore(now, state.cur);
    const cur = { tick: newest, fireAt: this.fireTimeOf(newest) };
    const missed = served.resumed || cur.fireAt + served.grace < served.servedFrom;
    const window = this.policies.catchupWindow ?? DEFAULT_CATCHUP_WINDOW;
    const catchUp = missed && this.policies.missed === 'latest' && now - newest <= window;
    if (missed && !catchUp) {
      return this.#from(state, newest, this.after(newest), false, { from: pending.tick, to: newest });
    }
    if (newest === pending.tick) return this.#from(state, state.last, cur, true, undefined);
    return this.#from(state, newest - 1, cur, true, { from: pending.tick, to: newest - 1 });
  }

  /**
   * The newest tick at or before `now`; `known` is one such tick. Looks back in doubling steps, so that years of an
   * every-second schedule cost as much as a minute of it.
   */
  newestAtOrBefore(now: number, known: number): number {
    let newest = known;
    for (let span = 1000; ; span *= 2) {
      const from = Math.max(known, now - span);
      let tick = from === known ? known : this.timing.next(from);
      if (tick === undefined || tick > now) {
        if (from === known) return newest;
        continue;
      }
      while (tick !== undefined && tick <= now) {
        newest = tick;
        tick = this.timing.next(tick);
      }
      return newest;
    }
  }

  #from(
    state: TickState,
    newLast: number,
    cur: PlannedTick | undefined,
    catchUp: boolean,
    skipped: Resolution['skipped'],
  ): Resolution {
    const next = cur !== undefined && this.withinLimit(state.count, 1) ? this.after(cur.tick) : undefined;
    return { newLast, cur, next, catchUp, skipped };
  }
}
