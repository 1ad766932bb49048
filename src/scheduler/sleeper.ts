/**
 * The loop's sleep: until a time of Redis' clock, or until somebody wakes it. Redis' time between replies is the last
 * reply's TIME plus the monotonic time since.
 */
export class Sleeper {
  #redisAt = 0;
  #monotonicAt = 0;
  #nextAt = 0;
  #hintedWhileInFlight = Number.POSITIVE_INFINITY;
  /** Somebody wanted a turn since the last sleep; what replies say does not undo that. */
  #woken = false;
  #wake: (() => void) | undefined;

  constructor(
    /** Monotonic ms. */
    private readonly monotonic: () => number,
    /** The longest sleep, ms. */
    private readonly poll: number,
  ) {}

  /** Redis' clock now, as far as the last reply tells; 0 before the first. */
  redisNow(): number {
    return this.#redisAt === 0 ? 0 : this.#redisAt + (this.monotonic() - this.#monotonicAt);
  }

  /** A call that will say when the next head is due is being sent. */
  sending(): void {
    this.#hintedWhileInFlight = Number.POSITIVE_INFINITY;
  }

  /**
   * Its reply: `now` of Redis, and the next head (0 for none). A hint that came while the call was in flight stands:
   * the reply may be older than it.
   */
  replied(now: number, nextHead: number): void {
    this.#redisAt = now;
    this.#monotonicAt = this.monotonic();
    const head = nextHead === 0 ? Number.POSITIVE_INFINITY : nextHead;
    this.#nextAt = Math.min(head, this.#hintedWhileInFlight);
  }

  /** Somebody stored a job that is due at `at`, ms of Redis' clock. */
  hint(at: number): void {
    this.#hintedWhileInFlight = Math.min(this.#hintedWhileInFlight, at);
    if (at >= this.#nextAt) return;
    this.#nextAt = at;
    this.#wake?.();
  }

  /** Ends the sleep at once, or else the next one. */
  wake(): void {
    this.#woken = true;
    this.#wake?.();
  }

  /** Sleeps until the next head, at most the poll; a hint re-arms it. */
  async sleep(signal: AbortSignal): Promise<void> {
    const end = this.monotonic() + this.poll;
    while (!signal.aborted && !this.#woken) {
      const left = Math.min(end - this.monotonic(), Math.max(0, this.#nextAt - this.redisNow()));
      if (left <= 0) break;
      await this.#pause(left, signal);
    }
    this.#woken = false;
  }

  #pause(ms: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const done = () => {
        stop();
        signal.removeEventListener('abort', done);
        this.#wake = undefined;
        resolve();
      };
      const stop = after(ms, done);
      this.#wake = done;
      signal.addEventListener('abort', done, { once: true });
    });
  }
}

/** Calls back `ms` from now, or up to 1 ms before: Node's timers are of whole ms, the rest is a few turns of the event loop. */
function after(ms: number, then: () => void): () => void {
  if (ms >= 1) {
    const timer = setTimeout(then, Math.floor(ms));
    return () => clearTimeout(timer);
  }
  const turn = setImmediate(then);
  return () => clearImmediate(turn);
}
