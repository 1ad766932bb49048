import { performance } from 'node:perf_hooks';
import type { Redis } from 'ioredis';

const EVERY = 1000;

/**
 * Redis' clock, read without a round trip: the last TIME plus the monotonic time since its reply came. TIME was taken
 * before the reply came, so this is never ahead of Redis: what it calls on time was not early.
 */
export class RedisClock {
  #offset = 0;
  readonly #timer: NodeJS.Timeout;

  private constructor(private readonly client: Redis) {
    this.#timer = setInterval(() => this.#ask().catch(() => undefined), EVERY);
    this.#timer.unref();
  }

  static async of(client: Redis): Promise<RedisClock> {
    const clock = new RedisClock(client);
    await clock.#ask();
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
    this.#offset = Number(seconds) * 1000 + Number(micros) / 1000 - performance.now();
  }
}
