import { checkInteger, checkLogger, checkObject, refuse } from '../config/check.js';
import { type DurabilityOptions, durabilityOf } from '../config/durability-options.js';
import { checkName, checkPrefix, DUPLICATE_WINDOW } from '../config/scheduler-options.js';
import { rejectUnknown } from '../config/unknown-options.js';
import { type Duration, parseDuration } from '../domain/durations.js';
import type { RedisConnectionOptions } from '../redis/connection.js';
import type { Durability } from '../redis/durability.js';
import { defaultNamespace } from '../redis/layout.js';
import type { Logger } from '../support/logger.js';
import { checkTable, OUTBOX_TABLE } from './table.js';

export interface OutboxRelayOptions {
  /** Where PostgreSQL is: `postgres://user:password@host:5432/database`. */
  database: string;
  /** Where Redis is. Defaults to redis://127.0.0.1:6379. */
  redis?: RedisConnectionOptions;
  prefix?: string;
  namespace?: string;
  /** Defaults to `carillon_outbox`; may be `schema.table`. */
  table?: string;
  /** Rows a transaction, 1 to 1,000. Defaults to 200. */
  batch?: number;
  /** The longest rest between two looks, when no notification comes. Defaults to `'1s'`. */
  pollInterval?: Duration;
  /** How long the id of a job that has run answers `fired`. Defaults to `'1h'`, which is the most. */
  duplicateWindow?: Duration;
  /**
   * How many replicas of Redis must have a job before its row is deleted; until then the row stays and is handed over
   * again. The time-out is at most `'5s'`. Defaults to none.
   */
  durability?: DurabilityOptions;
  /** Defaults to pino on standard error, level `CARILLON_LOG_LEVEL`. */
  logger?: Logger;
}

export interface ResolvedRelayOptions {
  database: string;
  redis: RedisConnectionOptions;
  prefix: string;
  namespace: string;
  table: string;
  batch: number;
  /** ms. */
  pollInterval: number;
  /** ms. */
  duplicateWindow: number;
  durability: Durability | undefined;
}

const BATCH = 200;
const MOST = 1000;
const POLL = 1000;
const LONGEST_POLL = 60_000;
/** Two rounds of it go by while a transaction is open, which PostgreSQL ends after 20 s of rest. ms. */
const LONGEST_WAIT = 5000;
const KEYS = [
  'database', 'redis', 'prefix', 'namespace', 'table', 'batch', 'pollInterval', 'duplicateWindow', 'durability', 'logger',
]; // biome-ignore format: one list

/** @throws CarillonError INVALID_OPTION, INVALID_DURATION */
export function resolveRelayOptions(options: unknown): ResolvedRelayOptions {
  const given = checkObject('options', options);
  rejectUnknown(given, KEYS);
  if (given.logger !== undefined) checkLogger('logger', given.logger);
  const prefix = checkPrefix(given.prefix ?? 'bull');
  return {
    database: checkDatabase(given.database),
    redis: (given.redis ?? 'redis://127.0.0.1:6379') as RedisConnectionOptions,
    prefix,
    namespace: checkName(given.namespace ?? defaultNamespace(prefix), 'namespace'),
    table: checkTable(given.table ?? OUTBOX_TABLE),
    batch: checkInteger('batch', given.batch ?? BATCH, 1, MOST),
    pollInterval: parseDuration((given.pollInterval ?? POLL) as Duration, {
      field: 'pollInterval',
      min: 10,
      max: LONGEST_POLL,
    }),
    duplicateWindow: parseDuration((given.duplicateWindow ?? DUPLICATE_WINDOW) as Duration, {
      field: 'duplicateWindow',
      max: DUPLICATE_WINDOW,
    }),
    durability: durabilityOf(given.durability, LONGEST_WAIT),
  };
}

/** @throws CarillonError INVALID_OPTION, without the password */
export function checkDatabase(value: unknown): string {
  if (typeof value === 'string' && /^postgres(ql)?:\/\//.test(value)) return value;
  const shown = typeof value === 'string' ? value.replace(/\/\/[^@/]*@/, '//…@') : value;
  return refuse(
    'database',
    shown,
    'is no URL of PostgreSQL',
    'Give postgres://user:password@host:5432/database.',
  );
}
