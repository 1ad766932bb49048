import { BUCKETS } from '../domain/buckets.js';
import type { DeadReceiver } from '../domain/dead-reason.js';
import { type Duration, parseDuration } from '../domain/durations.js';
import { CarillonError } from '../domain/errors.js';
import { DEFAULT_GRACE } from '../domain/schedule.js';
import { HOST_TIME_ZONES, type TimeZoneData } from '../domain/time-zone-offsets.js';
import type { RedisConnectionOptions } from '../redis/connection.js';
import { defaultNamespace } from '../redis/layout.js';
import type { ScriptChoices } from '../redis/script-source.js';
import type { Logger } from '../support/logger.js';
import { checkInteger, checkOneOf, refuse } from './check.js';
import { type EtcdOptions, type ResolvedEtcdOptions, resolveEtcdOptions } from './etcd-options.js';
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
  /**
   * Coordination by etcd: several instances share the work, each leads some partitions. Without it one instance leads
   * everything, by a heartbeat in Redis, and others stand by.
   */
  etcd?: EtcdOptions;
  /**
   * With etcd: into how many partitions the work is divided, 1 to 256. Defaults to 16. It changes when all instances
   * that live are configured to the new number.
   */
  partitions?: number;
  /**
   * How long a leader that is gone keeps others out: the age of a heartbeat, or of a lease in etcd. Defaults to 10 s, at
   * least 5 s; with etcd at most what leaves schedules with their default grace a fail-over without a missed tick.
   */
  ttl?: Duration;
  /** With etcd: a newcomer is given nothing that another leads before it was seen for so long. Defaults to 2 s. */
  settle?: Duration;
  /**
   * With etcd: what leaders do when it cannot be reached until their lease ends: `'stop'` until it is back, or
   * `'continue'` until another leader's fence refuses them. Defaults to `'stop'`.
   */
  onEtcdLoss?: 'stop' | 'continue';
  /** Without etcd: takes the leadership at the start, whoever holds it. Defaults to false. */
  takeOver?: boolean;
  /** The longest sleep between two looks at the timers. Defaults to 1 s; 50 ms to 10 s, at most a quarter of the ttl. */
  pollInterval?: Duration;
  /** How long an ended job id answers `fired` to a new submit. Defaults to 1 h, as the queues' option must. */
  duplicateWindow?: Duration;
  /** Bytes of records that are still dispatched when Redis is at its maxmemory. Defaults to 8 MiB. */
  memoryHeadroom?: number;
  /**
   * Who is told of each run that dies, at least once: a URL (http or https), to which it is posted as JSON with an
   * `Idempotency-Key`, or a function of yours, which is called again when it throws. Defaults to nobody.
   */
  onDead?: string | DeadReceiver;
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
  etcd: Readonly<ResolvedEtcdOptions> | undefined;
  partitions: number;
  ttl: number;
  settle: number;
  onEtcdLoss: 'stop' | 'continue';
  takeOver: boolean;
  pollInterval: number;
  duplicateWindow: number;
  memoryHeadroom: number;
  onDead: string | DeadReceiver | undefined;
  allowVolatile: boolean;
  scripts: ScriptChoices;
  timeZones: TimeZoneData;
}

const DEFAULT_PARTITIONS = 16;

/** Ended ids are remembered this long by default, and at the most; ms. */
export const DUPLICATE_WINDOW = 3_600_000;

const KNOWN = [
  'redis', 'prefix', 'namespace', 'instanceId', 'etcd', 'partitions', 'ttl', 'settle', 'onEtcdLoss', 'takeOver', 'pollInterval', 'duplicateWindow', 'memoryHeadroom', 'onDead', 'allowVolatile',
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
  rejectUnknown(options, KNOWN);
  checkWithoutEtcd(options);
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
  const etcd = options.etcd === undefined ? undefined : resolveEtcdOptions(options.etcd);
  if (etcd !== undefined) checkWithEtcd(options, etcd, ttl, pollInterval);
  return Object.freeze({
    redis: options.redis ?? 'redis://127.0.0.1:6379',
    prefix,
    namespace: checkName(options.namespace ?? defaultNamespace(prefix), 'namespace'),
    instanceId: options.instanceId === undefined ? undefined : checkName(options.instanceId, 'instanceId'),
    etcd,
    partitions: checkInteger('partitions', options.partitions ?? DEFAULT_PARTITIONS, 1, BUCKETS),
    ttl,
    settle: parseDuration(options.settle ?? 2000, { field: 'settle', max: 60_000 }),
    onEtcdLoss: checkOneOf('onEtcdLoss', options.onEtcdLoss ?? 'stop', ['stop', 'continue']),
    takeOver: checkFlag(options.takeOver, 'takeOver'),
    pollInterval,
    duplicateWindow: parseDuration(options.duplicateWindow ?? DUPLICATE_WINDOW, {
      field: 'duplicateWindow',
      min: 60_000,
      max: DUPLICATE_WINDOW,
    }),
    memoryHeadroom,
    onDead: options.onDead === undefined ? undefined : checkReceiver('onDead', options.onDead),
    allowVolatile: checkFlag(options.allowVolatile, 'allowVolatile'),
    scripts: options.scripts ?? {},
    timeZones: options.timeZones ?? HOST_TIME_ZONES,
  });
}

/** What only etcd can give is not left out silently. */
function checkWithoutEtcd(options: SchedulerOptions): void {
  if (options.etcd !== undefined) return;
  for (const field of ['partitions', 'settle', 'onEtcdLoss'] as const) {
    if (options[field] === undefined) continue;
    refuse(
      field,
      options[field],
      'needs coordination by etcd: without it one instance leads everything and others stand by',
      'Give etcd: { hosts }, or leave it out.',
    );
  }
}

function checkWithEtcd(
  options: SchedulerOptions,
  { callTimeout }: ResolvedEtcdOptions,
  ttl: number,
  poll: number,
): void {
  if (options.takeOver) {
    refuse('takeOver', true, 'is for an instance without etcd', 'Use `carillon instances drain`.');
  }
  // Three members that are silent one after the other must not cost the lease.
  if (callTimeout > ttl / 3) {
    const todo = `Write ${Math.floor(ttl / 3)} ms or less, or a longer ttl.`;
    refuse('etcd.callTimeout', options.etcd?.callTimeout, 'must be at most a third of ttl', todo);
  }
  // Leases of etcd are of whole seconds.
  const failOver = 2 * Math.ceil(ttl / 1000) * 1000 + 2000 + poll;
  if (failOver > DEFAULT_GRACE) {
    refuse(
      'ttl',
      options.ttl ?? ttl,
      `is too long: a fail-over may take ${failOver} ms, and the default grace of schedules is ${DEFAULT_GRACE} ms, so that they would miss ticks`,
      `Write ${Math.floor((DEFAULT_GRACE - 2000 - poll) / 2000) * 1000} ms or less.`,
    );
  }
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

function checkReceiver(field: string, value: unknown): string | DeadReceiver {
  if (typeof value === 'function') return value as DeadReceiver;
  const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return value as string;
  return refuse(
    field,
    value,
    'must be a URL of http or https, or a function',
    'Write https://hooks.example.com/dead.',
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
