/** A jump of Redis' clock that nobody else saw: ms forward against the monotonic clock. */
const JUMP = 5000;
/** How long dispatch is held after one, ms. */
const HOLD = 60_000;

/**
 * Judges Redis' TIME (I6). A jump forward that neither the monotonic clock nor this machine's wall clock made (a
 * suspended machine wakes: its wall clock jumps too) would fire everything of that span at once; it holds dispatch
 * until the clock is back, and for a minute at most.
 */
export class ClockWatch {
  #redis = 0;
  #monotonic = 0;
  #wall = 0;
  #heldSince: number | undefined;

  constructor(
    private readonly monotonic: () => number,
    private readonly wall: () => number,
  ) {}

  /** The latest TIME to believe, in ms; 0 when nothing is known yet, or when a jump has been held for long enough. */
  latest(): number {
    if (this.#redis === 0 || this.#heldFor() >= HOLD) return 0;
    const elapsed = Math.max(this.monotonic() - this.#monotonic, this.wall() - this.#wall);
    return this.#redis + elapsed + JUMP;
  }

  /** TIME lay beyond {@link latest}. True the first time of a jump. */
  jumped(): boolean {
    const first = this.#heldSince === undefined;
    if (first) this.#heldSince = this.monotonic();
    return first;
  }

  /** A TIME that was believed. */
  saw(redisNow: number): void {
    this.#redis = redisNow;
    this.#monotonic = this.monotonic();
    this.#wall = this.wall();
    this.#heldSince = undefined;
  }

  get held(): boolean {
    return this.#heldSince !== undefined && this.#heldFor() < HOLD;
  }

  #heldFor(): number {
    return this.#heldSince === undefined ? 0 : this.monotonic() - this.#heldSince;
  }
}
