import type { JobScripts } from './job-scripts.js';
import { newRequestId } from './request-id.js';
import { SubmitBatch, type SubmitItem, type SubmitResult } from './submit-batch.js';

/** A batch that was answered: its results in order, and Redis' clock in ms. */
export interface SubmitAnswers {
  results: SubmitResult[];
  now: number;
}

export interface SubmitterOptions {
  /** 0 for no limit. */
  maxPending: number;
}

/** Calls under way at once: enough to keep both ends busy, few enough that a bulk holds up nobody else. */
const IN_FLIGHT = 4;

/** Sends the jobs of one queue: a bulk becomes calls of bounded size, a few of them under way at once. */
export class Submitter {
  constructor(
    private readonly scripts: JobScripts,
    private readonly queue: string,
    private readonly options: SubmitterOptions,
  ) {}

  /**
   * Stores all items, in order. A bulk is not atomic: each item stands alone, and a repeat with the same
   * `requestId` and the same items adds only what is missing.
   * @throws CarillonError of the first call that failed, after those under way ended; none is begun after it.
   */
  async submit(items: readonly SubmitItem[], requestId: string = newRequestId()): Promise<SubmitAnswers[]> {
    const calls: Promise<SubmitAnswers>[] = [];
    let from = 0;
    let failed = false;
    while (from < items.length && !failed) {
      const batch = new SubmitBatch(this.queue);
      while (from < items.length && batch.add(items[from] as SubmitItem)) from++;
      // The first call keeps the caller's id, so that one job added again alone is the same request.
      const id = calls.length === 0 ? requestId : `${requestId}:${calls.length}`;
      const call = this.scripts.submit(this.queue, batch, {
        requestId: id,
        duplicateWindow: batch.window,
        maxPending: this.options.maxPending,
      });
      call.catch(() => {
        failed = true;
      });
      calls.push(call);
      if (calls.length >= IN_FLIGHT) await calls[calls.length - IN_FLIGHT]?.catch(() => undefined);
    }
    await Promise.allSettled(calls);
    return Promise.all(calls);
  }
}
