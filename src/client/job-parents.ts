import { checkObject, checkOneOf, refuse } from '../config/check.js';
import { rejectUnknown } from '../config/unknown-options.js';
import { CarillonError } from '../domain/errors.js';
import { checkQueueName, identityOf, LONGEST_ID } from '../domain/ids.js';
import type { AfterEntry, ParentCondition, ParentPolicy } from '../redis/submit-batch.js';

/** A job that another waits for. */
export interface ParentJob {
  /** Defaults to the queue of the job that waits. */
  queue?: string;
  /** Its id; a schedule's run is `<schedule>@<ms>`. */
  jobId: string;
  /**
   * What must have become of it: `success` (the default), `failure` (its attempts are used up), or `completion`, any end
   * that is known.
   */
  on?: ParentCondition;
}

/** What a job waits for besides its time. */
export interface ParentOptions {
  /**
   * The job waits until all of these have ended, and for its time: it fires when both are met. Ids of its own queue, or
   * with their queue and condition. Each must be known when the job is added. At most 1,000.
   */
  after?: readonly (string | ParentJob)[];
  /**
   * When a parent is dead, cancelled, skipped or removed, or succeeded where a failure is waited for: `cancel` (the
   * default) ends the job, and those that wait for it are told; `hold` pauses it until somebody resumes it; `run` goes on
   * as if all were well. The history has the reason.
   */
  onParentFailed?: ParentPolicy;
  /** When nobody knows how a parent ended: it ran, and its job is gone. Defaults to `hold`. */
  onParentLost?: ParentPolicy;
}

export const PARENT_POLICIES = ['onParentFailed', 'onParentLost'] as const;
export const PARENT_KEYS = ['after', ...PARENT_POLICIES] as const;
const MOST_PARENTS = 1000;
const POLICIES = ['cancel', 'hold', 'run'] as const;

/**
 * Checks what a job waits for.
 * @param queue the job's own.
 * @returns undefined for a job that waits for nothing.
 * @throws CarillonError INVALID_OPTION, INVALID_ID, CYCLE
 */
export function parentsOf(
  options: ParentOptions,
  queue: string,
  jobId: string | undefined,
): AfterEntry | undefined {
  const { after, onParentFailed = 'cancel', onParentLost = 'hold' } = options;
  const f = checkOneOf('onParentFailed', onParentFailed, POLICIES);
  const l = checkOneOf('onParentLost', onParentLost, POLICIES);
  if (after === undefined) return undefined;
  if (!Array.isArray(after))
    refuse('after', after, 'must be a list of jobs', "Give ['order-5'] or [{ queue, jobId }].");
  if (after.length > MOST_PARENTS) {
    refuse(
      'after',
      `${after.length} jobs`,
      `has more than ${MOST_PARENTS}`,
      'Let a job between them gather some.',
    );
  }
  const seen = new Set<string>();
  const e = after.map((one: unknown, index): AfterEntry['e'][number] => {
    const field = `after[${index}]`;
    const parent = readParent(one, field);
    const identity = identityOf(parent.queue ?? queue, parent.jobId);
    if (seen.has(identity)) refuse(field, one, 'names a job twice', 'Name each parent once.');
    if (identity === identityOf(queue, jobId ?? '')) {
      throw new CarillonError('CYCLE', 'a job cannot wait for itself', {
        field,
        given: one,
        todo: 'Leave it out.',
      });
    }
    seen.add(identity);
    return [identity, parent.on ?? 'success', ''];
  });
  return e.length === 0 ? undefined : { e, f, l };
}

/** @throws CarillonError INVALID_OPTION for a policy of a job that waits for nobody. */
export function refusePoliciesAlone(options: ParentOptions): void {
  for (const key of PARENT_POLICIES) {
    if (options[key] !== undefined)
      refuse(key, options[key], 'needs `after`', 'Name the jobs that it waits for, or leave it out.');
  }
}

function readParent(one: unknown, field: string): ParentJob {
  if (typeof one === 'string') return { jobId: checkParentId(one, field) };
  const given = checkObject(field, one);
  rejectUnknown(given, ['queue', 'jobId', 'on'], `${field}.`);
  const parent: ParentJob = { jobId: checkParentId(given.jobId, `${field}.jobId`) };
  if (given.queue !== undefined) parent.queue = checkQueueName(given.queue, `${field}.queue`);
  if (given.on !== undefined) {
    parent.on = checkOneOf(`${field}.on`, given.on, ['success', 'failure', 'completion'] as const);
  }
  return parent;
}

/** Ids of BullMQ's own making count too. */
function checkParentId(value: unknown, field: string): string {
  if (
    typeof value !== 'string' ||
    value === '' ||
    Buffer.byteLength(value) > LONGEST_ID ||
    !value.isWellFormed()
  ) {
    refuse(field, value, 'must be the id of a job', `Give a text of 1 to ${LONGEST_ID} bytes.`, 'INVALID_ID');
  }
  return value;
}
