/**
 * Whether this instance's loop gets through to Redis: what its leadership is fed by. Unfit after half a TTL without a
 * completed script; fit again once scripts have completed for a while.
 */
export class Progress {
  #fedAt: number;
  #goodSince = Number.NEGATIVE_INFINITY;
  #fit = true;

  constructor(
    /** ms */
    private readonly ttl: number,
    now: number,
  ) {
    this.#fedAt = now;
  }

  /** A script completed that was sent at this monotonic instant (ms). */
  fed(at: number): void {
    if (at <= this.#fedAt) return;
    if (at - this.#fedAt > this.ttl / 2) this.#goodSince = at;
    this.#fedAt = at;
  }

  /** As of this monotonic instant (ms). */
  isFit(now: number): boolean {
    const stuck = now - this.#fedAt > this.ttl / 2;
    if (stuck) this.#fit = false;
    else if (!this.#fit && now - this.#goodSince >= Math.min(2000, this.ttl / 4)) this.#fit = true;
    return this.#fit;
  }
}
