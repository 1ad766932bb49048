import type { DeadNotice, DeadReceiver } from '../domain/dead-reason.js';

/** A post that is not answered in time has failed, ms. */
const POST_TIMEOUT = 5000;

/** The receiver understood, and will not have it. */
export class RefusedNotice extends Error {}

/** Hands one notice over; rejects when the receiver does not have it. */
type Hand = (notice: DeadNotice, signal: AbortSignal) => Promise<void>;

/** What `onDead` names: a URL to post to, or a function of the program. */
export function handTo(receiver: string | DeadReceiver): Hand {
  return typeof receiver === 'string' ? (notice, signal) => post(receiver, notice, signal) : call(receiver);
}

/** A function that never ends must not keep the scheduler from stopping. */
function call(receiver: DeadReceiver): Hand {
  return async (notice, signal) => {
    let stop: () => void = () => undefined;
    const stopped = new Promise<never>((_, reject) => {
      stop = () => reject(signal.reason);
      signal.addEventListener('abort', stop, { once: true });
    });
    try {
      await Promise.race([receiver(notice), stopped]);
    } finally {
      signal.removeEventListener('abort', stop);
    }
  };
}

async function post(url: string, notice: DeadNotice, signal: AbortSignal): Promise<void> {
  // Not AbortSignal.any: Node has it from 20.3 on.
  const cut = new AbortController();
  const stop = () => cut.abort();
  const timer = setTimeout(stop, POST_TIMEOUT);
  signal.addEventListener('abort', stop);
  try {
    const reply = await fetch(url, {
      method: 'POST',
      headers: {
        'content-type': 'application/json',
        // An id may hold what a header cannot.
        'idempotency-key': encodeURIComponent(
          `${notice.namespace}:${notice.queue}:${notice.id}:${notice.diedAt}`,
        ),
      },
      body: JSON.stringify(notice),
      signal: cut.signal,
    });
    await reply.body?.cancel();
    if (reply.ok) return;
    const comesRound =
      reply.status < 400 || reply.status >= 500 || reply.status === 408 || reply.status === 429;
    const Problem = comesRound ? Error : RefusedNotice;
    throw new Problem(`it answered ${reply.status}`);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', stop);
  }
}
