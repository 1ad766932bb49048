import { checkBoolean, checkInteger, checkObject, refuse } from '../config/check.js';
import { rejectUnknown } from '../config/unknown-options.js';
import { LONGEST_ID } from '../domain/ids.js';
import { LAST_INSTANT } from '../domain/instant.js';
import { INSTEAD_OF_KEEP_LAST } from './unsupported-options.js';

/** Those of BullMQ's options that are objects, or may be. All throw CarillonError INVALID_OPTION, UNSUPPORTED. */

export const ANY_COUNT = Number.MAX_SAFE_INTEGER;

/** A number stands for a fixed delay, as in BullMQ. */
export function checkBackoff(value: unknown): object {
  if (typeof value === 'number') {
    return { type: 'fixed', delay: checkInteger('backoff', value, 0, LAST_INSTANT) };
  }
  const backoff = checkObject('backoff', value);
  rejectUnknown(backoff, ['type', 'delay', 'jitter', 'maxDelay'], 'backoff.');
  if (typeof backoff.type !== 'string' || backoff.type === '') {
    refuse(
      'backoff.type',
      backoff.type,
      'must be a text',
      "Give 'fixed', 'exponential' or your strategy's name.",
    );
  }
  if (backoff.delay !== undefined) checkInteger('backoff.delay', backoff.delay, 0, LAST_INSTANT);
  if (backoff.maxDelay !== undefined) checkInteger('backoff.maxDelay', backoff.maxDelay, 0, LAST_INSTANT);
  const { jitter } = backoff;
  if (jitter !== undefined && !(typeof jitter === 'number' && jitter >= 0 && jitter <= 1)) {
    refuse('backoff.jitter', jitter, 'must lie between 0 and 1', 'Give a fraction, such as 0.5.');
  }
  return backoff;
}

/** true, false, how many to keep (-1 for all), or `{ age, count, limit }`. */
export function checkKeepJobs(field: string, value: unknown): unknown {
  if (typeof value === 'boolean') return value;
  if (typeof value === 'number') return checkInteger(field, value, -1, ANY_COUNT);
  const keep = checkObject(field, value);
  rejectUnknown(keep, ['age', 'count', 'limit'], `${field}.`);
  if (keep.age === undefined && keep.count === undefined) {
    refuse(field, value, 'names neither age nor count', 'Give { age } in seconds, { count }, or both.');
  }
  if (keep.count !== undefined) checkInteger(`${field}.count`, keep.count, -1, ANY_COUNT);
  if (keep.limit !== undefined) checkInteger(`${field}.limit`, keep.limit, 1, ANY_COUNT);
  if (
    keep.age !== undefined &&
    !(typeof keep.age === 'number' && keep.age >= 0 && Number.isFinite(keep.age))
  ) {
    refuse(`${field}.age`, keep.age, 'must be a number of seconds', 'Give seconds, such as 3600.');
  }
  return keep;
}

export function checkDeduplication(value: unknown): object {
  const deduplication = checkObject('deduplication', value);
  rejectUnknown(
    deduplication,
    ['id', 'ttl', 'extend', 'replace', 'reschedule', 'keepLastIfActive'],
    'deduplication.',
  );
  const { id, ttl } = deduplication;
  if (typeof id !== 'string' || id === '' || !id.isWellFormed() || Buffer.byteLength(id) > LONGEST_ID) {
    refuse('deduplication.id', id, `must be a text of 1 to ${LONGEST_ID} bytes`, 'Give what is to be one.');
  }
  if (ttl !== undefined) checkInteger('deduplication.ttl', ttl, 0, LAST_INSTANT);
  for (const key of ['extend', 'replace', 'reschedule', 'keepLastIfActive']) {
    if (deduplication[key] !== undefined) checkBoolean(`deduplication.${key}`, deduplication[key]);
  }
  if (deduplication.keepLastIfActive === true) {
    refuse(
      'deduplication.keepLastIfActive',
      true,
      'cannot be kept by the timers: only a worker knows what is active',
      INSTEAD_OF_KEEP_LAST,
      'UNSUPPORTED',
    );
  }
  return deduplication;
}

export function encodeTelemetry(value: unknown, encoded: Record<string, unknown>): void {
  const telemetry = checkObject('telemetry', value);
  rejectUnknown(telemetry, ['metadata', 'omitContext'], 'telemetry.');
  const { metadata, omitContext } = telemetry;
  if (metadata !== undefined) {
    if (typeof metadata !== 'string')
      refuse('telemetry.metadata', metadata, 'must be a text', 'Give the context as text.');
    encoded.tm = metadata;
  }
  if (omitContext !== undefined) encoded.omc = checkBoolean('telemetry.omitContext', omitContext);
}
