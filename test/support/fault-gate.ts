/**
 * One direction of a proxied connection: actions run in the order they were put, each after the delay in force when
 * it was put and only while the gate is open.
 */
export class FaultGate {
  #queue: { act: () => void; due: number }[] = [];
  #timer: NodeJS.Timeout | undefined;
  #open = true;

  /** Runs `act` now if nothing stands before it, else in its turn. */
  put(act: () => void, delay: number): void {
    if (this.#open && delay === 0 && this.#queue.length === 0) {
      act();
      return;
    }
    this.#queue.push({ act, due: performance.now() + delay });
    this.#drain();
  }

  close(): void {
    this.#open = false;
  }

  open(): void {
    this.#open = true;
    this.#drain();
  }

  /** Forgets what waits. */
  clear(): void {
    this.#queue = [];
    clearTimeout(this.#timer);
  }

  #drain(): void {
    clearTimeout(this.#timer);
    while (this.#open && this.#queue[0] !== undefined) {
      const wait = this.#queue[0].due - performance.now();
      if (wait > 0) {
        this.#timer = setTimeout(() => this.#drain(), Math.ceil(wait));
        return;
      }
      this.#queue.shift()?.act();
    }
  }
}
