import { Redis } from 'ioredis';
import { describe, expect, test } from 'vitest';
import { Admin, Queue, Scheduler, Worker } from '../../src/index.js';
import type { RedisConnectionOptions } from '../../src/redis/connection.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { RedisServer } from '../support/redis-server.js';
import { InProcessCli } from './cli-in-process.js';

const REFUSED = expect.objectContaining({
  code: 'INVALID_OPTION',
  field: 'connection.db',
  message: expect.stringContaining('Redis refuses the database 99'),
});

/** The same of a connection that had it: a call may be repeated. */
const AWAY = expect.objectContaining({
  code: 'REDIS_UNAVAILABLE',
  retryable: true,
  field: 'connection.db',
  message: expect.stringContaining('Redis refuses the database 99'),
});

/** A Redis of the usual 16 databases, and what stands in the first of them. */
async function setUp(...args: string[]) {
  const server = await RedisServer.start({ args });
  const db0 = new Redis(server.url);
  db0.on('error', () => undefined);
  onCleanup('look at database 0', () => db0.disconnect());
  return { server, url: `${server.url}/99`, keys: () => db0.keys('*') };
}

/** Each way in which a database may be named; a client is made for whoever takes it. */
function connections({ port, url }: RedisServer): (() => RedisConnectionOptions)[] {
  const client = () => {
    const own = new Redis({ port, db: 99, maxRetriesPerRequest: null });
    own.on('error', () => undefined);
    onCleanup('the client of the test', () => own.disconnect());
    return own;
  };
  return [() => `${url}/99`, () => ({ port, db: 99 }), () => ({ url, db: 99 }), client];
}

/** What it tells of itself. */
function errorsOf(one: { on(name: 'error', hear: (error: Error) => void): unknown }): Error[] {
  const errors: Error[] = [];
  one.on('error', (error) => errors.push(error));
  return errors;
}

function open(connection: RedisConnectionOptions): Queue {
  const queue = new Queue('q', { connection });
  errorsOf(queue);
  onCleanup('queue', () => queue.close().catch(() => undefined));
  return queue;
}

describe('a database that Redis does not have is refused, and nothing is written into another', () => {
  test('by Queue, Admin, Worker and Scheduler', async () => {
    const { server, keys } = await setUp();
    for (const connection of connections(server)) {
      const queue = open(connection());
      await expect(queue.add('send', {}, { delay: 60_000 })).rejects.toEqual(REFUSED);
      await expect(queue.add('send', {})).rejects.toEqual(REFUSED);
      await expect(queue.schedules.upsert('s', { every: '1h', missed: 'skip' })).rejects.toEqual(REFUSED);
      const admin = new Admin({ connection: connection() });
      onCleanup('admin', () => admin.close());
      await expect(admin.queues()).rejects.toEqual(REFUSED);
      const scheduler = new Scheduler({ redis: connection(), allowVolatile: true });
      await expect(scheduler.start()).rejects.toEqual(REFUSED);
      await scheduler.stop();
      const worker = new Worker('q', async () => undefined, { connection: connection() });
      const errors = errorsOf(worker);
      await eventually(() => expect(errors).toContainEqual(REFUSED));
      await worker.close();
    }
    expect(await keys()).toEqual([]);
  });

  test('by a client that was connected before it was handed in', async () => {
    const { server, keys } = await setUp();
    const client = new Redis({ port: server.port, db: 99 });
    client.on('error', () => undefined);
    onCleanup('client', () => client.disconnect());
    await eventually(() => expect(client.status).toBe('ready'));
    const queue = open(client);
    await expect(queue.add('send', {}, { delay: 60_000 })).rejects.toEqual(
      expect.objectContaining({ code: 'INVALID_OPTION', field: 'connection.db' }),
    );
    expect((await keys()).filter((key) => !key.endsWith(':meta'))).toEqual([]);
  });

  test('after a reconnect, until the database is there again', async () => {
    const { server, url, keys } = await setUp('--databases', '100');
    const queue = open(url);
    const worker = new Worker('q', async () => undefined, { connection: url });
    errorsOf(worker);
    await queue.add('send', {}, { delay: 60_000, jobId: 'before' });
    await worker.waitUntilReady();
    await server.kill9();
    const few = await RedisServer.start({ port: server.port });
    const writes: unknown[] = [];
    await eventually(async () => {
      // BullMQ's own calls know nothing of our layout.
      await queue.setGlobalConcurrency(1).catch(() => undefined);
      writes.push(await queue.add('send', {}, { delay: 60_000 }).catch((error: unknown) => error));
      expect(writes).toContainEqual(AWAY);
    });
    expect(await keys()).toEqual([]);
    await few.kill9();
    await RedisServer.start({ port: server.port, args: ['--databases', '100'] });
    await eventually(async () => {
      expect(await queue.add('send', {}, { delay: 60_000 }).catch(() => undefined)).toMatchObject({
        answer: 'created',
      });
    });
    await worker.close();
    expect(await keys()).toEqual([]);
  });

  test('by the command line: exit code 2, and one document', async () => {
    const { server, url, keys } = await setUp();
    const cli = new InProcessCli('bull');
    const file = cli.file('settings.json', JSON.stringify({ redis: { port: server.port, db: 99 } }));
    for (const where of [
      ['--redis', url],
      ['--redis', '', '--config', file],
    ]) {
      for (const command of [
        ['jobs', 'add', 'q', 'x', '--id', 'j', '--delay', '1h'],
        ['schedules', 'list'],
        ['doctor'],
        ['scheduler', '--allow-volatile'],
      ]) {
        const { code, stdout } = await cli.run(...command, ...where, '--json');
        expect([command, code, JSON.parse(stdout).error]).toEqual([
          command,
          2,
          expect.objectContaining({ code: 'INVALID_OPTION', field: 'connection.db' }),
        ]);
      }
    }
    expect(await keys()).toEqual([]);
  });
});

describe('what is no number of a database is refused before anything is opened', () => {
  test.each([
    'redis://127.0.0.1:1/abc',
    'redis://127.0.0.1:1/3abc',
    'redis://127.0.0.1:1/-1',
    'redis://127.0.0.1:1/1.5',
    'redis://127.0.0.1:1/1/2',
    'rediss://127.0.0.1:1/?db=x',
    { port: 1, db: -1 },
    { port: 1, db: 1.5 },
    { port: 1, db: Number.NaN },
    { port: 1, db: 'x' as unknown as number },
    { url: 'redis://127.0.0.1:1/x' },
  ])('%j', async (connection) => {
    const refused = expect.objectContaining({ code: 'INVALID_OPTION', field: 'connection.db' });
    expect(() => new Queue('q', { connection })).toThrow(refused);
    expect(() => new Admin({ connection })).toThrow(refused);
    expect(() => new Worker('q', async () => undefined, { connection })).toThrow(refused);
    await expect(new Scheduler({ redis: connection }).start()).rejects.toEqual(refused);
  });

  test('by the command line too', async ({ task }) => {
    const cli = new InProcessCli(namespaceFor(task));
    const { code, stdout } = await cli.run('jobs', 'list', '--redis', `${sharedRedisUrl()}/abc`, '--json');
    expect([code, JSON.parse(stdout).error.field]).toEqual([2, 'connection.db']);
  });
});

test('a server that is busy while a client connects again keeps it out of database 0 too', async () => {
  const { server, keys } = await setUp('--busy-reply-threshold', '1');
  const queue = open({ url: server.url, db: 3, enableReadyCheck: false });
  await queue.add('send', {}, { delay: 60_000 });
  const busy = new Redis(server.url, { maxRetriesPerRequest: null });
  onCleanup('who keeps it busy', () => busy.disconnect());
  const script = busy.eval('while true do end', 0).catch(() => undefined);
  const killer = new Redis(server.url, { enableReadyCheck: false, protocol: 2, disableClientInfo: true });
  killer.on('error', () => undefined);
  onCleanup('who ends it', () => killer.disconnect());
  const { client } = queue.backend.shard;
  const errors = errorsOf(queue);
  client.disconnect(true);
  const added = queue.add('send', {}, { delay: 60_000 }).catch(() => undefined);
  await eventually(() => expect(errors.map(({ message }) => message).join()).toContain('BUSY'));
  await eventually(async () => {
    await killer.call('SCRIPT', 'KILL');
  });
  await Promise.all([script, added]);
  await queue.setGlobalConcurrency(1).catch(() => undefined);
  await eventually(() => queue.add('send', {}, { delay: 60_000 }));
  expect(await keys()).toEqual([]);
});
