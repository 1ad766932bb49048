import type { Logger } from '../support/logger.js';
import { Service } from '../support/service.js';

/** Looks in a lock's time: a block is measured from the look before it, and so by at most one look too long. */
const LOOKS = 120;
/** ms between looks at the least. */
const SHORTEST = 10;
/** A loop that stood still for so large a part of a lock has come near to losing runs. */
const TOO_LONG = 1 / 3;

/** Tells when the event loop stood still for so long that locks were in danger, and whose handlers were at work. */
export class LoopWatch extends Service {
  #timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly lockDuration: number,
    private readonly monotonic: () => number,
    private readonly seen: () => { runId: string; name: string }[],
    private readonly logger: Logger,
  ) {
    super();
  }

  protected override async onStart(): Promise<void> {
    const every = Math.max(SHORTEST, this.lockDuration / LOOKS);
    let last = this.monotonic();
    this.#timer = setInterval(() => {
      const now = this.monotonic();
      const stood = now - last;
      last = now;
      const runs = this.seen();
      if (stood <= this.lockDuration * TOO_LONG) return;
      this.logger.error(
        {
          blockedFor: Math.round(stood),
          lockDuration: this.lockDuration,
          handlers: [...new Set(runs.map(({ name }) => name))],
          runs: runs.slice(0, 10).map(({ runId }) => runId),
        },
        'the event loop stood still for more than a third of the lock: a handler blocks it, and its runs may be started twice',
      );
    }, every);
    this.#timer.unref();
  }

  protected override async onStop(): Promise<void> {
    clearInterval(this.#timer);
  }
}
