import { CarillonError } from './errors.js';

/** The name of BullMQ's keys beside the jobs of a queue: an id equal to one of them would overwrite it. */
const QUEUE_KEYS = new Set([
  '', 'active', 'wait', 'waiting', 'waiting-children', 'paused', 'id', 'delayed', 'prioritized', 'stalled-check', 'completed', 'failed',
  'stalled', 'repeat', 'limiter', 'meta', 'events', 'pc', 'marker', 'de', 'dn', 'priority', 'metrics', 'unblocked',
]); // biome-ignore format: one list
/** First parts of BullMQ's composed keys (`de:<id>`, `repeat:<id>`, `metrics:completed`). */
const KEY_FAMILIES = new Set(['de', 'dn', 'repeat', 'metrics']);
/** Last parts of the keys that BullMQ hangs on a job (`<id>:lock`, `<id>:logs`). */
const JOB_SUFFIXES = new Set(['lock', 'logs', 'dependencies', 'processed', 'failed', 'unsuccessful', 'data']);
/** Our run ids: `<schedule>@<ms>`, with `+<request>` for a trigger. */
const RUN_ID = /@\d+(\+.*)?$/s;
/** Ids are short names; a record stores their length in two bytes. */
export const LONGEST_ID = 1024;
export const LONGEST_NAME = 255;

/** (queue, job id) as one text. Queue names hold no colon, so that two identities never meet. */
export function identityOf(queue: string, jobId: string): string {
  return `${queue}:${jobId}`;
}

/** The two halves of an identity. @throws CarillonError BAD_RECORD when there is no queue in it. */
export function splitIdentity(identity: string): { queue: string; jobId: string } {
  const colon = identity.indexOf(':');
  if (colon < 1)
    throw new CarillonError('BAD_RECORD', `${JSON.stringify(identity)} is no identity`, { given: identity });
  return { queue: identity.slice(0, colon), jobId: identity.slice(colon + 1) };
}

/** The id that a tick of a schedule has in BullMQ. `scheduledFor` in ms. */
export function tickRunId(scheduleId: string, scheduledFor: number): string {
  return `${scheduleId}@${scheduledFor}`;
}

/** The id of the job or schedule that a run in BullMQ belongs to. */
export function jobIdOfRun(runId: string): string {
  return runId.replace(RUN_ID, '');
}

/**
 * What names one firing for ever: `<namespace>:<queue>:<jobId>@<scheduledFor>`, and the suffix of a triggered run. A
 * repeat of the run has the same.
 * @param scheduledFor ms since 1970
 */
export function idempotencyKeyOf(
  namespace: string,
  queue: string,
  runId: string,
  scheduledFor: number,
): string {
  const jobId = jobIdOfRun(runId);
  const suffix = runId.slice(jobId.length).replace(/^@\d+/, '');
  return `${namespace}:${queue}:${jobId}@${scheduledFor}${suffix}`;
}

function refuse(field: string, given: unknown, why: string, todo: string): never {
  throw new CarillonError('INVALID_ID', `${field} ${why}`, { field, given, todo });
}

function checkText(field: string, value: unknown, longest: number): asserts value is string {
  if (typeof value !== 'string') refuse(field, value, 'must be a string', 'Give a string.');
  if (value === '')
    refuse(field, value, 'is empty', 'Give a name of at least one character, or leave it out.');
  if (!value.isWellFormed()) {
    refuse(field, value, 'holds half of a surrogate pair, which UTF-8 cannot keep', 'Give well-formed text.');
  }
  if (Buffer.byteLength(value) > longest) {
    refuse(field, value, `is longer than ${longest} bytes of UTF-8`, 'Give a shorter one.');
  }
}

/**
 * A queue's name: BullMQ's rule (no colon), and text that Redis gives back as it was.
 * @throws CarillonError INVALID_ID
 */
export function checkQueueName(value: unknown, field = 'queue'): string {
  checkText(field, value, LONGEST_NAME);
  if (value.includes(':'))
    refuse(field, value, 'holds a colon, which parts BullMQ’s keys', 'Use another sign, such as a dash.');
  return value;
}

/** A tenant's name. @throws CarillonError INVALID_ID */
export function checkGroup(value: unknown, field = 'group'): string {
  checkText(field, value, LONGEST_NAME);
  return value;
}

/** A job's name: what the worker's handler is chosen by. @throws CarillonError INVALID_ID */
export function checkJobName(value: unknown, field = 'name'): string {
  if (typeof value !== 'string') refuse(field, value, 'must be a string', 'Give a string.');
  if (value === '') return value;
  checkText(field, value, LONGEST_NAME);
  return value;
}

/**
 * The id of a one-time job. Refuses at submit what BullMQ would refuse, or silently break on, at the hand-over.
 * @throws CarillonError INVALID_ID
 */
export function checkJobId(value: unknown, field = 'jobId'): string {
  checkText(field, value, LONGEST_ID);
  if (`${Number.parseInt(value, 10)}` === value) {
    refuse(
      field,
      value,
      'is an integer, which BullMQ keeps for its own ids',
      'Put a word before it: "order-5".',
    );
  }
  if (value === '0' || value.startsWith('0:')) {
    refuse(field, value, 'is 0 or starts with 0:, which BullMQ’s markers use', 'Put a word before it.');
  }
  const parts = value.split(':');
  if (parts.length !== 1 && parts.length !== 3) {
    refuse(field, value, 'holds a colon; BullMQ takes none or two', 'Use another sign, such as a dash.');
  }
  checkKeyNames(value, parts, field);
  if (RUN_ID.test(value)) {
    refuse(
      field,
      value,
      'ends like the id of a schedule’s run (@ and digits)',
      'Put something behind the digits.',
    );
  }
  return value;
}

/** The id of a schedule: integers and colons are allowed, as in BullMQ. @throws CarillonError INVALID_ID */
export function checkScheduleId(value: unknown, field = 'scheduleId'): string {
  checkText(field, value, LONGEST_ID - 32);
  const parts = value.split(':');
  if (KEY_FAMILIES.has(parts[0] as string) && parts.length > 1) {
    refuse(field, value, `starts with ${parts[0]}:, as keys of BullMQ do`, 'Put another word first.');
  }
  if (RUN_ID.test(value)) {
    refuse(
      field,
      value,
      'ends like the id of a schedule’s run (@ and digits)',
      'Put something behind the digits.',
    );
  }
  return value;
}

function checkKeyNames(value: string, parts: string[], field: string): void {
  if (QUEUE_KEYS.has(value)) {
    refuse(
      field,
      value,
      'is the name of a key that BullMQ keeps beside its jobs; such a job breaks the queue',
      'Use another id.',
    );
  }
  if (parts.length === 1) return;
  if (KEY_FAMILIES.has(parts[0] as string)) {
    refuse(field, value, `starts with ${parts[0]}:, as keys of BullMQ do`, 'Put another word first.');
  }
  const last = parts.at(-1) as string;
  if (JOB_SUFFIXES.has(last)) {
    refuse(
      field,
      value,
      `ends in :${last}, as a key that BullMQ hangs on a job does`,
      'Use another last word.',
    );
  }
}
