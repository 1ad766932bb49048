import { ulid } from 'ulid';
import type { JobOptions } from '../client/job-options.js';
import { prepareJob } from '../client/prepare-job.js';
import { checkCall } from '../config/call-options.js';
import { checkInteger, checkObject, refuse } from '../config/check.js';
import { DUPLICATE_WINDOW } from '../config/scheduler-options.js';
import { checkQueueName } from '../domain/ids.js';
import { refuseDurability } from './relay-row.js';
import { checkTable, OUTBOX_TABLE } from './table.js';

/** Whatever runs a statement in the caller's transaction: a client of node-postgres, say. */
export interface OutboxTransaction {
  query(text: string, values: unknown[]): Promise<unknown>;
}

/** The columns of a row to insert. */
export interface OutboxRow {
  /** The id of the job too, where `opts.jobId` names none. */
  id: string;
  queue: string;
  name: string;
  /** JSON texts. */
  data: string;
  opts: string;
}

export interface OutboxOptions {
  /** Defaults to `carillon_outbox`; may be `schema.table`. */
  table?: string;
  /** The largest payload in bytes of UTF-8, as JSON. Defaults to 1,048,576; the most is 16,000,000. */
  maxPayload?: number;
}

const MAX_PAYLOAD = 1_048_576;
const LARGEST_PAYLOAD = 16_000_000;

/**
 * Adds jobs in the caller's PostgreSQL transaction: a job exists exactly if the transaction commits. A relay
 * (`carillon outbox`) hands committed rows to Redis.
 *
 * @example
 * const outbox = new Outbox();
 * await client.query('BEGIN');
 * await client.query('INSERT INTO orders ...');
 * await outbox.add(client, 'emails', 'send', { order: 5 });
 * await client.query('COMMIT');
 */
export class Outbox {
  readonly #table: string;
  readonly #maxPayload: number;

  /** @throws CarillonError INVALID_OPTION */
  constructor(options: OutboxOptions = {}) {
    checkCall(options, ['table', 'maxPayload']);
    this.#table = checkTable(options.table ?? OUTBOX_TABLE);
    this.#maxPayload = checkInteger('maxPayload', options.maxPayload ?? MAX_PAYLOAD, 2, LARGEST_PAYLOAD);
  }

  /**
   * Inserts one job. A `delay` counts from now, by PostgreSQL's clock, however late the relay comes.
   * @returns the job's id.
   * @throws CarillonError as `queue.add` does, before anything is sent; and what the driver throws.
   */
  async add(
    transaction: OutboxTransaction,
    queue: string,
    name: string,
    data: unknown,
    opts: JobOptions = {},
  ): Promise<string> {
    const row = this.row(queue, name, data, opts);
    await transaction.query(
      `INSERT INTO ${this.#table} (id, queue, name, data, opts) VALUES ($1, $2, $3, $4, $5)`,
      [row.id, row.queue, row.name, row.data, row.opts],
    );
    return opts.jobId ?? row.id;
  }

  /** The same, checked, as columns: for an ORM, which inserts them itself. @throws CarillonError as `queue.add` does */
  row(queue: string, name: string, data: unknown, opts: JobOptions = {}): OutboxRow {
    checkQueueName(queue, 'queue');
    checkObject('opts', opts);
    if (opts.requestId !== undefined) {
      refuse('requestId', opts.requestId, 'is the row’s own id', 'Leave it out.');
    }
    refuseDurability(opts);
    const id = ulid();
    const limits = { maxPayload: this.#maxPayload, duplicateWindow: DUPLICATE_WINDOW, queue };
    const item = prepareJob(name, data, opts, limits, () => id);
    return { id, queue, name, data: item.data, opts: JSON.stringify(opts) };
  }
}
