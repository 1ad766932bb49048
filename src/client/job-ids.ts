import { createHash } from 'node:crypto';
import { monotonicFactory, type PRNG } from 'ulid';

/**
 * Makes ids for jobs that were given none: ULIDs, which sort by the time of their making.
 * @param now ms since 1970. Defaults to the host's clock; the id carries no meaning beyond its order.
 * @param random from 0 up to 1. Defaults to the host's secure source.
 */
export function jobIds(now: () => number = Date.now, random?: PRNG): () => string {
  const next = monotonicFactory(random);
  return () => next(now());
}

/** The id of a job whose caller named the request but not the job: a repeat of the request means the same job. */
export function requestedId(requestId: string, index: number): string {
  const hash = createHash('sha256').update(`${requestId}:${index}`).digest('base64url');
  return `r-${hash.slice(0, 22)}`;
}
