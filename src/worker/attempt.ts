import { setTimeout as delay } from 'node:timers/promises';
import { CarillonError } from '../domain/errors.js';

/** Why an attempt is to stop. */
export type StopReason =
  | { why: 'shutdown' }
  | { why: 'cancel' | 'pause'; reason: string; at: number }
  | { why: 'timeout'; after: number }
  | { why: 'stale' };

/** How an attempt came to its end. */
export type Ending =
  | { how: 'returned'; result: unknown }
  | { how: 'threw'; error: unknown }
  /** It was told to stop and did not settle within its grace. */
  | { how: 'ignored' };

/** The handler at work, and the one signal by which it is told to stop. */
export class Attempt {
  readonly #abort = new AbortController();
  #stopped: StopReason | undefined;
  #told: () => void = () => undefined;
  readonly #toldToStop = new Promise<void>((resolve) => {
    this.#told = resolve;
  });

  /** The first reason for which it is to stop, if any. */
  get stopped(): StopReason | undefined {
    return this.#stopped;
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  /** Tells the handler to stop. Only the first reason counts, but that a stale run is stale always does. */
  stop(reason: StopReason): void {
    if (this.#stopped !== undefined && reason.why !== 'stale') return;
    this.#stopped = reason;
    this.#abort.abort(errorOf(reason));
    this.#told();
  }

  /** BullMQ's own way to stop a job of this worker (`cancelJob`): what the handler then throws fails the attempt. */
  abort(reason: unknown): void {
    this.#abort.abort(reason);
  }

  /** Runs the handler to its end, or until `grace` ms after it was told to stop. Never rejects. */
  async run(handle: () => unknown, grace: () => number): Promise<Ending> {
    const work = settle(handle);
    const first = await Promise.race([work, this.#toldToStop]);
    if (first !== undefined) return first;
    const patience = new AbortController();
    const ignored = delay(grace(), undefined, { signal: patience.signal }).then(
      (): Ending => ({ how: 'ignored' }),
      (): Ending => ({ how: 'ignored' }),
    );
    return Promise.race([work, ignored]).finally(() => patience.abort());
  }
}

async function settle(handle: () => unknown): Promise<Ending> {
  try {
    return { how: 'returned', result: await handle() };
  } catch (error) {
    return { how: 'threw', error };
  }
}

/** What the handler finds as `signal.reason`. */
function errorOf(reason: StopReason): CarillonError {
  switch (reason.why) {
    case 'shutdown':
      return new CarillonError('RUN_STOPPED', 'the worker shuts down', {
        todo: 'Checkpoint and throw: the run is handed back without using an attempt.',
      });
    case 'cancel':
      return new CarillonError('RUN_STOPPED', `cancelled: ${reason.reason || 'no reason was given'}`, {
        todo: 'Throw: the run ends here.',
      });
    case 'pause':
      return new CarillonError('RUN_STOPPED', `paused: ${reason.reason || 'no note was given'}`, {
        todo: 'Checkpoint and throw: the run goes on from there when it is resumed.',
      });
    case 'timeout':
      return new CarillonError('RUN_TIMEOUT', `the attempt took longer than ${reason.after} ms`, {
        todo: 'Give a longer timeout, or less work a run.',
      });
    case 'stale':
      return new CarillonError('STALE_RUN', 'the lock of this run can no longer be trusted', {
        todo: 'Stop: another worker may have started it.',
      });
  }
}
