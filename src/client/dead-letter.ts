import { checkBoolean, checkObject, checkOneOf, refuse } from '../config/check.js';
import { rejectUnknown } from '../config/unknown-options.js';
import { type DeadReason, deadReasonOf } from '../domain/dead-reason.js';
import { jobIdOfRun } from '../domain/ids.js';
import { type Instant, parseInstant } from '../domain/instant.js';
import type { Job } from '../queue/job.js';
import type { EarlierDeath } from '../redis/dead-scripts.js';

/** A run that used up its attempts, or may have no more of them. */
export interface DeadLetter {
  /** Of the run in BullMQ. */
  id: string;
  name: string;
  /** What fired: a one-time job, or a schedule's tick. */
  source: { kind: 'job' | 'schedule'; id: string; scheduledFor: number };
  reason: DeadReason;
  /** What the last attempt failed with. */
  error: string;
  attempts: number;
  /** ms since 1970. */
  diedAt: number;
  /** What another run of it does, by what its handlers say: see `effects` of a handler. */
  repeats: string;
}

/** A dead letter with all that is known of it. */
export interface DeadLetterDetails extends DeadLetter {
  data: unknown;
  opts: unknown;
  /** Stack traces, one an attempt, the last one first; as many as the job's `stackTraceLimit` kept. */
  errors: string[];
  logs: string[];
  /** The start of its last attempt, ms since 1970. */
  startedAt: number | undefined;
  /** Attempts that were started, those included that a stall or a hand-back ended. */
  starts: number;
  /** How often its worker was lost. */
  stalls: number;
  /** The last worker of the SDK that had it. */
  worker: { id: string; host: string; pid: number; since: string } | undefined;
  /** Fencing token of its last attempt under such a worker. */
  token: string | undefined;
  checkpoint: unknown;
  /** How often it was put back. */
  requeued: number;
  /** The deaths before it was put back: the last five, oldest first, with the first 300 bytes of the error. */
  earlier: (EarlierDeath & { reason: DeadReason })[];
}

/** Which dead letters are meant; all conditions must hold. To `list`, an empty one means all. */
export interface DeadFilter {
  name?: string;
  /** With this text in the error or in its stack traces, which tell its causes; in any case. */
  text?: string;
  reason?: DeadReason;
  /** Died at this time or later, and before that. */
  from?: Instant;
  to?: Instant;
  /** Only runs of this job or schedule. */
  source?: string;
  /** Every one; for changes, which refuse a filter that names nothing. Without other conditions. */
  all?: boolean;
}

/** What the run itself tells. */
export type Letter = Omit<DeadLetter, 'repeats'>;

const REASONS: readonly DeadReason[] = ['attempts', 'unrecoverable', 'stalled', 'timeout', 'unhandled'];

export function letterOf(job: Job): Letter {
  const id = job.id ?? '';
  const source = jobIdOfRun(id);
  const error = job.failedReason ?? '';
  const { attemptsMade } = job;
  return {
    id,
    name: job.name,
    source: { kind: source === id ? 'job' : 'schedule', id: source, scheduledFor: job.scheduledFor },
    reason: deadReasonOf({ failedReason: error, attemptsMade, attempts: job.opts.attempts ?? 0 }),
    error,
    attempts: attemptsMade,
    diedAt: job.finishedOn ?? 0,
  };
}

/** @throws CarillonError INVALID_OPTION */
export function checkDeadFilter(filter: DeadFilter): DeadFilter {
  const given = checkObject('filter', filter);
  rejectUnknown(given, ['name', 'text', 'reason', 'from', 'to', 'source', 'all'], 'filter.');
  for (const field of ['name', 'text', 'source'] as const) {
    if (given[field] !== undefined && (typeof given[field] !== 'string' || given[field] === '')) {
      refuse(
        `filter.${field}`,
        given[field],
        'must be a text of at least one character',
        'Give a text, or leave it out.',
      );
    }
  }
  if (given.all !== undefined) checkBoolean('filter.all', given.all);
  if (given.reason !== undefined) checkOneOf('filter.reason', given.reason, REASONS);
  for (const field of ['from', 'to'] as const) {
    if (filter[field] !== undefined) parseInstant(filter[field], `filter.${field}`);
  }
  return filter;
}

/** Says of each letter whether the filter, which is checked already, means it. */
export function matcherOf(filter: DeadFilter): (letter: Letter, stacks: readonly string[]) => boolean {
  const { name, text, source, reason } = filter;
  const from = filter.from === undefined ? 0 : parseInstant(filter.from, 'filter.from');
  const to = filter.to === undefined ? Number.POSITIVE_INFINITY : parseInstant(filter.to, 'filter.to');
  const wanted = text?.toLowerCase();
  return (letter, stacks) =>
    (name === undefined || letter.name === name) &&
    (wanted === undefined || [letter.error, ...stacks].some((one) => one.toLowerCase().includes(wanted))) &&
    (reason === undefined || letter.reason === reason) &&
    (source === undefined || letter.source.id === source) &&
    letter.diedAt >= from &&
    letter.diedAt < to;
}
