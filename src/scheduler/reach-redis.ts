import type { Redis } from 'ioredis';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import { redisError, serverWord } from '../redis/status.js';
import { pause } from '../support/pause.js';

/** How long a start waits for a Redis that does not answer, or that loads its data (ms). */
const PATIENCE = 10_000;
const REST = 100;

/**
 * Asks Redis at the start, again and again while nobody answers: both may be starting at once.
 * @throws CarillonError REDIS_UNAVAILABLE after some ten seconds, and at once when Redis refuses us.
 */
export async function reachRedis<T>(
  client: Redis,
  ask: () => Promise<T>,
  signal: AbortSignal,
  monotonic: () => number,
): Promise<T> {
  const giveUpAt = monotonic() + PATIENCE;
  // A call that was given up says only that it was; the connection says why.
  let trouble: Error | undefined;
  const hear = (error: Error) => {
    trouble = error;
  };
  client.on('error', hear);
  try {
    for (;;) {
      try {
        return await unlessAborted(ask(), signal);
      } catch (error) {
        signal.throwIfAborted();
        if (isRefusal(error)) throw redisError(error);
        if (monotonic() >= giveUpAt) throw unreachable(client, trouble ?? error);
      }
      await pause(REST, signal);
      signal.throwIfAborted();
    }
  } finally {
    client.off('error', hear);
  }
}

/** An answer that waiting does not change: a wrong password, a missing permission, another layout. */
function isRefusal(error: unknown): boolean {
  const cause = isCarillonError(error) ? (error as { cause?: unknown }).cause : error;
  if (cause === undefined) return true;
  return (cause as Error).name === 'ReplyError' && serverWord(cause) === undefined;
}

function unreachable({ options }: Redis, cause: unknown): CarillonError {
  const at = options.sentinels
    ? `${options.name} by its sentinels`
    : (options.path ?? `${options.host}:${options.port}`);
  const why = cause instanceof Error ? cause.message : String(cause);
  return new CarillonError(
    'REDIS_UNAVAILABLE',
    `Redis at ${at} did not answer for ${PATIENCE / 1000} s: ${why}`,
    {
      field: 'redis',
      todo: 'Check that it runs and that the option redis names its address; then start again.',
      retryable: true,
      cause,
    },
  );
}

/** Does not wait for work that nobody wants any more; the connection it runs on is about to be closed. */
function unlessAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const aborted = () => reject(signal.reason as Error);
    if (signal.aborted) aborted();
    signal.addEventListener('abort', aborted, { once: true });
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', aborted));
  });
}
