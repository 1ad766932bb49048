/** Every code a {@link CarillonError} may carry. Codes are stable; messages are not. */
export const ERROR_CODES = [
  'INVALID_OPTION',
  'INVALID_CRON',
  'INVALID_TIME_ZONE',
  'INVALID_DURATION',
  'INVALID_ID',
  'QUOTA',
  'OFFLINE_FULL',
  'NOT_DURABLE',
  'ID_IN_USE',
  'FENCED',
  'WRONG_LAYOUT',
  'QUEUE_BROKEN',
  'NOT_FOUND',
  'CONFLICT',
  'CYCLE',
  'UNKNOWN_PARENT',
  'UNSUPPORTED',
  'STALE_RUN',
  'EFFECT_FAILED',
  'UNKNOWN_JOB_NAME',
  'RUN_TIMEOUT',
  'RUN_STOPPED',
  'OUT_OF_MEMORY',
  'REDIS_UNAVAILABLE',
  'ETCD_UNAVAILABLE',
  'UNSAFE_REDIS',
  'INCOMPATIBLE_BULLMQ',
  'BAD_RECORD',
  'BAD_SCRIPT',
  'TIMEOUT',
  'CLOSED',
] as const;

export type ErrorCode = (typeof ERROR_CODES)[number];

export interface ErrorDetails {
  /** The option, field or argument that was refused, as a path: `tz`, `crons[1]`. */
  field?: string | undefined;
  /** What was given. Kept as a short text, so that an error never holds a payload. */
  given?: unknown;
  /** What to do instead, as a sentence. */
  todo?: string | undefined;
  /** Whether the same call may succeed later, unchanged. Defaults to false. */
  retryable?: boolean | undefined;
  cause?: unknown;
  /** Of a bulk that failed: what became of each of its jobs, in their order. */
  items?: readonly BulkItem[] | undefined;
}

/** What became of one job of a bulk. With neither it was not sent. */
export interface BulkItem {
  jobId: string;
  answer?: 'created' | 'existing' | 'replaced' | 'fired';
  /** Its own refusal, or that of the call it went with: after REDIS_UNAVAILABLE it may have been stored. */
  error?: CarillonError;
}

const NAME = 'CarillonError';
const LONGEST_GIVEN = 120;

/**
 * The one error of Carillon. Judge it by `code` (see {@link isCarillonError}), never by `instanceof`: the ESM
 * and the CommonJS build may both be loaded in one process, each with a class of its own.
 */
export class CarillonError extends Error {
  override readonly name = NAME;
  readonly code: ErrorCode;
  declare readonly field?: string;
  declare readonly given?: string;
  declare readonly todo?: string;
  declare readonly items?: readonly BulkItem[];
  readonly retryable: boolean;

  constructor(code: ErrorCode, message: string, details: ErrorDetails = {}) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.code = code;
    this.retryable = details.retryable ?? false;
    if (details.field !== undefined) this.field = details.field;
    if ('given' in details) this.given = shortText(details.given);
    if (details.todo !== undefined) this.todo = details.todo;
    if (details.items !== undefined) this.items = details.items;
  }
}

/** Whether `error` is a {@link CarillonError} of this or any other copy of the package, optionally with `code`. */
export function isCarillonError(error: unknown, code?: ErrorCode): error is CarillonError {
  if (typeof error !== 'object' || error === null) return false;
  const { name, code: found } = error as { name?: unknown; code?: unknown };
  return name === NAME && typeof found === 'string' && (code === undefined || found === code);
}

/** A value as a text of at most 120 characters that shows its type: `"5"` for a string, `5` for a number. */
export function shortText(value: unknown): string {
  const text = plainText(value);
  return text.length > LONGEST_GIVEN ? `${text.slice(0, LONGEST_GIVEN - 1)}…` : text;
}

function plainText(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return JSON.stringify(value);
    case 'bigint':
      return `${value}n`;
    case 'number':
      return Object.is(value, -0) ? '-0' : String(value);
    case 'function':
      return 'a function';
    case 'object':
      if (value instanceof Date)
        return Number.isNaN(value.getTime()) ? 'an invalid Date' : value.toISOString();
      try {
        return JSON.stringify(value) ?? 'an object';
      } catch {
        return 'an object';
      }
    default:
      return String(value);
  }
}
