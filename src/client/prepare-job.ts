import { refuse } from '../config/check.js';
import { parseDuration } from '../domain/durations.js';
import { checkJobId, checkJobName } from '../domain/ids.js';
import { encodeData } from '../queue/payload.js';
import type { SubmitItem } from '../redis/submit-batch.js';
import { requestedId } from './job-ids.js';
import { type JobOptions, resolveOptions } from './job-options.js';
import { PARENT_POLICIES, parentsOf, refusePoliciesAlone } from './job-parents.js';

/** What a queue tells of itself to those who check its jobs. */
export interface JobLimits {
  /** Bytes of UTF-8. */
  maxPayload: number;
  /** ms. */
  duplicateWindow: number;
  /** Its name. */
  queue: string;
}

/** BullMQ's rule: the id is the job's own, whatever the defaults say. A job without parents needs no policy for them. */
export function withDefaults(defaults: JobOptions, own: JobOptions | undefined): JobOptions {
  const merged: JobOptions = { ...defaults, ...own, jobId: own?.jobId };
  if (own?.after !== undefined) return merged;
  for (const key of PARENT_POLICIES) {
    if (defaults[key] !== undefined && own?.[key] === undefined) delete merged[key];
  }
  return merged;
}

/**
 * Refuses options of a whole call in one of its jobs.
 * @param call how it begins, for the reader.
 * @throws CarillonError INVALID_OPTION
 */
export function refuseOfCall(opts: JobOptions, call: string): void {
  for (const key of ['requestId', 'durability'] as const) {
    if (opts[key] !== undefined)
      refuse(key, opts[key], 'belongs to the whole call', `Give ${call}, { ${key} }).`);
  }
}

/**
 * Checks one job whole, before anything is sent.
 * @param opts already merged with the queue's defaults.
 * @param requestId the caller's own, for a job that was given none.
 * @throws CarillonError INVALID_ID, INVALID_OPTION, INVALID_DURATION, UNSUPPORTED
 */
export function prepareJob(
  name: unknown,
  data: unknown,
  opts: JobOptions,
  limits: JobLimits,
  newId: () => string,
  requestId?: string,
  index = 0,
): SubmitItem {
  const checkedName = checkJobName(name);
  const resolved = resolveOptions(opts);
  const text = encodeData(data, limits.maxPayload, resolved.sizeLimit);
  const { jobId } = resolved;
  const chosen = jobId !== undefined || requestId !== undefined;
  if (resolved.replace && jobId === undefined) {
    refuse('ifExists', 'replace', 'needs the jobId of the job to replace', 'Give a jobId.');
  }
  const id =
    jobId !== undefined
      ? checkJobId(jobId)
      : requestId !== undefined
        ? requestedId(requestId, index)
        : newId();
  const item: SubmitItem = {
    jobId: id,
    chosen,
    time: resolved.time,
    relative: resolved.relative,
    replace: resolved.replace,
    window: windowOf(resolved.window, limits.duplicateWindow),
    name: checkedName,
    data: text,
    opts: resolved.text,
    priority: resolved.priority,
    lifo: resolved.lifo,
    timestamp: resolved.timestamp,
    dedup: resolved.dedup,
    deadline: resolved.deadline !== undefined,
  };
  if (opts.after === undefined) refusePoliciesAlone(opts);
  const after = opts.after === undefined ? undefined : parentsOf(opts, limits.queue, id);
  if (after === undefined) return item;
  if (resolved.replace) {
    refuse(
      'after',
      opts.after,
      'cannot be given to a job that may replace another',
      'Cancel that one first.',
      'UNSUPPORTED',
    );
  }
  return { ...item, after };
}

function windowOf(own: number | undefined, ofQueue: number): number {
  if (own === undefined) return ofQueue;
  return parseDuration(own, { field: 'duplicateWindow', max: ofQueue });
}
