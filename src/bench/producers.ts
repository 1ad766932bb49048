import { Queue } from '../client/queue.js';
import { BullQueue } from '../queue/bullmq.js';
import type { Side } from './figures.js';

const BULK = 1000;
/** 100 bytes as JSON. */
const PAYLOAD = { text: 'x'.repeat(89) };

interface BulkQueue {
  addBulk(jobs: { name: string; data: object; opts: object }[]): Promise<unknown>;
  close(): Promise<void>;
}

/** One side's queue of the name `q`, whose jobs all have ids of 24 characters and a payload of 100 bytes. */
export class Producer {
  readonly #queue: BulkQueue;

  constructor(
    readonly side: Side,
    url: string,
    /** BullMQ's key prefix. */
    prefix = 'bull',
    /** Options that each of its jobs has besides. */
    private readonly more: object = {},
  ) {
    const options = { connection: { url }, prefix };
    this.#queue = side === 'carillon' ? new Queue('q', options) : new BullQueue('q', options);
  }

  /**
   * Adds `count` jobs in bulks of 1,000.
   * @param dueAt ms since 1970, of job i.
   * @param inFlight bulks under way at once, the same for both sides.
   */
  async add(
    count: number,
    dueAt: (index: number) => number,
    { inFlight = 2, idPrefix = 'job-' }: { inFlight?: number; idPrefix?: string } = {},
  ): Promise<void> {
    let next = 0;
    const lane = async () => {
      while (next < count) {
        const from = next;
        next += BULK;
        await this.#queue.addBulk(this.#bulk(from, Math.min(BULK, count - from), dueAt, idPrefix));
      }
    };
    await Promise.all(Array.from({ length: inFlight }, lane));
  }

  close(): Promise<void> {
    return this.#queue.close();
  }

  #bulk(from: number, count: number, dueAt: (index: number) => number, idPrefix: string) {
    const timestamp = Date.now();
    return Array.from({ length: count }, (_, i) => {
      const jobId = idPrefix + String(from + i).padStart(24 - idPrefix.length, '0');
      const time = dueAt(from + i);
      const opts =
        this.side === 'carillon'
          ? { jobId, at: time, ...this.more }
          : { jobId, timestamp, delay: Math.max(0, time - timestamp) };
      return { name: 'n', data: PAYLOAD, opts };
    });
  }
}
