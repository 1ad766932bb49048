import type { CompiledTiming } from './fire-times.js';
import { jitterFor } from './jitter.js';
import { DEFAULT_CATCHUP_WINDOW, DEFAULT_MAX_CATCHUP, type StoredPolicies } from './schedule.js';

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

/** A row for the ledger: the fate of a span of ticks, both ends included. */
export interface SkippedSpan {
  from: number;
  to: number;
  what: 'skipped' | 'refused';
  reason: 'missed' | 'paused' | 'superseded' | 'too many' | 'too old';
}

/** What is to become of a schedule whose pending tick nobody will fire as it stands. */
export interface Resolution {
  newLast: number;
  cur: PlannedTick | undefined;
  next: PlannedTick | undefined;
  /** Missed ticks that run after all, in order. */
  catchUp: number[];
  skipped: SkippedSpan[];
  /** Why the schedule is suspended, by its own choice. */
  suspends: string | undefined;
}

/** How a schedule's bucket was served. */
export interface Served {
  /** Since when without a break, ms. */
  servedFrom: number;
  /** ms */
  grace: number;
  /** It was paused until now: ticks up to here came during the pause. */
  resumed: boolean;
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
   * A tick is missed when its grace ended before `servedFrom`, or when it came during a pause; under `skip` and
   * `latest` also once its next one is due.
   */
  resolve(state: TickState, now: number, served: Served): Resolution {
    if (!this.withinLimit(state.count, 0)) return this.#from(state, state.last, undefined);
    if (state.cur === 0) return this.#from(state, state.last, this.successor(state));
    const pending = { tick: state.cur, fireAt: this.fireTimeOf(state.cur) };
    if (pending.fireAt > now) return this.#from(state, state.last, pending);
    const newest = this.newestAtOrBefore(now, state.cur);
    if (served.resumed) return this.#afterPause(state, newest, now);
    return this.policies.missed === 'all'
      ? this.#allMissed(state, now, served)
      : this.#newestMissed(state, newest, now, served);
  }

  #afterPause(state: TickState, newest: number, now: number): Resolution {
    const span = { from: state.cur, to: newest, what: 'skipped', reason: 'paused' } as const;
    if (this.policies.missed === 'skip' || !this.#inWindow(newest, now)) {
      return this.#from(state, newest, this.after(newest), [span]);
    }
    const before = newest === state.cur ? [] : [{ ...span, to: newest - 1 }];
    return this.#from(state, newest, this.after(newest), before, [newest]);
  }

  /** `skip` and `latest`: what is overtaken does not run; the newest may still be on time. */
  #newestMissed(state: TickState, newest: number, now: number, served: Served): Resolution {
    const cur = { tick: newest, fireAt: this.fireTimeOf(newest) };
    const before: SkippedSpan[] =
      newest === state.cur ? [] : [{ from: state.cur, to: newest - 1, what: 'skipped', reason: 'missed' }];
    if (cur.fireAt + served.grace > served.servedFrom) {
      return this.#from(state, before.length === 0 ? state.last : newest - 1, cur, before);
    }
    if (this.policies.missed === 'latest' && this.#inWindow(newest, now)) {
      return this.#from(state, newest, this.after(newest), before, [newest]);
    }
    const span: SkippedSpan = { from: state.cur, to: newest, what: 'skipped', reason: 'missed' };
    return this.#from(state, newest, this.after(newest), [span]);
  }

  /** `all`: each missed tick of the window runs, if they are not too many. */
  #allMissed(state: TickState, now: number, served: Served): Resolution {
    const missedTo = this.newestAtOrBefore(served.servedFrom - served.grace, state.cur);
    const skipped: SkippedSpan[] = [];
    let from: number | undefined = state.cur;
    const windowStart = now - (this.policies.catchupWindow ?? DEFAULT_CATCHUP_WINDOW);
    if (from < windowStart) {
      const old = this.newestAtOrBefore(Math.min(windowStart - 1, missedTo), state.cur);
      skipped.push({ from, to: old, what: 'skipped', reason: 'too old' });
      from = this.timing.next(old);
    }
    const cur = this.after(missedTo);
    if (from === undefined || from > missedTo) return this.#from(state, missedTo, cur, skipped);
    const most = this.policies.maxCatchup ?? DEFAULT_MAX_CATCHUP;
    const ticks = this.#upTo(from, missedTo, most + 1);
    if (ticks.length <= most) return this.#from(state, missedTo, cur, skipped, ticks);
    switch (this.policies.onTooMany ?? 'refuse') {
      case 'newest': {
        const newest = this.#newestOf(from, missedTo, most);
        skipped.push({ from, to: (newest[0] as number) - 1, what: 'skipped', reason: 'too many' });
        return this.#from(state, missedTo, cur, skipped, newest);
      }
      case 'suspend':
        return {
          ...this.#from(state, state.last, undefined, skipped),
          suspends: `more than ${most} ticks were missed`,
        };
      default:
        skipped.push({ from, to: missedTo, what: 'refused', reason: 'too many' });
        return this.#from(state, missedTo, cur, skipped);
    }
  }

  /** Ticks from `from` (one itself) to `to`, `most` at the most. */
  #upTo(from: number, to: number, most: number): number[] {
    const ticks: number[] = [];
    for (let tick: number | undefined = from; tick !== undefined && tick <= to && ticks.length < most; ) {
      ticks.push(tick);
      tick = this.timing.next(tick);
    }
    return ticks;
  }

  /** The newest `count` ticks of a span that has more of them. */
  #newestOf(from: number, to: number, count: number): number[] {
    for (let span = 1000; ; span *= 2) {
      const start = Math.max(from - 1, to - span);
      const first = this.timing.next(start) as number;
      const ticks = this.#upTo(first, to, Number.POSITIVE_INFINITY);
      if (ticks.length >= count || start < from) return ticks.slice(-count);
    }
  }

  #inWindow(tick: number, now: number): boolean {
    return now - tick <= (this.policies.catchupWindow ?? DEFAULT_CATCHUP_WINDOW);
  }

  /** The newest tick at or before `now`; `known` is one such tick. Costs the same after a minute and after a year. */
  newestAtOrBefore(now: number, known: number): number {
    return this.timing.latest(known - 1, now) ?? known;
  }

  #from(
    state: TickState,
    newLast: number,
    cur: PlannedTick | undefined,
    skipped: SkippedSpan[] = [],
    catchUp: number[] = [],
  ): Resolution {
    const next = cur !== undefined && this.withinLimit(state.count, 1) ? this.after(cur.tick) : undefined;
    return { newLast, cur, next, catchUp, skipped, suspends: undefined };
  }
}
