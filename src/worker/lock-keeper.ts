import type { Logger } from '../support/logger.js';
import { RepeatedTask } from '../support/repeated-task.js';
import type { RunsAtWork } from './runs-at-work.js';

/**
 * Renews locks that BullMQ forgot: it knows runs by their id, and when an attempt that lost its lock ends at last, it
 * forgets the later attempt of the same run in the same worker too.
 */
export class LockKeeper extends RepeatedTask {
  constructor(
    /** ms. */
    private readonly renewTime: number,
    private readonly runs: RunsAtWork,
    private readonly renew: (runIds: string[], locks: string[]) => Promise<unknown>,
    logger: Logger,
  ) {
    super('lock keeper', renewTime / 2, logger);
  }

  protected override async work(): Promise<void> {
    // What BullMQ renews is never so old.
    const forgotten = this.runs.unrenewedFor(1.5 * this.renewTime);
    if (forgotten.length === 0) return;
    await this.renew(
      forgotten.map(({ runId }) => runId),
      forgotten.map(({ lock }) => lock),
    );
  }
}
