import type { Redis } from 'ioredis';
import { CarillonError } from '../domain/errors.js';

/** What a job keeps in this process until Redis has answered. */
interface Unanswered {
  readonly data: string;
  readonly opts: string;
}

/** Units of UTF-16, in payloads and options. */
const MOST_TEXT = 64 * 1024 * 1024;
/** A connected Redis that answered nothing for so long is away too; so is one that takes longer to connect. ms. */
const SILENT = 2000;
const RETRY = { field: 'offlineQueue', retryable: true } as const;
const LATER = 'Repeat the call later, with the same jobId or requestId';

/**
 * Bounds the jobs that wait in this process while Redis is away: ioredis would keep them without end. A Redis that
 * answers is never held up by it.
 */
export class UnansweredJobs {
  #jobs = 0;
  #text = 0;
  #quietSince = 0;
  /** Until the first connection stands or has failed nobody knows whether Redis is away. */
  #connecting: Promise<void> | undefined;

  /** @param most jobs that may wait. */
  constructor(
    private readonly client: Redis,
    private readonly most: number,
  ) {
    if (!['wait', 'connecting', 'connect'].includes(client.status)) return;
    this.#connecting = firstOutcome(client).then(() => {
      this.#connecting = undefined;
    });
  }

  /**
   * Sends jobs, which count as waiting until `send` has settled.
   * @throws CarillonError OFFLINE_FULL; nothing is sent. Else what `send` throws.
   */
  async hold<T>(jobs: readonly Unanswered[], send: () => Promise<T>): Promise<T> {
    if (this.#connecting !== undefined) await this.#connecting;
    const text = jobs.reduce((sum, { data, opts }) => sum + data.length + opts.length, 0);
    this.#admit(jobs.length, text);
    this.#jobs += jobs.length;
    this.#text += text;
    try {
      return await send();
    } finally {
      this.#jobs -= jobs.length;
      this.#text -= text;
    }
  }

  /** Redis has answered a call. */
  answered(): void {
    this.#quietSince = performance.now();
  }

  #admit(jobs: number, text: number): void {
    const now = performance.now();
    if (this.#jobs === 0) this.#quietSince = now;
    if (this.client.status === 'ready' && now - this.#quietSince <= SILENT) return;
    if (jobs > this.most) {
      throw full(
        `${jobs} jobs in one call are more than may wait for it, ${this.most}`,
        `${LATER}, or in parts; or raise offlineQueue.`,
      );
    }
    if (this.#jobs + jobs > this.most) {
      throw full(`${this.#jobs} jobs wait for it already`, `${LATER}; or raise offlineQueue.`);
    }
    if (this.#text + text > MOST_TEXT) {
      throw full(`what waits for it would be more than ${MOST_TEXT / 1024 / 1024} MiB`, `${LATER}.`);
    }
  }
}

/** Resolves when the connection under way stands, has failed, or takes too long. */
function firstOutcome(client: Redis): Promise<void> {
  return new Promise((resolve) => {
    const events = ['ready', 'close', 'end'] as const;
    const done = () => {
      clearTimeout(timer);
      for (const event of events) client.off(event, done);
      resolve();
    };
    const timer = setTimeout(done, SILENT);
    timer.unref();
    for (const event of events) client.on(event, done);
  });
}

function full(why: string, todo: string): CarillonError {
  return new CarillonError('OFFLINE_FULL', `Redis is away, and ${why}; nothing was sent`, { ...RETRY, todo });
}
