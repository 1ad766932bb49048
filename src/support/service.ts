import { channel } from 'node:diagnostics_channel';

/**
 * Published on `carillon:service` when a service starts and when it has stopped. Nobody listens in production; the
 * test suite does, and fails on a service that was left running.
 */
export interface ServiceEvent {
  service: Service;
  change: 'starting' | 'stopped';
}

const events = channel('carillon:service');

/** One pass from `start()` to `stop()`. A service may go through many. */
interface Term {
  readonly abort: AbortController;
  started: Promise<void>;
  stopped: Promise<void> | undefined;
  /** onStart was called, so that there may be something to give back. */
  entered: boolean;
  running: boolean;
}

/**
 * The start and stop of everything that runs on its own. Any number of calls, from anywhere, in any order:
 *
 * - **stopped** → `start()` → **starting**: `onStart` runs; a second `start()` gets the same promise.
 * - **starting** → `onStart` resolves → **started**. If it rejects, `onStop` frees what it took, the service is
 *   stopped and `start()` rejects with that error.
 * - **starting** or **started** → `stop()` → **stopping**: the signal aborts, `onStart` is waited for, `onStop` runs.
 *   A `start()` that was cut off so rejects with an `AbortError`, even if `onStart` resolved. A second `stop()` gets
 *   the same promise.
 * - **stopping** → `start()` begins the next term when the stop is done.
 *
 * `onStop` runs once for each `onStart`, and the two never overlap with those of another term. Neither may wait for
 * the service's own `stop()`.
 */
export abstract class Service {
  #term: Term | undefined;
  #previous: Promise<void> = Promise.resolve();

  /** Takes what the service needs and starts its loops, which end by `signal`. Must settle soon after an abort. */
  protected abstract onStart(signal: AbortSignal): Promise<void>;

  /** Waits for the loops and gives everything back, also after an `onStart` that failed half-way. */
  protected abstract onStop(): Promise<void>;

  /** True from the moment `start()` resolves until `stop()` is called. */
  get started(): boolean {
    return this.#term?.running ?? false;
  }

  /** Starts the service. Resolves when it serves; rejects when it cannot, or when it is stopped meanwhile. */
  start(): Promise<void> {
    if (this.#term === undefined) {
      const term: Term = {
        abort: new AbortController(),
        started: Promise.resolve(),
        stopped: undefined,
        entered: false,
        running: false,
      };
      this.#term = term;
      events.publish({ service: this, change: 'starting' } satisfies ServiceEvent);
      term.started = this.#begin(term);
    }
    return this.#term.started;
  }

  /** Stops the service. Resolves when all it held is given back; rejects with what `onStop` threw. */
  stop(): Promise<void> {
    const term = this.#term;
    if (term === undefined) return this.#previous;
    return this.#finish(term, term.started);
  }

  async #begin(term: Term): Promise<void> {
    await this.#previous.catch(() => undefined);
    try {
      term.abort.signal.throwIfAborted();
      term.entered = true;
      await this.onStart(term.abort.signal);
      term.abort.signal.throwIfAborted();
      term.running = true;
    } catch (error) {
      // stop() was called: it runs onStop. Otherwise nobody will, and the first error is the one to report.
      if (!term.abort.signal.aborted) await this.#finish(term, Promise.resolve()).catch(() => undefined);
      throw error;
    }
  }

  #finish(term: Term, settled: Promise<void>): Promise<void> {
    if (term.stopped === undefined) {
      this.#term = undefined;
      term.running = false;
      term.abort.abort();
      term.stopped = this.#end(term, settled);
      this.#previous = term.stopped;
    }
    return term.stopped;
  }

  async #end(term: Term, settled: Promise<void>): Promise<void> {
    await settled.catch(() => undefined);
    try {
      if (term.entered) await this.onStop();
    } finally {
      // Not when a start() has begun the next term already.
      const last = this.#term === undefined && this.#previous === term.stopped;
      if (last) events.publish({ service: this, change: 'stopped' } satisfies ServiceEvent);
    }
  }
}
