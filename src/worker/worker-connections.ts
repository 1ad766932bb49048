import type { Redis } from 'ioredis';
import type { BullWorkerOptions } from '../queue/bullmq.js';
import { openAnother, type RedisConnectionOptions } from '../redis/connection.js';
import { guardDatabase } from '../redis/database.js';
import type { Logger } from '../support/logger.js';

/** Where a worker's Redis is. */
export type WorkerConnection = RedisConnectionOptions | BullWorkerOptions['connection'];

/** For our own calls: a run's lock lasts longer than a call may take. */
const CALLS = { maxRetriesPerRequest: 1, commandTimeout: 5000, connectTimeout: 5000 };

/** A connection of our own: BullMQ's blocks, and a caller's must not wait for a subscription. */
export function openOwn(connection: WorkerConnection | undefined, role: string, logger: Logger): Redis {
  const defaults = { host: '127.0.0.1', port: 6379 };
  const settings = { ...CALLS, connectionName: `carillon:${role}` };
  const client = openAnother((connection ?? {}) as RedisConnectionOptions, { ...defaults, ...settings });
  // What BullMQ's workers must set would let our calls wait for ever.
  client.options.maxRetriesPerRequest = CALLS.maxRetriesPerRequest;
  client.on('error', (error) => logger.debug({ role }, `Redis connection: ${error.message}`));
  return client;
}

/** Those that BullMQ opened for a worker, or was given: each is kept out of database 0 as ours are. */
export function guardBullmqs({ backend }: { backend: object }): void {
  for (const name of ['connection', 'blockingConnection']) {
    // Private to BullMQ's RedisConnection, which waits for it to be ready before it gives it away.
    const client = Reflect.get(Reflect.get(backend, name) as object, '_client') as Redis;
    guardDatabase(client);
  }
}

/** BullMQ wants options or a client, and no limit of tries on the connection that blocks. */
export function connectionForBullmq(
  connection: WorkerConnection | undefined,
): BullWorkerOptions['connection'] {
  if (connection === undefined) return { host: '127.0.0.1', port: 6379, maxRetriesPerRequest: null };
  if (typeof connection === 'string') return { url: connection, maxRetriesPerRequest: null };
  if (typeof (connection as { duplicate?: unknown }).duplicate === 'function') {
    return connection as BullWorkerOptions['connection'];
  }
  return { ...(connection as object), maxRetriesPerRequest: null } as BullWorkerOptions['connection'];
}
