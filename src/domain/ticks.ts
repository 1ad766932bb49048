import type { CompiledTiming } from './fire-times.js';
import { LAST_INSTANT } from './instant.js';
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

/** How a schedule was served until now. Times in ms. */
export interface Served {
  /** Since when its bucket is served without a break. */
  servedFrom: number;
  /** How late a tick may be and still run as if on time. */
  grace: number;
  /** It was resumed just now: the ticks up to now came during its pause. */
  resumed: boolean;
}

/** The fate of a span of ticks, both ends included: a row of the ledger. */
export interface SkippedSpan {
  from: number;
  to: number;
  what: 'skipped' | 'refused';
  reason: 'missed' | 'paused' | 'too many' | 'too old';
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
    return tick === undefined ? undefined : this.#planned(tick);
  }

  /** The ms that the first tick of a schedule comes after, when it is created at `createdAt`. */
  before(createdAt: number): number {
    return this.policies.startsAtOnce ? createdAt - 1 : createdAt;
  }

  /** Scheduled time plus jitter, which stays below the following tick. */
  fireTimeOf(tick: number): number {
    const jitter = this.policies.jitter ?? 0;
    if (jitter === 0) return tick;
    const gap = (this.timing.next(tick) ?? Number.POSITIVE_INFINITY) - tick;
    return Math.min(LAST_INSTANT, tick + jitterFor(this.identity, tick, jitter, gap));
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
    return this.after(tail || this.before(state.createdAt));
  }

  /**
   * Judges the ticks that came up to `now`, without enumerating them. Under `skip` and `latest` only the newest may
   * run, each older one was overtaken by its next; under `all` those whose grace ended before the schedule was served
   * are missed, and run in order. What came during a pause is no outage: at most the newest of it runs.
   */
  resolve(state: TickState, now: number, served: Served): Resolution {
    const pending = state.cur > 0 ? this.#planned(state.cur) : this.successor(state);
    if (pending === undefined || !this.withinLimit(state.count, 0))
      return this.#from(state, state.last, undefined);
    if (state.cur === 0 || pending.fireAt > now) return this.#from(state, state.last, pending);
    if (this.policies.missed === 'all' && !served.resumed)
      return this.#allMissed(state, pending, now, served);
    const newest = this.newestDue(now, pending);
    const overtaken = this.timing.latest(pending.tick - 1, newest.tick - 1);
    const reason = served.resumed ? 'paused' : 'missed';
    const older = overtaken === undefined ? [] : [skippedSpan(pending.tick, overtaken, reason)];
    if (!served.resumed && newest.fireAt + served.grace > served.servedFrom) {
      return this.#from(state, overtaken ?? state.last, newest, older);
    }
    if (this.policies.missed !== 'skip' && now - newest.tick <= this.#window) {
      return this.#from(state, newest.tick, this.after(newest.tick), older, [newest.tick]);
    }
    return this.#from(state, newest.tick, this.after(newest.tick), [
      skippedSpan(pending.tick, newest.tick, reason),
    ]);
  }

  #allMissed(state: TickState, pending: PlannedTick, now: number, served: Served): Resolution {
    const to = this.timing.latest(pending.tick - 1, served.servedFrom - served.grace) ?? pending.tick;
    const cur = this.after(to);
    const skipped: SkippedSpan[] = [];
    const old = this.timing.latest(pending.tick - 1, Math.min(now - this.#window - 1, to));
    if (old !== undefined) skipped.push(skippedSpan(pending.tick, old, 'too old'));
    const from = old === undefined ? pending.tick : this.timing.next(old);
    if (from === undefined || from > to) return this.#from(state, to, cur, skipped);
    const most = this.policies.maxCatchup ?? DEFAULT_MAX_CATCHUP;
    const ticks = this.#upTo(from, to, most + 1);
    if (ticks.length <= most) return this.#from(state, to, cur, skipped, ticks);
    switch (this.policies.onTooMany) {
      case 'newest': {
        const newest = this.#newestOf(from, to, most);
        const before = this.timing.latest(from - 1, (newest[0] as number) - 1) as number;
        return this.#from(state, to, cur, [...skipped, skippedSpan(from, before, 'too many')], newest);
      }
      case 'suspend': {
        const suspends = `more than ${most} ticks were missed`;
        return { ...this.#from(state, state.last, undefined, skipped), suspends };
      }
      default:
        return this.#from(state, to, cur, [...skipped, { from, to, what: 'refused', reason: 'too many' }]);
    }
  }

  /** Ticks from `from`, one itself, to `to`; `most` of them at the most. */
  #upTo(from: number, to: number, most: number): number[] {
    const ticks: number[] = [];
    let tick: number | undefined = from;
    while (tick !== undefined && tick <= to && ticks.length < most) {
      ticks.push(tick);
      tick = this.timing.next(tick);
    }
    return ticks;
  }

  /** The newest `count` ticks of a span that has more of them; looks back in doubling steps. */
  #newestOf(from: number, to: number, count: number): number[] {
    for (let span = 1000; ; span *= 2) {
      const start = Math.max(from - 1, to - span);
      const ticks = this.#upTo(this.timing.next(start) as number, to, Number.POSITIVE_INFINITY);
      if (ticks.length >= count || start < from) return ticks.slice(-count);
    }
  }

  get #window(): number {
    return this.policies.catchupWindow ?? DEFAULT_CATCHUP_WINDOW;
  }

  /**
   * The newest tick whose fire time has come at `now`; `known` is one such tick. It costs some fifty questions,
   * however many ticks lie between.
   */
  newestDue(now: number, known: PlannedTick): PlannedTick {
    const newest = this.#newest(now, known);
    // Only the very last one may still wait for its jitter: those before it fire before its scheduled time.
    return newest.fireAt <= now ? newest : this.#newest(newest.tick - 1, known);
  }

  #newest(until: number, known: PlannedTick): PlannedTick {
    const tick = this.timing.latest(known.tick, until);
    return tick === undefined ? known : this.#planned(tick);
  }

  #planned(tick: number): PlannedTick {
    return { tick, fireAt: this.fireTimeOf(tick) };
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

function skippedSpan(from: number, to: number, reason: SkippedSpan['reason']): SkippedSpan {
  return { from, to, what: 'skipped', reason };
}
