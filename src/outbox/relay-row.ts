import type { JobOptions } from '../client/job-options.js';
import { prepareJob } from '../client/prepare-job.js';
import { checkInteger, refuse } from '../config/check.js';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import { checkQueueName } from '../domain/ids.js';
import { LAST_INSTANT } from '../domain/instant.js';
import type { SubmitItem } from '../redis/submit-batch.js';

/** A row as it was read; whoever inserted it may have written anything. */
export interface StoredRow {
  seq: string;
  id: string;
  queue: string;
  name: string;
  data: string;
  opts: string;
  /** ms since 1970, by PostgreSQL's clock. */
  addedAt: number;
  tries: number;
}

const LARGEST_PAYLOAD = 16_000_000;

/**
 * The job of a row. Its payload stays the text that it is. A `delay` counts from the insert.
 * @throws CarillonError for what no repeat will mend.
 */
export function itemOf(row: StoredRow, duplicateWindow: number): SubmitItem {
  checkQueueName(row.queue, 'queue');
  parse(row.data, 'data');
  if (Buffer.byteLength(row.data) > LARGEST_PAYLOAD) {
    throw new CarillonError('INVALID_OPTION', 'data is larger than a job can be', { field: 'data' });
  }
  const opts = parse(row.opts, 'opts');
  if (typeof opts !== 'object' || opts === null || Array.isArray(opts)) {
    throw new CarillonError('INVALID_OPTION', 'opts must be a JSON object', { field: 'opts', given: opts });
  }
  refuseDurability(opts as JobOptions);
  const { delay, ...rest } = opts as JobOptions;
  const timed: JobOptions = { ...rest, jobId: rest.jobId ?? row.id };
  if (delay !== undefined && rest.at === undefined) {
    timed.at = row.addedAt + checkInteger('delay', delay, 0, LAST_INSTANT - row.addedAt);
  } else if (delay !== undefined) timed.delay = delay;
  // It counts from the insert too: one that passed while no relay worked ends the job as expired, and is no bad option.
  else if (rest.deadline !== undefined && rest.at === undefined) timed.at = row.addedAt;
  const limits = { maxPayload: LARGEST_PAYLOAD, duplicateWindow, queue: row.queue };
  return { ...prepareJob(row.name, null, timed, limits, () => row.id), data: row.data };
}

/** The relay waits for replicas, for all rows alike: PostgreSQL keeps a row until then. @throws CarillonError INVALID_OPTION */
export function refuseDurability({ durability }: JobOptions): void {
  if (durability === undefined) return;
  refuse(
    'durability',
    durability,
    'belongs to the relay',
    'Give it to OutboxRelay, or carillon outbox --replicas <count>.',
  );
}

/** What to do with a row whose submit failed: wait for a server, try it again later, or set it aside. */
export type Verdict = 'stop' | 'later' | 'aside';

/** Codes of a server, a namespace or an installation that serves nobody: no row is to blame. */
const EVERYBODY: ReadonlySet<string> = new Set([
  'REDIS_UNAVAILABLE',
  'OUT_OF_MEMORY',
  'UNSAFE_REDIS',
  'NOT_DURABLE',
  'WRONG_LAYOUT',
  'INCOMPATIBLE_BULLMQ',
  'CLOSED',
]);
/** The field of the error when Redis refuses the database that the relay was given. */
const NO_DATABASE = 'connection.db';
/** How often a row whose parent is not known yet is tried again: another relay may just be adding it. */
const PATIENCE = 8;

export function judge(error: unknown, tries: number): Verdict {
  if (!isCarillonError(error)) return 'stop';
  if (EVERYBODY.has(error.code) || error.field === NO_DATABASE) return 'stop';
  if (error.code === 'UNKNOWN_PARENT') return tries + 1 < PATIENCE ? 'later' : 'aside';
  return error.retryable ? 'later' : 'aside';
}

function parse(text: string, field: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new CarillonError('INVALID_OPTION', `${field} is no JSON`, { field, given: text, cause });
  }
}
