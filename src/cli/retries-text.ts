import { type Backoff, retryWords } from '../domain/backoff.js';

/** What follows a failure of a job with these options, which anybody may have written. */
export function retriesOf(opts: unknown): string {
  const { attempts, backoff } = (opts ?? {}) as { attempts?: number; backoff?: Backoff | number };
  return retryWords(attempts, backoff);
}
