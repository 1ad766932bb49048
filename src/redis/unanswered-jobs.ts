import type { Redis } from 'ioredis';
import { CarillonError } from '../domain/errors.js';
import type { SubmitItem } from './submit-batch.js';

/** Units of UTF-16, in payloads and options. */
const MOST_TEXT = 64 * 1024 * 1024;
/** A connected Redis that answered nothing for so long is away too; ms. */
const SILENT = 2000;

/**
 * Bounds the jobs that wait in this process while Redis is away: ioredis would keep them without end. A Redis that
 * answers is never held up by it.
 */
export class UnansweredJobs {
  #jobs = 0;
  #text = 0;
  #quietSince = 0;

  /** @param most jobs that may wait. */
  constructor(
    private readonly client: Redis,
    private readonly most: number,
  ) {}

  /**
   * Counts jobs in before they are sent.
   * @returns what counts them out again.
   * @throws CarillonError OFFLINE_FULL; nothing is sent.
   */
  admit(items: readonly SubmitItem[]): () => void {
    const now = performance.now();
    if (this.#jobs === 0) this.#quietSince = now;
    const away = this.client.status !== 'ready' || now - this.#quietSince > SILENT;
    const text = items.reduce((sum, { data, opts }) => sum + data.length + opts.length, 0);
    if (away && (this.#jobs + items.length > this.most || this.#text + text > MOST_TEXT)) throw this.#full();
    this.#jobs += items.length;
    this.#text += text;
    return () => {
      this.#jobs -= items.length;
      this.#text -= text;
    };
  }

  /** Redis has answered a call. */
  answered(): void {
    this.#quietSince = performance.now();
  }

  #full(): CarillonError {
    return new CarillonError(
      'OFFLINE_FULL',
      `Redis is away, and ${this.#jobs} jobs wait for it already; nothing was sent`,
      {
        field: 'offlineQueue',
        todo: 'Repeat the call later, with the same jobId or requestId; or raise offlineQueue.',
        retryable: true,
      },
    );
  }
}
