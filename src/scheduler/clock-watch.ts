/** A jump of Redis' clock that nobody else saw: ms forward against the monotonic clock. */
const JUMP = 5000;
/** How long dispatch is held after one, ms. */
const HOLD = 60_000;

/** An instant by this machine's clocks, ms. */
export interface LocalInstant {
  monotonic: number;
  wall: number;
}

/**
 * Judges Redis' TIME (I6). A jump forward that neither the monotonic clock nor this machine's wall clock made (a
 * suspended machine wakes: its wall clock jumps too) would fire everything of that span at once; it holds dispatch
 * until the clock is back, and for a minute at most.
 */
export class ClockWatch {
  #redis = 0;
  #at: LocalInstant = { monotonic: 0, wall: 0 };
  #heldSince: number | undefined;

  constructor(
    private readonly monotonic: () => number,
    private readonly wall: () => number,
  ) {}

  /** Now, by this machine's clocks; to be taken before Redis is asked, since it may be suspended before it hears. */
  instant(): LocalInstant {
    return { monotonic: this.monotonic(), wall: this.wall() };
  }

  /** The latest TIME to believe, in ms; 0 when nothing is known yet, or when a jump has been held for long enough. */
  latest(): number {
    if (this.#redis === 0 || this.#heldFor() >= HOLD) return 0;
    const elapsed = Math.max(this.monotonic() - this.#at.monotonic, this.wall() - this.#at.wall);
    return this.#redis + elapsed + JUMP;
  }

  /** TIME lay beyond {@link latest}. */
  jumped(): void {
    this.#heldSince ??= this.monotonic();
  }

  /** A TIME that was not judged before, a stand-by's heartbeat say; `askedAt`: when Redis was asked. */
  heard(redisNow: number, askedAt: LocalInstant): void {
    const latest = this.latest();
    if (latest === 0 || redisNow <= latest) this.saw(redisNow, askedAt);
    else this.jumped();
  }

  /** A TIME that was believed. */
  saw(redisNow: number, askedAt: LocalInstant): void {
    this.#redis = redisNow;
    this.#at = askedAt;
    this.#heldSince = undefined;
  }

  #heldFor(): number {
    return this.#heldSince === undefined ? 0 : this.monotonic() - this.#heldSince;
  }
}
