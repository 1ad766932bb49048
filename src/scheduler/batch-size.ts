/** How many records a pop takes: grows while calls are short and full, shrinks when one is long (I8). */
export class BatchSize {
  #limit = 200;
  static readonly MIN = 20;
  static readonly MAX = 400;
  /** ms of a whole call, on the way included. */
  static readonly LONG = 8;
  static readonly SHORT = 4;

  get limit(): number {
    return Math.round(this.#limit);
  }

  /** A pop took `ms` and moved `popped` records. */
  took(ms: number, popped: number): void {
    if (ms > BatchSize.LONG) this.#limit = Math.max(BatchSize.MIN, this.#limit * 0.8);
    else if (ms < BatchSize.SHORT && popped >= this.limit)
      this.#limit = Math.min(BatchSize.MAX, this.#limit * 1.1);
  }
}
