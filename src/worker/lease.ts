/** What is left of a lock on the safe side: time for a call to fail, and for a handler to hear of it. */
const MARGIN_PART = 0.1;
const MARGIN_MIN = 50;
const MARGIN_MAX = 2000;

export interface LeaseOptions {
  /** ms of the lock, as Redis grants it at each renewal. */
  duration: number;
  /** Monotonic, ms. */
  monotonic: () => number;
  /** The lock cannot be trusted any more: another worker may start the run from now on. */
  onLost: () => void;
}

/**
 * How long a run's lock can be trusted, judged here alone: from the sending of the last renewal that Redis confirmed,
 * minus a margin. A worker that is cut off, frozen or blocked so knows by itself when to stop.
 */
export class Lease {
  #validUntil: number;
  #timer: NodeJS.Timeout | undefined;
  #lost = false;

  /** @param sentAt monotonic ms at which the call was sent that last renewed the lock. */
  constructor(
    private readonly options: LeaseOptions,
    sentAt: number,
  ) {
    this.#validUntil = this.#until(sentAt);
    this.#arm();
  }

  /** Read synchronously before each thing that only the holder may do. */
  get isValid(): boolean {
    if (!this.#lost && this.options.monotonic() >= this.#validUntil) this.#lose();
    return !this.#lost;
  }

  /** ms until it ends, if nothing renews it. */
  get left(): number {
    return this.isValid ? this.#validUntil - this.options.monotonic() : 0;
  }

  /** Redis confirmed a renewal that was sent at `sentAt`. One that comes after the end changes nothing. */
  renewed(sentAt: number): void {
    if (!this.isValid) return;
    this.#validUntil = Math.max(this.#validUntil, this.#until(sentAt));
  }

  /** Redis said that the lock is another's, or gone. */
  revoke(): void {
    if (!this.#lost) this.#lose();
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  #until(sentAt: number): number {
    const { duration } = this.options;
    return sentAt + duration - Math.min(MARGIN_MAX, Math.max(MARGIN_MIN, duration * MARGIN_PART));
  }

  #arm(): void {
    const left = this.#validUntil - this.options.monotonic();
    this.#timer = setTimeout(
      () => {
        if (this.isValid) this.#arm();
      },
      Math.max(1, left),
    );
    this.#timer.unref();
  }

  #lose(): void {
    this.#lost = true;
    clearTimeout(this.#timer);
    this.options.onLost();
  }
}
