import { Redis, type RedisOptions } from 'ioredis';
import { CarillonError } from '../domain/errors.js';
import { checkDatabase, guardDatabase } from './database.js';

/**
 * Where Redis is: a URL (`redis://`, `rediss://`), ioredis options (host, port, username, password, tls, sentinels…),
 * both (`{ url, ... }`), or a client that you made and close yourself.
 */
export type RedisConnectionOptions = string | (RedisOptions & { url?: string }) | Redis;

export interface OpenedRedis {
  readonly client: Redis;
  /** Whether we made it, and so must close it. */
  readonly owned: boolean;
}

const guarded = new WeakSet<Redis>();

/** The settings of a connection that only our scripts use: a call fails soon instead of hanging or repeating for long. */
export const SCHEDULER_CONNECTION: RedisOptions = {
  maxRetriesPerRequest: 1,
  commandTimeout: 2000,
  connectTimeout: 2000,
  // A connection that swallows commands is replaced: no time-out of a command does that.
  socketTimeout: 5000,
  retryStrategy: (times) => Math.min(50 * 2 ** Math.min(times, 5), 1000),
  reconnectOnError: (error) => error.message.startsWith('READONLY'),
};

/**
 * Opens a connection, or takes the caller's.
 * @param defaults used where the caller's options say nothing; a caller's own client is taken as it is.
 * @throws CarillonError INVALID_OPTION, UNSUPPORTED for something that is no connection.
 */
export function openRedis(options: RedisConnectionOptions, defaults: RedisOptions = {}): OpenedRedis {
  checkConnection(options);
  if (typeof options === 'string')
    return { client: guardDatabase(new Redis(options, defaults)), owned: true };
  if (isRedisClient(options)) return { client: guardOnce(options), owned: false };
  const { url, ...rest } = options;
  const merged = { ...defaults, ...rest };
  const client = url === undefined ? new Redis(merged) : new Redis(url, merged);
  return { client: guardDatabase(client), owned: true };
}

/** A connection of our own with the caller's settings, whoever made the first. */
export function openAnother(options: RedisConnectionOptions, settings: RedisOptions): Redis {
  if (!isRedisClient(options)) return openRedis(options, settings).client;
  checkConnection(options);
  return guardDatabase(options.duplicate(settings));
}

/** A caller may hand one client to many. */
function guardOnce(client: Redis): Redis {
  if (guarded.has(client)) return client;
  guarded.add(client);
  return guardDatabase(client);
}

/** Opens nothing. @throws CarillonError INVALID_OPTION, UNSUPPORTED for something that is no connection. */
export function checkConnection(options: RedisConnectionOptions): void {
  if (typeof options === 'string') {
    checkUrl(options);
    return;
  }
  if (isCluster(options)) {
    throw new CarillonError('UNSUPPORTED', 'Redis Cluster is not supported by this version', {
      field: 'connection',
      todo: 'Give a client of one Redis, or of Sentinel.',
    });
  }
  if (isRedisClient(options)) return;
  if (typeof options !== 'object' || options === null) {
    throw new CarillonError(
      'INVALID_OPTION',
      'connection must be a URL, ioredis options or an ioredis client',
      {
        field: 'connection',
        given: options,
        todo: "Give { host, port }, 'redis://host:6379' or new Redis(...).",
      },
    );
  }
  if (isOtherDriver(options)) {
    throw new CarillonError('UNSUPPORTED', 'connection is a client of another Redis driver', {
      field: 'connection',
      todo: 'Give ioredis options or an ioredis client.',
    });
  }
  if (options.keyPrefix) {
    throw new CarillonError('INVALID_OPTION', 'ioredis’ keyPrefix would move keys out of their hash tag', {
      field: 'connection.keyPrefix',
      given: options.keyPrefix,
      todo: 'Use the options prefix and namespace instead.',
    });
  }
  checkDatabase(options.db);
  if (options.url !== undefined) checkUrl(options.url);
}

function checkUrl(url: string): void {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed === undefined || !['redis:', 'rediss:'].includes(parsed.protocol)) {
    throw new CarillonError('INVALID_OPTION', 'connection is no Redis URL', {
      field: 'connection',
      given: String(url).replace(/\/\/[^@]*@/, '//…@'),
      todo: 'Write redis://[user:password@]host:port[/db], or rediss:// for TLS.',
    });
  }
  checkDatabase(parsed.pathname.slice(1) || undefined);
  checkDatabase(parsed.searchParams.get('db'));
}

/** By shape, not by class: the caller may have another copy of ioredis. */
function isRedisClient(value: unknown): value is Redis {
  const client = value as Partial<Redis> | null;
  return (
    typeof client === 'object' &&
    client !== null &&
    typeof client.defineCommand === 'function' &&
    typeof client.duplicate === 'function'
  );
}

function isCluster(value: unknown): boolean {
  return typeof value === 'object' && value !== null && (value as { isCluster?: unknown }).isCluster === true;
}

function isOtherDriver(value: object): boolean {
  return 'sendCommand' in value || ('send' in value && 'connected' in value);
}

/** Closes a connection that we made: politely, and at once when the server does not answer. */
export async function closeRedis({ client, owned }: OpenedRedis): Promise<void> {
  if (!owned || client.status === 'end') return;
  if (client.status !== 'ready') {
    client.disconnect();
    return;
  }
  await client.quit().catch(() => client.disconnect());
}
