import { checkBoolean, checkInteger, checkObject, checkOneOf, refuse } from '../config/check.js';
import type { DurabilityOptions } from '../config/durability-options.js';
import { rejectUnknown } from '../config/unknown-options.js';
import { checkTimeout } from '../config/worker-options.js';
import type { Backoff } from '../domain/backoff.js';
import { parseDuration } from '../domain/durations.js';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import { checkGroup } from '../domain/ids.js';
import { type Instant, LAST_INSTANT, parseInstant } from '../domain/instant.js';
import { type JobsOptions, PRIORITY_LIMIT } from '../queue/bullmq.js';
import {
  ANY_COUNT,
  checkBackoff,
  checkDeduplication,
  checkKeepJobs,
  encodeTelemetry,
} from './job-option-values.js';
import { PARENT_KEYS, type ParentOptions, parentsOf } from './job-parents.js';
import { checkRequestId } from './request-ids.js';
import { insteadOf } from './unsupported-options.js';

/** BullMQ's options of a job, and ours. */
export interface JobOptions extends Omit<JobsOptions, 'backoff'>, ParentOptions {
  /** When the job is due: a Date, ms since 1970, or an ISO text with its offset. Instead of `delay`. */
  at?: Instant;
  /**
   * A job that could not be dispatched until then does not run any more: it ends as skipped, `expired`, in the history.
   * After its time. Defaults to none: it runs, however late.
   */
  deadline?: Instant;
  /**
   * How long a failed run rests before its next attempt: ms, or BullMQ's options with a cap, `maxDelay` in ms (a day where
   * none is given), which a worker of Carillon keeps. Without `attempts` above 1 there is no next one.
   */
  backoff?: number | Backoff;
  /** The tenant: a queue's gate shares its rate fairly among tenants. A text of at most 255 bytes. */
  group?: string;
  /** How long one attempt may take, in a worker of Carillon. Defaults to its handler's, then to the worker's. */
  timeout?: number | string;
  /** What to do when a job with this `jobId` still waits for its time. Defaults to `'keep'`. */
  ifExists?: 'keep' | 'replace';
  /** 0, or a duration up to the queue's own: how long an ended `jobId` answers `fired`. Defaults to the queue's. */
  duplicateWindow?: number | string;
  /** Names the call: sent again with the same id it has its effect once. Defaults to a new random one a call. */
  requestId?: string;
  /** As the queue's, for this call. */
  durability?: DurabilityOptions;
}

/** What the options say, apart from id, name and payload. */
export interface ResolvedOptions {
  jobId: unknown;
  /** ms since 1970, or ms from now when `relative`. */
  time: number;
  relative: boolean;
  replace: boolean;
  /** ms; undefined for the queue's. */
  window: number | undefined;
  requestId: string | undefined;
  /** BullMQ's encoded options as JSON text; empty for BullMQ's default, `{"attempts":0}`. */
  text: string;
  priority: number;
  lifo: boolean;
  timestamp: number | undefined;
  dedup: boolean;
  /** ms since 1970. */
  deadline: number | undefined;
  /** Bytes; undefined for none. */
  sizeLimit: number | undefined;
}

const OF_ADDING = [
  'at',
  'delay',
  'duplicateWindow',
  'ifExists',
  'jobId',
  'requestId',
  ...PARENT_KEYS,
] as const;
/** What is given once, with one job. */
export const OF_ONE_JOB = [...OF_ADDING, 'deduplication', 'timestamp'] as const;
/** Options of ours, which BullMQ never sees. The mark that a run carries in BullMQ is dropped when a job is added again. */
const OURS: ReadonlySet<string> = new Set([...OF_ADDING, 'carillon', 'durability']);
export const KNOWN_OPTIONS = [
  'at', 'delay', 'durability', 'jobId', 'ifExists', 'duplicateWindow', 'requestId', 'attempts', 'backoff', 'deadline', 'deduplication', 'group', 'keepLogs', 'lifo',
  'priority', 'removeOnComplete', 'removeOnFail', 'sizeLimit', 'stackTraceLimit', 'telemetry', 'timeout', 'timestamp', ...PARENT_KEYS,
]; // biome-ignore format: one list

/**
 * Checks a job's options and encodes what BullMQ is to see of them, as BullMQ itself would store it; not among that
 * are `delay`, `jobId` and our own options.
 * @param opts already merged with the queue's defaults.
 * @throws CarillonError INVALID_OPTION, INVALID_DURATION, UNSUPPORTED
 */
export function resolveOptions(opts: JobOptions): ResolvedOptions {
  const resolved: ResolvedOptions = {
    jobId: opts.jobId,
    time: 0,
    relative: true,
    replace: false,
    window: undefined,
    requestId: undefined,
    text: '',
    priority: 0,
    lifo: false,
    timestamp: undefined,
    dedup: false,
    deadline: undefined,
    sizeLimit: undefined,
  };
  let isPlain = true;
  for (const key in opts) {
    if (OURS.has(key)) continue;
    if (opts[key as keyof JobOptions] !== undefined) isPlain = false;
  }
  if (!isPlain) encodeRest(opts, resolved);
  resolveTime(opts, resolved);
  checkDeadline(opts, resolved);
  if (opts.ifExists !== undefined) {
    resolved.replace = checkOneOf('ifExists', opts.ifExists, ['keep', 'replace']) === 'replace';
  }
  if (opts.duplicateWindow !== undefined) {
    resolved.window = parseDuration(opts.duplicateWindow, { field: 'duplicateWindow' });
  }
  if (opts.requestId !== undefined) resolved.requestId = checkRequestId(opts.requestId);
  return resolved;
}

/**
 * Checks the options that a queue gives to each job that does not say otherwise.
 * @throws CarillonError as {@link resolveOptions}, with `defaultJobOptions.` before the field.
 */
export function checkDefaultOptions(defaults: unknown): void {
  const given = checkObject('defaultJobOptions', defaults);
  for (const key of ['jobId', 'requestId', 'at', 'deadline', 'after', 'durability']) {
    if (given[key] !== undefined) {
      refuse(`defaultJobOptions.${key}`, given[key], 'belongs to one job', 'Give it to that job.');
    }
  }
  try {
    resolveOptions(given);
    parentsOf(given, '', undefined);
  } catch (error) {
    if (!isCarillonError(error)) throw error;
    const { code, message, todo, field = '' } = error;
    const value = given[field.split('.')[0] ?? ''];
    throw new CarillonError(code, `defaultJobOptions.${message}`, {
      field: `defaultJobOptions.${field}`,
      given: value,
      todo,
    });
  }
}

function resolveTime(opts: JobOptions, resolved: ResolvedOptions): void {
  if (opts.at !== undefined) {
    if (opts.delay !== undefined) refuse('at', opts.at, 'and delay exclude each other', 'Give one of them.');
    resolved.time = parseInstant(opts.at, 'at');
    resolved.relative = false;
    return;
  }
  const delay = opts.delay;
  if (delay === undefined) return;
  resolved.time = checkInteger('delay', delay, 0, LAST_INSTANT);
  if (resolved.timestamp !== undefined && delay > 0) {
    // BullMQ counts a delay from the job's timestamp.
    resolved.time = checkInteger('delay', resolved.timestamp + delay, 0, LAST_INSTANT);
    resolved.relative = false;
  }
}

/** A time that counts from now is judged by Redis' clock, as the job is stored. */
function checkDeadline(opts: JobOptions, { deadline, time, relative }: ResolvedOptions): void {
  if (deadline === undefined || relative || time < deadline) return;
  refuse('deadline', opts.deadline, 'must lie after the time that the job is due', 'Give a later one.');
}

function encodeRest(opts: JobOptions, resolved: ResolvedOptions): void {
  const encoded: Record<string, unknown> = { attempts: 0 };
  for (const [key, value] of Object.entries(opts)) {
    if (value === undefined || OURS.has(key)) continue;
    encodeOne(key, value, encoded, resolved);
  }
  const text = JSON.stringify(encoded);
  resolved.text = text === '{"attempts":0}' ? '' : text;
}

function encodeOne(
  key: string,
  value: unknown,
  encoded: Record<string, unknown>,
  resolved: ResolvedOptions,
): void {
  switch (key) {
    case 'attempts':
      encoded.attempts = checkInteger(key, value, 0, ANY_COUNT);
      return;
    case 'backoff':
      encoded.backoff = checkBackoff(value);
      return;
    case 'lifo':
      resolved.lifo = checkBoolean(key, value);
      encoded.lifo = value;
      return;
    case 'priority':
      resolved.priority = checkInteger(key, value, 0, PRIORITY_LIMIT);
      encoded.priority = resolved.priority;
      return;
    case 'timestamp':
      resolved.timestamp = checkInteger(key, value, 1, LAST_INSTANT);
      encoded.timestamp = resolved.timestamp;
      return;
    case 'sizeLimit':
      encoded.sizeLimit = checkInteger(key, value, 0, ANY_COUNT);
      // BullMQ's 0 is no limit.
      resolved.sizeLimit = (encoded.sizeLimit as number) || undefined;
      return;
    case 'keepLogs':
      encoded.kl = checkInteger(key, value, 0, ANY_COUNT);
      return;
    case 'stackTraceLimit':
      encoded.stackTraceLimit = checkInteger(key, value, 0, ANY_COUNT);
      return;
    case 'removeOnComplete':
    case 'removeOnFail':
      encoded[key] = checkKeepJobs(key, value);
      return;
    case 'deduplication':
      encoded.de = checkDeduplication(value);
      resolved.dedup = true;
      return;
    case 'deadline':
      resolved.deadline = parseInstant(value as Instant, 'deadline');
      encoded.deadline = resolved.deadline;
      return;
    case 'group':
      encoded.group = checkGroup(value);
      return;
    case 'timeout':
      encoded.timeout = checkTimeout(key, value);
      return;
    case 'telemetry':
      encodeTelemetry(value, encoded);
      return;
    default:
      refuseOption(key, value);
  }
}

function refuseOption(key: string, value: unknown): void {
  const instead = insteadOf(key);
  if (instead === undefined) rejectUnknown({ [key]: value }, KNOWN_OPTIONS);
  // What only says "no" asks for nothing.
  else if (value !== false) {
    refuse(key, value, 'cannot be given to a job of the timers', instead, 'UNSUPPORTED');
  }
}
