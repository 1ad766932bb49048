/**
 * How many records a pop takes: grows while calls are short and full, shrinks when one is long (I8). A call's length is
 * what it took beyond the quickest one over this line: the way to Redis and back holds nobody up.
 */
export class BatchSize {
  #limit = 200;
  #quickest = Number.POSITIVE_INFINITY;
  static readonly MIN = 20;
  static readonly MAX = 400;
  /** ms, without the way there and back. */
  static readonly LONG = 8;
  static readonly SHORT = 4;

  get limit(): number {
    return Math.round(this.#limit);
  }

  /** A pop took `ms`, on the way included, and moved `popped` records. */
  took(ms: number, popped: number): void {
    this.#quickest = Math.min(this.#quickest, ms);
    const own = ms - this.#quickest;
    if (own > BatchSize.LONG) this.#limit = Math.max(BatchSize.MIN, this.#limit * 0.8);
    else if (own < BatchSize.SHORT && popped >= this.limit)
      this.#limit = Math.min(BatchSize.MAX, this.#limit * 1.1);
  }

  /** A call failed: the next ones may go over another line. */
  failed(): void {
    this.#quickest = Number.POSITIVE_INFINITY;
  }
}
