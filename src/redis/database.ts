import type { Redis } from 'ioredis';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import { serverWord } from './status.js';

/** What of ioredis is not in its types. */
interface Inside {
  flushQueue(error: Error): void;
  sendCommand(command: { reject(error: Error): void; promise: Promise<unknown> }): Promise<unknown>;
}

/** @throws CarillonError INVALID_OPTION for what is no number of a database; ioredis would take database 0, or NaN. */
export function checkDatabase(db: unknown): void {
  if (db === undefined || db === null || /^\d{1,9}$/.test(String(db))) return;
  throw new CarillonError('INVALID_OPTION', 'the database of the Redis connection is no whole number', {
    field: 'connection.db',
    given: db,
    todo: 'Write a number from 0 on, as in redis://host:6379/1, or leave it out.',
  });
}

/**
 * Keeps a connection out of database 0 when Redis refuses the one that it was opened for: ioredis tells of the refusal
 * and goes on. At the first connection that is the end of the client; later it connects again, and calls fail meanwhile.
 * @returns the same client.
 */
export function guardDatabase<T extends Redis>(client: T): T {
  const select = client.select;
  let wasReady = client.status === 'ready';
  if (!wasReady) {
    client.once('ready', () => {
      wasReady = true;
    });
  }
  const guarded = async (db: number | string) => {
    const connecting = client.status === 'connect';
    try {
      return await select.call(client, db);
    } catch (error) {
      if (!connecting || isCarillonError(error) || (error as Error).name !== 'ReplyError') throw error;
      // A server that is busy may take it the next time.
      const isBusy = serverWord(error) !== undefined;
      const refusal = isBusy ? (error as Error) : refused(db, error, wasReady);
      (client as unknown as Inside).flushQueue(refusal);
      if (!wasReady && !isBusy) refuseCalls(client, refusal);
      client.disconnect(wasReady || isBusy);
      throw refusal;
    }
  };
  client.select = guarded as unknown as T['select'];
  return client;
}

/** Calls say why there is no connection, until somebody connects the client again. */
function refuseCalls(client: Redis, refusal: Error): void {
  (client as unknown as Inside).sendCommand = (command) => {
    command.reject(refusal);
    return command.promise;
  };
  client.once('connecting', () => Reflect.deleteProperty(client, 'sendCommand'));
}

/**
 * Asks whether a client works on the database that it was opened for: one that was connected before we got it may have
 * been refused it.
 * @throws CarillonError INVALID_OPTION
 */
export async function confirmDatabase(client: Redis): Promise<void> {
  const { condition } = client as unknown as { condition?: { select?: number } };
  const wanted = condition?.select ?? client.options?.db ?? 0;
  if (wanted === 0) return;
  // Where nobody may ask, the connection is believed.
  const info = await client.client('INFO').catch(() => '');
  const found = /(?:^| )db=(\d+)/.exec(String(info))?.[1];
  if (found !== undefined && Number(found) !== wanted) {
    throw refused(wanted, new Error(`the connection works on database ${found}`));
  }
}

/** A connection that had its database may get it again: whoever meets that waits, as for a Redis that is away. */
function refused(db: number | string, cause: unknown, wasReady = false): CarillonError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new CarillonError(
    wasReady ? 'REDIS_UNAVAILABLE' : 'INVALID_OPTION',
    `Redis refuses the database ${db}: ${why}`,
    {
      field: 'connection.db',
      given: Number(db),
      retryable: wasReady,
      todo: 'Name a database that the server has (its setting `databases`), or raise that.',
      cause,
    },
  );
}
