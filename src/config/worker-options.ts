import { type Duration, parseDuration } from '../domain/durations.js';
import { EFFECTS, type Effects } from '../domain/effects.js';
import { checkQueueName } from '../domain/ids.js';
import type { Logger } from '../support/logger.js';
import { checkInteger, checkLogger, checkObject, checkOneOf, refuse } from './check.js';
import { checkName, checkPrefix } from './scheduler-options.js';
import { rejectUnknown } from './unknown-options.js';

/** What Carillon reads of a worker's options, besides BullMQ's own. */
export interface RunOptions {
  /** The namespace of the timers. Defaults to `carillon` for the prefix `bull`, else to `carillon-<prefix>`. */
  namespace?: string;
  /** How long a run may go on after `close()` aborted its signal, before it is handed back. Defaults to `'20s'`. */
  shutdownGrace?: Duration;
  /** How long an attempt may take, where neither the job nor its handler says. Defaults to no limit. */
  timeout?: Duration;
  /** What repeats do, of a processor function or file; handlers say it each. Defaults to "may run twice". */
  effects?: Effects;
  /** Defaults to pino on standard error, level `CARILLON_LOG_LEVEL`. */
  logger?: Logger;
}

export interface ResolvedWorkerOptions {
  readonly prefix: string;
  readonly namespace: string | undefined;
  /** All ms. */
  readonly lockDuration: number;
  readonly lockRenewTime: number;
  readonly stalledInterval: number;
  readonly shutdownGrace: number;
  /** ms; 0 for none. */
  readonly timeout: number;
  readonly effects: Effects | undefined;
}

const LOCK = 30_000;
const RENEW = 10_000;
const STALLED = 5000;
/** A lock must survive two missed renewals. */
const RENEWALS = 3;
/** BullMQ's worker waits in a blocking call; deps measured that a shorter time-out picks up no job at all. */
const SHORTEST_COMMAND_TIMEOUT = 15_000;
const LONGEST = 24 * 3_600_000;
/** What BullMQ's worker refuses itself, but after it has opened its connections: the least of each. */
const LEAST = { concurrency: 1, maxStalledCount: 0, maxStartedAttempts: 0, drainDelay: 0.001 };

const RUN_KEYS = ['namespace', 'shutdownGrace', 'timeout', 'effects', 'logger'];
const BULLMQ_KEYS = [
  'connection', 'blockingConnection', 'skipVersionCheck', 'telemetry', 'skipWaitingForReady', 'prefix', 'name', 'skipStalledCheck',
  'skipLockRenewal', 'autorun', 'concurrency', 'limiter', 'maximumRateLimitDelay', 'metrics', 'maxStartedAttempts', 'maxStalledCount',
  'stalledInterval', 'removeOnComplete', 'removeOnFail', 'settings', 'lockDuration', 'lockRenewTime', 'runRetryDelay', 'drainDelay',
  'useWorkerThreads', 'workerForkOptions', 'workerThreadsOptions', 'maximumBlockTimeout', 'cleanUp',
]; // biome-ignore format: one list
/** @nestjs/bullmq hands its own options on to the worker's class. */
const NEST_KEYS = ['sharedConnection', 'configKey'];

/**
 * Checks what a `Worker` was given, before anything is opened.
 * @throws CarillonError INVALID_ID, INVALID_OPTION, INVALID_DURATION
 */
export function resolveWorkerOptions(name: unknown, options: unknown): ResolvedWorkerOptions {
  checkQueueName(name, 'name');
  const given = checkObject('options', options);
  rejectUnknown(given, [...RUN_KEYS, ...BULLMQ_KEYS, ...NEST_KEYS]);
  const ms = (field: string, initial: number, min: number) =>
    given[field] === undefined ? initial : checkInteger(field, given[field], min, LONGEST);
  const lockDuration = ms('lockDuration', LOCK, 300);
  const lockRenewTime = ms('lockRenewTime', Math.min(RENEW, Math.floor(lockDuration / RENEWALS)), 50);
  if (lockDuration < RENEWALS * lockRenewTime) {
    refuse(
      'lockDuration',
      lockDuration,
      `is shorter than three renewals of ${lockRenewTime} ms: a single missed one could lose every run`,
      `Give at least ${RENEWALS * lockRenewTime}, or a shorter lockRenewTime.`,
    );
  }
  if (given.skipLockRenewal === true) {
    refuse(
      'skipLockRenewal',
      true,
      'would let every longer run be started twice',
      'Leave it out.',
      'UNSUPPORTED',
    );
  }
  for (const [field, least] of Object.entries(LEAST)) {
    const value = given[field];
    if (value === undefined || (typeof value === 'number' && value >= least && Number.isFinite(value)))
      continue;
    refuse(field, value, `must be a number of at least ${least}`, `Give ${Math.ceil(least)} or more.`);
  }
  if (given.logger !== undefined) checkLogger('logger', given.logger);
  checkCommandTimeout(given.connection);
  return Object.freeze({
    prefix: given.prefix === undefined ? 'bull' : checkPrefix(given.prefix),
    namespace: given.namespace === undefined ? undefined : checkName(given.namespace, 'namespace'),
    lockDuration,
    lockRenewTime,
    stalledInterval: ms('stalledInterval', STALLED, 50),
    shutdownGrace: parseDuration((given.shutdownGrace ?? '20s') as Duration, {
      field: 'shutdownGrace',
      max: LONGEST,
    }),
    timeout: given.timeout === undefined ? 0 : checkTimeout('timeout', given.timeout),
    effects: given.effects === undefined ? undefined : checkOneOf('effects', given.effects, EFFECTS),
  });
}

/** ms of an attempt, at least 1. @throws CarillonError INVALID_DURATION */
export function checkTimeout(field: string, value: unknown): number {
  return parseDuration(value as Duration, { field, min: 1, max: 7 * LONGEST });
}

function checkCommandTimeout(connection: unknown): void {
  const timeout = (connection as { commandTimeout?: unknown } | null | undefined)?.commandTimeout;
  if (typeof timeout !== 'number' || timeout >= SHORTEST_COMMAND_TIMEOUT) return;
  refuse(
    'connection.commandTimeout',
    timeout,
    'is shorter than BullMQ’s worker waits for a job: it would pick up none',
    'Leave it out, or give at least 15000.',
  );
}
