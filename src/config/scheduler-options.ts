import { type Duration, parseDuration } from '../domain/durations.js';
import { CarillonError } from '../domain/errors.js';
import { HOST_TIME_ZONES, type TimeZoneData } from '../domain/time-zone-offsets.js';
import type { RedisConnectionOptions } from '../redis/connection.js';
import { defaultNamespace } from '../redis/layout.js';
import type { ScriptChoices } from '../redis/script-source.js';
import type { Logger } from '../support/logger.js';
import { rejectUnknown } from './unknown-options.js';

/** Options of a {@link Scheduler}. */
export interface SchedulerOptions {
  /** Where Redis is: a URL, ioredis options or an ioredis client. Defaults to `redis://127.0.0.1:6379`. */
  redis?: RedisConnectionOptions;
  /** BullMQ's key prefix of the queues to feed. Defaults to `bull`. */
  prefix?: string;
  /** Where our keys stand. Defaults to `carillon` for the prefix `bull`, else `carillon-<prefix>`. */
  namespace?: string;
  /** This process among others; shown to whoever asks who leads. Defaults to host, pid and a random part. */
  instanceId?: string;
  /** A heartbeat older than this is taken over by a stand-by. Defaults to 10 s, at least 5 s. */
  ttl?: Duration;
  /** Takes the leadership at the start, whoever holds it. Defaults to false. */
  takeOver?: boolean;
  /** The longest sleep between two looks at the timers. Defaults to 1 s; 50 ms to 10 s, at most a quarter of the ttl. */
  pollInterval?: Duration;
  /** How long an ended job id answers `fired` to a new submit. Defaults to 1 h, as the queues' option must. */
  duplicateWindow?: Duration;
  /** Bytes of records that are still dispatched when Redis is at its maxmemory. Defaults to 8 MiB. */
  memoryHeadroom?: number;
  /** Serves a Redis without an append-only file, or one that evicts. Defaults to false: it refuses. */
  allowVolatile?: boolean;
  /** Defaults to pino on standard error, level `CARILLON_LOG_LEVEL`. */
  logger?: Logger;
  /** For test kits only: which clock and fence the scripts are loaded with. */
  scripts?: ScriptChoices;
  /** For test kits only: the tz data to compute with. Defaults to this Node's. */
  timeZones?: TimeZoneData;
}

export interface ResolvedSchedulerOptions {
  redis: RedisConnectionOptions;
  prefix: string;
  namespace: string;
  instanceId: string | undefined;
  ttl: number;
  takeOver: boolean;
  pollInterval: number;
  duplicateWindow: number;
  memoryHeadroom: number;
  allowVolatile: boolean;
  scripts: ScriptChoices;
  timeZones: TimeZoneData;
}

/** Ended ids are remembered this long by default, and at the most; ms. */
export const DUPLICATE_WINDOW = 3_600_000;

const KNOWN = [
  'redis', 'prefix', 'namespace', 'instanceId', 'ttl', 'takeOver', 'pollInterval', 'duplicateWindow', 'memoryHeadroom', 'allowVolatile',
  'logger', 'scripts', 'timeZones',
]; // biome-ignore format: one list

/** Defaults, then checks, then frozen. @throws CarillonError INVALID_OPTION and what durations throw. */
export function resolveSchedulerOptions(options: SchedulerOptions): Readonly<ResolvedSchedulerOptions> {
  if (typeof options !== 'object' || options === null) {
    throw new CarillonError('INVALID_OPTION', 'the options of a Scheduler must be an object', {
      field: 'options',
      given: options,
    });
  }
  if ('partitions' in options || 'etcd' in options) {
    const field = 'etcd' in options ? 'etcd' : 'partitions';
    throw new CarillonError(
      'UNSUPPORTED',
      `${field} needs coordination by etcd, which this version does not have`,
      {
        field,
        todo: 'Leave it out: one scheduler leads, and others stand by.',
      },
    );
  }
  rejectUnknown(options, KNOWN);
  const prefix = checkPrefix(options.prefix ?? 'bull');
  const memoryHeadroom = options.memoryHeadroom ?? 8 * 1024 * 1024;
  if (!Number.isSafeInteger(memoryHeadroom) || memoryHeadroom < 0) {
    throw new CarillonError('INVALID_OPTION', 'memoryHeadroom must be a whole number of bytes', {
      field: 'memoryHeadroom',
      given: memoryHeadroom,
      todo: 'Write 8388608 for 8 MiB, or 0 for none.',
    });
  }
  const ttl = parseDuration(options.ttl ?? 10_000, { field: 'ttl', min: 5000, max: 600_000 });
  const pollInterval = parseDuration(options.pollInterval ?? 1000, {
    field: 'pollInterval',
    min: 50,
    max: 10_000,
  });
  // The leadership is kept by progress: a loop that sleeps for half a TTL would lose it each time.
  if (pollInterval > ttl / 4) {
    throw new CarillonError('INVALID_OPTION', 'pollInterval must be at most a quarter of ttl', {
      field: 'pollInterval',
      given: options.pollInterval,
      todo: `Write ${ttl / 4} ms or less, or a longer ttl.`,
    });
  }
  return Object.freeze({
    redis: options.redis ?? 'redis://127.0.0.1:6379',
    prefix,
    namespace: checkName(options.namespace ?? defaultNamespace(prefix), 'namespace'),
    instanceId: options.instanceId === undefined ? undefined : checkName(options.instanceId, 'instanceId'),
    ttl,
    takeOver: checkFlag(options.takeOver, 'takeOver'),
    pollInterval,
    duplicateWindow: parseDuration(options.duplicateWindow ?? DUPLICATE_WINDOW, {
      field: 'duplicateWindow',
      min: 60_000,
      max: DUPLICATE_WINDOW,
    }),
    memoryHeadroom,
    allowVolatile: checkFlag(options.allowVolatile, 'allowVolatile'),
    scripts: options.scripts ?? {},
    timeZones: options.timeZones ?? HOST_TIME_ZONES,
  });
}

/** BullMQ's key prefix; braces are a hash tag there, which users of a Redis Cluster already have. */
export function checkPrefix(value: unknown): string {
  if (typeof value === 'string' && value.isWellFormed() && /^[^"\\\s\p{Cc}]{1,200}$/u.test(value))
    return value;
  throw new CarillonError('INVALID_OPTION', 'prefix must be a name without quotes and blanks', {
    field: 'prefix',
    given: value,
    todo: 'Write the prefix of your BullMQ queues, such as bull or {bull}.',
  });
}

/** A name that becomes part of keys: no braces, which would move a key to another slot, and no bar, which parts fences. */
export function checkName(value: unknown, field: string): string {
  // Runs carry the namespace inside a JSON text, unescaped.
  if (typeof value === 'string' && value.isWellFormed() && /^[^{}|"\\\s\p{Cc}]{1,200}$/u.test(value))
    return value;
  throw new CarillonError(
    'INVALID_OPTION',
    `${field} must be a name without braces, bars, quotes and blanks`,
    {
      field,
      given: value,
      todo: 'Write letters, digits, dashes, colons.',
    },
  );
}

function checkFlag(value: unknown, field: string): boolean {
  if (value === undefined) return false;
  if (typeof value === 'boolean') return value;
  throw new CarillonError('INVALID_OPTION', `${field} must be true or false`, {
    field,
    given: value,
    todo: 'Write true or false.',
  });
}
