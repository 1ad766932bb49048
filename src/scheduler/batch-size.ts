/**
 * How many records a pop takes: grows while calls are short and full, shrinks when one is long (I8). A call's length is
 * what the script itself took: neither the way to Redis nor the queue before it holds anybody up.
 */
export class BatchSize {
  #limit = 200;
  static readonly MIN = 20;
  static readonly MAX = 400;
  /** ms in Redis. */
  static readonly LONG = 6;
  static readonly SHORT = 4;

  get limit(): number {
    return Math.round(this.#limit);
  }

  /** A pop took `ms` of Redis' time and moved `popped` records. */
  took(ms: number, popped: number): void {
    if (ms > BatchSize.LONG) this.#limit = Math.max(BatchSize.MIN, this.#limit * 0.8);
    else if (ms < BatchSize.SHORT && popped >= this.limit)
      this.#limit = Math.min(BatchSize.MAX, this.#limit * 1.1);
  }
}
