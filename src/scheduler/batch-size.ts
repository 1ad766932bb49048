/** Pops with fewer records say little about what one costs. */
const TELLING = 10;
/** How many of them are remembered. */
const REMEMBERED = 8;

/**
 * How many records a pop takes, so that one call stays under about 5 ms of Redis' time (I8). A record costs what it
 * cost in the quickest of the last pops: a machine that is busy with other work makes a script look long now and
 * then, and smaller batches would only make it busier. Slow records make every one of them long.
 */
export class BatchSize {
  #limit = 200;
  readonly #recent: number[] = [];
  static readonly MIN = 20;
  static readonly MAX = 400;
  /** ms in Redis. */
  static readonly TARGET = 5;

  get limit(): number {
    return this.#limit;
  }

  /** A pop took `ms` of Redis' time and moved `popped` records. */
  took(ms: number, popped: number): void {
    if (popped < TELLING) return;
    this.#recent.push(ms / popped);
    if (this.#recent.length > REMEMBERED) this.#recent.shift();
    const wanted = Math.round(BatchSize.TARGET / Math.min(...this.#recent));
    this.#limit = Math.min(BatchSize.MAX, Math.max(BatchSize.MIN, wanted));
  }
}
