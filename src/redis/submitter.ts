import { BUCKETS, bucketOf } from '../domain/buckets.js';
import { type BulkItem, CarillonError, isCarillonError } from '../domain/errors.js';
import { identityOf } from '../domain/ids.js';
import type { Durability } from './durability.js';
import type { JobScripts } from './job-scripts.js';
import { newRequestId } from './request-id.js';
import { SUBMIT_ITEMS, SubmitBatch, type SubmitItem, type SubmitResult } from './submit-batch.js';

export interface SubmitterOptions {
  /** 0 for no limit. */
  maxPending: number;
  /** ms since 1970; only ever asked what is far from due. */
  wall: () => number;
  /** Told of each answer of Redis. */
  answered?: () => void;
}

/** Calls under way at once: enough to keep both ends busy, few enough that a bulk holds up nobody else. */
const IN_FLIGHT = 4;
/** What is under way together is sorted together: a bulk that fails half-way has stored little beyond its beginning. */
const SORTED = IN_FLIGHT * SUBMIT_ITEMS;
/** An item is told from its neighbours by two bytes; a larger bulk is several requests. */
const ITEMS_A_REQUEST = 65 * SORTED;
/** What is due so soon may be due by Redis' clock already, ms. */
const SOON = 10_000;

/** Sends the jobs of one queue: a bulk becomes calls of bounded size, a few of them under way at once. */
export class Submitter {
  constructor(
    private readonly scripts: JobScripts,
    private readonly queue: string,
    private readonly options: SubmitterOptions,
  ) {}

  /**
   * Stores all items and answers them in their order. A bulk is not atomic: each item stands alone, and a repeat with
   * the same `requestId` and the same items adds only what is missing.
   * @throws CarillonError of the first item or call that failed, after those under way ended; none is begun after it.
   *   Of several items, `items` tells what became of each.
   */
  async submit(
    items: readonly SubmitItem[],
    requestId: string = newRequestId(),
    durability?: Durability,
  ): Promise<SubmitResult[]> {
    const order = this.#order(items);
    const results = new Array<SubmitResult | CarillonError | undefined>(items.length);
    const calls: Promise<void>[] = [];
    let next = 0;
    let failed = false;
    while (next < order.length && !failed) {
      const batch = new SubmitBatch(this.queue);
      const first = next;
      const request = Math.floor((order[first] as number) / ITEMS_A_REQUEST);
      while (next < order.length) {
        const index = order[next] as number;
        if (Math.floor(index / ITEMS_A_REQUEST) !== request) break;
        if (!batch.add(items[index] as SubmitItem, index % ITEMS_A_REQUEST)) break;
        next++;
      }
      const last = next;
      const call = this.scripts
        .submit(this.queue, batch, {
          // The first keeps the caller's id, so that one job added again alone is the same request.
          requestId: request === 0 ? requestId : `${requestId}:${request}`,
          duplicateWindow: batch.window,
          maxPending: this.options.maxPending,
          durability,
        })
        .then((answered) => {
          for (const [i, result] of answered.entries()) {
            results[order[first + i] as number] = result;
            if (result instanceof CarillonError) failed = true;
          }
          this.options.answered?.();
        })
        .catch((error: unknown) => {
          failed = true;
          for (let i = first; i < last; i++) results[order[i] as number] = asCarillonError(error);
        });
      calls.push(call);
      if (calls.length >= IN_FLIGHT) await calls[calls.length - IN_FLIGHT];
    }
    await Promise.all(calls);
    if (failed) throw failureOf(items, results);
    return results as SubmitResult[];
  }

  /**
   * Indexes of the items in the order in which they are sent: by bucket, so that the script stores those of one bucket
   * together. Jobs that may be due now enter their queue, and deduplicated ones are judged, in the order of the bulk:
   * with one of them it stays.
   */
  #order(items: readonly SubmitItem[]): readonly number[] {
    const soon = this.options.wall() + SOON;
    const keepsOrder = ({ dedup, relative, time }: SubmitItem) =>
      dedup || (relative ? time <= 0 : time <= soon);
    if (items.some(keepsOrder)) return [...items.keys()];
    const keys = Float64Array.from(items, (item, index) => {
      const group = Math.floor(index / SORTED) * BUCKETS + bucketOf(identityOf(this.queue, item.jobId));
      return group * SORTED + (index % SORTED);
    });
    keys.sort();
    return Array.from(keys, (key) => Math.floor(key / (BUCKETS * SORTED)) * SORTED + (key % SORTED));
  }
}

/** The error of the first item that failed; of a bulk, with what became of each. */
function failureOf(
  items: readonly SubmitItem[],
  results: readonly (SubmitResult | CarillonError | undefined)[],
): CarillonError {
  const first = results.find((result) => result instanceof CarillonError) as CarillonError;
  if (items.length === 1) return first;
  const { code, message, field, todo, retryable, cause } = first;
  const rows = items.map(({ jobId }, index): BulkItem => {
    const result = results[index];
    if (result === undefined) return { jobId };
    if (result instanceof CarillonError) return { jobId, error: result };
    return { jobId: result.jobId, answer: result.answer };
  });
  const error = new CarillonError(code, message, {
    field,
    todo,
    retryable,
    cause: cause ?? first,
    items: rows,
  });
  if (first.given !== undefined) Object.assign(error, { given: first.given });
  return error;
}

function asCarillonError(error: unknown): CarillonError {
  if (error instanceof CarillonError) return error;
  const { message, code, ...rest } = error as CarillonError;
  if (isCarillonError(error)) return new CarillonError(code, message, rest);
  return new CarillonError('BAD_SCRIPT', error instanceof Error ? error.message : String(error), {
    cause: error,
  });
}
