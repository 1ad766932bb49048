/**
 * At maxmemory Redis refuses the plain pop. Dispatch frees timers but grows queues, so it may go on for a bounded number
 * of bytes above the limit; then it holds, and one plain probe each round finds out when memory is back.
 */
export class MemoryHeadroom {
  #spent = 0;
  #inUse = false;

  constructor(private readonly bytes: number) {}

  /** Whether the next pop is the one that may grow memory. */
  get inUse(): boolean {
    return this.#inUse;
  }

  /** The pop was refused for memory. True when it may be tried again at once, with headroom. */
  refused(): boolean {
    this.#inUse = this.#spent < this.bytes;
    return this.#inUse;
  }

  /** A pop went through with so many bytes of records. */
  used(bytes: number): void {
    if (!this.#inUse) {
      this.#spent = 0;
      return;
    }
    this.#spent += bytes;
    this.#inUse = false;
  }
}
