import type { Redis, RedisOptions } from 'ioredis';
import type { Admin } from '../client/admin.js';
import type { Queue } from '../client/queue.js';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import { checkQueueName } from '../domain/ids.js';
import type { RedisConnectionOptions } from '../redis/connection.js';
import type { Shard } from '../redis/shard.js';
import type { Settings } from './settings.js';

/** A person waits: a Redis that does not answer is told of at once. */
const CONNECTION: RedisOptions = {
  maxRetriesPerRequest: 1,
  connectTimeout: 3000,
  commandTimeout: 15_000,
  retryStrategy: (times) => (times > 2 ? null : 100),
  connectionName: 'carillon:cli',
};

/** Runs `use` with a connection that answered, and closes it. @throws CarillonError REDIS_UNAVAILABLE */
export async function withRedis<T>(
  settings: Pick<Settings, 'redis'>,
  use: (client: Redis) => Promise<T>,
): Promise<T> {
  const { closeRedis, openRedis } = await import('../redis/connection.js');
  const opened = openRedis(settings.redis, CONNECTION);
  let last: Error | undefined;
  opened.client.on('error', (error) => {
    last = error;
  });
  try {
    try {
      await opened.client.ping();
    } catch (error) {
      throw unreachable(settings.redis, last ?? (error as Error));
    }
    return await use(opened.client);
  } finally {
    await closeRedis(opened);
  }
}

/** Runs `use` with the namespace's shard. */
export async function withShard<T>(
  { redis, prefix, namespace }: Pick<Settings, 'redis' | 'prefix' | 'namespace'>,
  use: (shard: Shard) => Promise<T>,
): Promise<T> {
  const { Shard: Class } = await import('../redis/shard.js');
  return withRedis({ redis }, (client) => use(new Class(client, { namespace, prefix })));
}

export async function withAdmin<T>(settings: Settings, use: (admin: Admin) => Promise<T>): Promise<T> {
  const { Admin: Class } = await import('../client/admin.js');
  return withRedis(settings, async (client) => {
    const { prefix, namespace } = settings;
    const admin = new Class({ connection: client, prefix, namespace });
    return use(admin).finally(() => admin.close());
  });
}

/** Runs `use` with a queue, which need not have existed. */
export function withQueue<T>(
  settings: Settings,
  name: string,
  use: (queue: Queue) => Promise<T>,
): Promise<T> {
  return withRedis(settings, (client) => onQueue(settings, client, name, use));
}

/**
 * The same for what is asked of a queue, or changed in it: nothing is made where nothing is.
 * @throws CarillonError NOT_FOUND for a namespace that holds nothing
 */
export function withKnownQueue<T>(
  settings: Settings,
  name: string,
  use: (queue: Queue) => Promise<T>,
): Promise<T> {
  return withRedis(settings, async (client) => {
    const { Keys } = await import('../redis/keys.js');
    const { namespace } = settings;
    if ((await client.exists(new Keys(namespace).layout)) === 0) {
      throw new CarillonError('NOT_FOUND', `the namespace ${namespace} holds nothing`, {
        field: 'namespace',
        given: namespace,
        todo: 'Check --redis, --prefix and --namespace.',
      });
    }
    return onQueue(settings, client, name, use);
  });
}

async function onQueue<T>(
  { prefix, namespace }: Settings,
  client: Redis,
  name: string,
  use: (queue: Queue) => Promise<T>,
): Promise<T> {
  const { Queue: Class } = await import('../client/queue.js');
  checkQueueName(name);
  // BullMQ's note of its version in a queue's meta hash is for whoever works with the queue, not for who looks at it.
  const options = { connection: client, prefix, namespace, skipVersionCheck: true, skipMetasUpdate: true };
  const queue = new Class(name, options);
  queue.on('error', () => undefined);
  return use(queue).finally(() => queue.close());
}

/** Where Redis is, without a password. */
export function placeOf(redis: RedisConnectionOptions): string {
  if (typeof redis === 'string') return redis.replace(/\/\/[^@/]*@/, '//…@');
  const { host = '127.0.0.1', port = 6379 } = redis as { host?: string; port?: number };
  return `${host}:${port}`;
}

function unreachable(redis: RedisConnectionOptions, error: Error): CarillonError {
  if (isCarillonError(error)) return error;
  // Node tells of a host with two addresses by an error without a message.
  const why = error.message || (error as NodeJS.ErrnoException).code || error.name;
  return new CarillonError('REDIS_UNAVAILABLE', `Redis at ${placeOf(redis)} does not answer: ${why}`, {
    field: 'redis',
    todo: 'Start it, or say where it is: --redis redis://host:6379 or CARILLON_REDIS_URL.',
    retryable: true,
    cause: error,
  });
}
