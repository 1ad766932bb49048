import { performance } from 'node:perf_hooks';
import type { Redis } from 'ioredis';

const EVERY = 1000;
const SAMPLES = 20;

/**
 * Redis' clock, read without a round trip: a TIME plus the monotonic time since its reply came. Each reply says how far
 * Redis' clock is ahead of ours, or less when the reply lay waiting; so the greatest of the last few is the nearest, and
 * none of them is ahead of Redis: what this clock calls on time was not early.
 */
export class RedisClock {
  readonly #offsets: number[] = [];
  #offset = 0;
  readonly #timer: NodeJS.Timeout;

  private constructor(private readonly client: Redis) {
    this.#timer = setInterval(() => this.#ask().catch(() => undefined), EVERY);
    this.#timer.unref();
  }

  static async of(client: Redis): Promise<RedisClock> {
    const clock = new RedisClock(client);
    for (let i = 0; i < SAMPLES; i++) await clock.#ask();
    return clock;
  }

  /** ms since 1970, with a fraction. */
  now(): number {
    return performance.now() + this.#offset;
  }

  close(): void {
    clearInterval(this.#timer);
  }

  async #ask(): Promise<void> {
    const [seconds, micros] = await this.client.time();
    this.#offsets.push(Number(seconds) * 1000 + Number(micros) / 1000 - performance.now());
    if (this.#offsets.length > SAMPLES) this.#offsets.shift();
    this.#offset = Math.max(...this.#offsets);
  }
}
