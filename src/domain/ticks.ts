import type { CompiledTiming } from './fire-times.js';
import { LAST_INSTANT } from './instant.js';
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

/** How a schedule was served until now. Times in ms. */
export interface Served {
  /** Since when its bucket is served without a break. */
  servedFrom: number;
  /** How late a tick may be and still run as if on time. */
  grace: number;
  /** It was resumed just now: the ticks up to now came during its pause. */
  resumed: boolean;
}

/** What is to become of a schedule whose pending tick nobody will fire as it stands. */
export interface Resolution {
  newLast: number;
  cur: PlannedTick | undefined;
  next: PlannedTick | undefined;
  /** `cur` was judged: the pop runs it, however late. */
  catchUp: boolean;
  /** The first and the last of the ticks that do not run. */
  skipped: { from: number; to: number } | undefined;
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
   * Judges the ticks that came up to `now`, without enumerating them. Only the newest may run: it is missed when its
   * grace ended before the schedule was served, or when it came during a pause, and then the policy decides. Every
   * older one was overtaken by its next, and so is missed.
   */
  resolve(state: TickState, now: number, served: Served): Resolution {
    const pending = state.cur > 0 ? this.#planned(state.cur) : this.successor(state);
    if (pending === undefined || !this.withinLimit(state.count, 0)) {
      return { newLast: state.last, cur: undefined, next: undefined, catchUp: false, skipped: undefined };
    }
    if (pending.fireAt > now) {
      return { newLast: state.last, ...this.#from(state, pending), catchUp: false, skipped: undefined };
    }
    const newest = this.newestDue(now, pending);
    const missed = served.resumed || newest.fireAt + served.grace < served.servedFrom;
    if (!missed || this.#catchesUp(newest.tick, now)) {
      const overtaken = this.timing.latest(pending.tick - 1, newest.tick - 1);
      return {
        newLast: overtaken ?? state.last,
        ...this.#from(state, newest),
        catchUp: true,
        skipped: overtaken === undefined ? undefined : { from: pending.tick, to: overtaken },
      };
    }
    return {
      newLast: newest.tick,
      ...this.#from(state, this.after(newest.tick)),
      catchUp: false,
      skipped: { from: pending.tick, to: newest.tick },
    };
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

  #catchesUp(tick: number, now: number): boolean {
    const window = this.policies.catchupWindow ?? DEFAULT_CATCHUP_WINDOW;
    return this.policies.missed === 'latest' && now - tick <= window;
  }

  #from(state: TickState, cur: PlannedTick | undefined): Pick<Resolution, 'cur' | 'next'> {
    const follows = cur !== undefined && this.withinLimit(state.count, 1);
    return { cur, next: follows ? this.after(cur.tick) : undefined };
  }
}
