import type { CompiledTiming } from './fire-times.js';
import { LAST_INSTANT } from './instant.js';
import { jitterFor } from './jitter.js';
import { DEFAULT_CATCHUP_WINDOW, DEFAULT_MAX_CATCHUP, type StoredPolicies } from './schedule.js';

/** A schedule's place in time, as its record holds it. Times in ms, 0 for none. */
export interface TickState {
  last: number;
  cur: number;
  next: number;
  /** Ticks that ran or are sure to. */
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
  /** How many more runs its record has room for. */
  room: number;
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
   * run, each older one was overtaken by its next; under `all` each of them runs, in order. What came during a pause is
   * no outage: at most the newest of it runs.
   */
  resolve(state: TickState, now: number, served: Served): Resolution {
    const pending = state.cur > 0 ? this.#planned(state.cur) : this.successor(state);
    if (pending === undefined) return this.#go(state, { newLast: state.last, cur: undefined });
    const known = state.cur > 0 || served.resumed;
    if (!known || pending.fireAt > now) return this.#go(state, { newLast: state.last, cur: pending });
    const newest = this.newestDue(now, pending);
    if (this.policies.missed === 'all' && !served.resumed) {
      return this.#catchUpAll(state, { from: pending.tick, to: newest.tick }, now, served);
    }
    const overtaken = this.timing.latest(pending.tick - 1, newest.tick - 1);
    const reason = served.resumed ? 'paused' : 'missed';
    const skipped =
      overtaken === undefined ? [] : [spanOf(pending.tick, overtaken, { what: 'skipped', reason })];
    if (!served.resumed && newest.fireAt + served.grace >= served.servedFrom) {
      return this.#go(state, { newLast: overtaken ?? state.last, cur: newest, skipped });
    }
    const cur = this.after(newest.tick);
    if (this.policies.missed !== 'skip' && now - newest.tick <= this.#window && served.room > 0) {
      return this.#go(state, { newLast: newest.tick, cur, skipped, catchUp: [newest.tick] });
    }
    const all = spanOf(pending.tick, newest.tick, { what: 'skipped', reason });
    return this.#go(state, { newLast: newest.tick, cur, skipped: [all] });
  }

  /** `all`: each tick of a span that is neither too old nor one too many. */
  #catchUpAll(state: TickState, { from, to }: Span, now: number, { room }: Served): Resolution {
    const cur = this.after(to);
    const skipped: SkippedSpan[] = [];
    const old = this.timing.latest(from - 1, Math.min(now - this.#window - 1, to));
    if (old !== undefined) skipped.push(spanOf(from, old, { what: 'skipped', reason: 'too old' }));
    const first = old === undefined ? from : this.timing.next(old);
    if (first === undefined || first > to) return this.#go(state, { newLast: to, cur, skipped });
    const most = Math.min(this.policies.maxCatchup ?? DEFAULT_MAX_CATCHUP, room);
    const left = (this.timing.limit ?? Number.POSITIVE_INFINITY) - state.count;
    const ticks = this.#upTo(first, to, Math.min(most + 1, left));
    if (ticks.length <= most) {
      // At its limit the schedule ends with the last of them.
      const newLast = ticks.length < left ? to : (ticks.at(-1) as number);
      return this.#go(state, { newLast, cur, skipped, catchUp: ticks });
    }
    if (this.policies.onTooMany === 'newest' && most > 0) {
      const newest = this.#newestOf(first, to, most);
      const before = this.timing.latest(first - 1, (newest[0] as number) - 1) as number;
      skipped.push(spanOf(first, before, { what: 'skipped', reason: 'too many' }));
      return this.#go(state, { newLast: to, cur, skipped, catchUp: newest });
    }
    skipped.push(spanOf(first, to, { what: 'refused', reason: 'too many' }));
    const suspends =
      this.policies.onTooMany === 'suspend' ? `more than ${most} ticks were missed` : undefined;
    return this.#go(state, { newLast: to, cur, skipped, suspends });
  }

  /** Ticks from `from`, one itself, to `to`; `most` of them at the most. */
  #upTo(from: number | undefined, to: number, most: number): number[] {
    const ticks: number[] = [];
    let tick: number | undefined = from;
    while (tick !== undefined && tick <= to && ticks.length < most) {
      ticks.push(tick);
      tick = this.timing.next(tick);
    }
    return ticks;
  }

  /**
   * The newest `count` ticks of a span that has more of them. It looks back in doubling steps, and halves a step that
   * holds too many; no look names more than twice as many ticks as are wanted.
   */
  #newestOf(from: number, to: number, count: number): number[] {
    const after = (start: number) => this.#upTo(this.timing.next(start), to, 2 * count);
    let few = to;
    let many = from - 1;
    for (let span = 1000; to - span > many; span *= 2) {
      const ticks = after(to - span);
      if (ticks.length >= count) many = to - span;
      else few = to - span;
    }
    for (;;) {
      const ticks = after(many);
      if (ticks.length < 2 * count) return ticks.slice(-count);
      const middle = Math.floor((few + many) / 2);
      if (after(middle).length >= count) many = middle;
      else few = middle;
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

  /** How it goes on; neither tick is one beyond the limit. */
  #go(state: TickState, found: Partial<Resolution> & Pick<Resolution, 'newLast' | 'cur'>): Resolution {
    const { newLast, skipped = [], catchUp = [], suspends } = found;
    const count = state.count + catchUp.length;
    const cur = this.withinLimit(count, 0) ? found.cur : undefined;
    const next = cur !== undefined && this.withinLimit(count, 1) ? this.after(cur.tick) : undefined;
    return { newLast, cur, next, catchUp, skipped, suspends };
  }
}

interface Span {
  from: number;
  to: number;
}

/** One row of a ledger stands for a whole span. Pure; times in ms. */
export function spanReason(from: number, to: number, reason: string): string {
  if (from === to) return reason;
  return `${reason}: every tick from ${new Date(from).toISOString()} to ${new Date(to).toISOString()}`;
}

function spanOf(from: number, to: number, fate: Pick<SkippedSpan, 'what' | 'reason'>): SkippedSpan {
  return { from, to, ...fate };
}
