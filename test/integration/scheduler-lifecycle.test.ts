import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { SchedulerOptions } from '../../src/config/scheduler-options.js';
import { isCarillonError } from '../../src/index.js';
import { Scheduler } from '../../src/scheduler/scheduler.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { freePort } from '../support/free-port.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { spawnNode } from '../support/node-process.js';
import { startSentinel } from '../support/redis-sentinel.js';
import { RedisServer, startRedis } from '../support/redis-server.js';
import { startTlsRedis } from '../support/redis-tls.js';

/** A scheduler of a namespace of its own; stopped with the test. */
function aScheduler(task: { name: string }, over: SchedulerOptions = {}): Scheduler {
  const prefix = namespaceFor(task);
  const scheduler = new Scheduler({ redis: sharedRedisUrl(), prefix, namespace: prefix, ...over });
  onTestFinished(() => scheduler.stop());
  return scheduler;
}

/** What a start was refused with. */
async function refusalOf(scheduler: Scheduler) {
  try {
    await scheduler.start();
  } catch (error) {
    if (isCarillonError(error)) return error;
    throw error;
  }
  throw new Error('it started');
}

async function leads(scheduler: Scheduler): Promise<void> {
  await eventually(() => scheduler.readiness().leading);
}

/** Connections of this test's own server, by the names that their clients gave. */
async function connectionNames(client: Redis): Promise<string[]> {
  const list = String(await client.client('LIST'));
  return [...list.matchAll(/ name=(\S+) /g)].map((match) => match[1] as string).sort();
}

describe('start and stop', () => {
  test('any number of times, in any order, from anywhere', async ({ task }) => {
    const scheduler = aScheduler(task);
    await scheduler.stop();
    await Promise.all([scheduler.start(), scheduler.start(), scheduler.start()]);
    expect(scheduler.started).toBe(true);
    await scheduler.start();
    await Promise.all([scheduler.stop(), scheduler.stop()]);
    await scheduler.stop();
    expect(scheduler.started).toBe(false);
    await scheduler.start();
    await leads(scheduler);
    await scheduler.stop();
    expect(scheduler.readiness()).toMatchObject({ ready: false, leading: false });
  });

  test('ten callers race fifty times each: nothing is left running, no connection stays', async ({
    task,
  }) => {
    const server = await startRedis();
    const client = new Redis(server.url);
    onTestFinished(() => client.disconnect());
    const scheduler = aScheduler(task, { redis: server.url });
    const outcomes = new Set<string>();
    const caller = async (seed: number) => {
      for (let i = 0; i < 50; i++) {
        const starting = scheduler.start().then(
          () => outcomes.add('started'),
          (error: Error) => outcomes.add(error.name),
        );
        // Anything from no turn of the event loop at all to a start that is done.
        if ((seed + i) % 5 === 0) await starting;
        for (let turns = (seed * 13 + i * 29) % 100; turns > 0; turns--) await setImmediate();
        if ((seed + i) % 3 !== 0) await scheduler.stop();
      }
    };
    await Promise.all(Array.from({ length: 10 }, (_, seed) => caller(seed)));
    await scheduler.stop();
    expect(scheduler.started).toBe(false);
    expect([...outcomes].sort()).toEqual(['AbortError', 'started']);
    await eventually(async () => expect(await connectionNames(client)).toEqual([]));
    const received = /total_connections_received:(\d+)/.exec(await client.info('stats'))?.[1];
    expect(Number(received)).toBeGreaterThan(20);
    // The leadership was given back each time: another leads at once.
    const next = aScheduler(task, { redis: server.url });
    await next.start();
    await leads(next);
  });

  test('a process that stopped its scheduler ends by itself', async ({ task }) => {
    const prefix = namespaceFor(task);
    const options = JSON.stringify({ redis: sharedRedisUrl(), prefix, namespace: prefix });
    const script = fileURLToPath(new URL('../fixtures/start-and-stop.ts', import.meta.url));
    const child = spawnNode(script, [options, '20']);
    await child.waitForLine('stopped', 60_000);
    const stopped = performance.now();
    expect((await child.exited).code).toBe(0);
    expect(performance.now() - stopped).toBeLessThan(5000);
  });

  test('stop during a start cuts it off', async ({ task }) => {
    const scheduler = aScheduler(task);
    const starting = scheduler.start();
    const started = performance.now();
    await scheduler.stop();
    await expect(starting).rejects.toMatchObject({ name: 'AbortError' });
    expect(performance.now() - started).toBeLessThan(2000);
    await scheduler.start();
    await leads(scheduler);
  });

  test('two in one process: one leads, the other stands by and follows', async ({ task }) => {
    const prefix = namespaceFor(task);
    const options = { redis: sharedRedisUrl(), prefix, namespace: prefix };
    const [first, second] = [new Scheduler(options), new Scheduler(options)];
    onTestFinished(async () => {
      await Promise.all([first.stop(), second.stop()]);
    });
    await first.start();
    await leads(first);
    await second.start();
    expect(second.readiness()).toMatchObject({ ready: true, leading: false });
    await first.stop();
    // It was given back, so that the stand-by need not wait for the TTL.
    await eventually(() => second.readiness().leading, { timeout: 5000 });
  });
});

describe('a Redis that does not answer', () => {
  test('is waited for ten seconds; then REDIS_UNAVAILABLE with the address and the cause', async ({
    task,
  }) => {
    const port = await freePort();
    const proxy = await FaultProxy.start({ port: (await startRedis()).port });
    proxy.pause();
    const tls = await startTlsRedis();
    const refused = async (redis: string) => {
      const scheduler = aScheduler(task, { redis });
      const started = performance.now();
      const error = await refusalOf(scheduler);
      expect(error).toMatchObject({ code: 'REDIS_UNAVAILABLE', field: 'redis', retryable: true });
      const seconds = (performance.now() - started) / 1000;
      expect(seconds).toBeGreaterThan(9);
      expect(seconds).toBeLessThan(16);
      expect(scheduler.started).toBe(false);
      return error.message;
    };
    const [nobody, blackHole, untrusted] = await Promise.all([
      refused(`redis://user:secret@127.0.0.1:${port}`),
      refused(proxy.url),
      refused(`rediss://127.0.0.1:${tls.port}`),
    ]);
    expect(nobody).toMatch(new RegExp(`127\\.0\\.0\\.1:${port} did not answer for 10 s: .*ECONNREFUSED`));
    expect(nobody).not.toContain('secret');
    expect(blackHole).toContain(`127.0.0.1:${proxy.port}`);
    expect(untrusted).toMatch(/self-signed certificate/);
  });

  test('stop does not wait for it', async ({ task }) => {
    const scheduler = aScheduler(task, { redis: { port: await freePort() } });
    const starting = scheduler.start();
    starting.catch(() => undefined);
    const stopped = performance.now();
    await scheduler.stop();
    expect(performance.now() - stopped).toBeLessThan(1000);
    await expect(starting).rejects.toMatchObject({ name: 'AbortError' });
  });

  test('one that comes up meanwhile is waited for', async ({ task }) => {
    const port = await freePort();
    const scheduler = aScheduler(task, { redis: { port } });
    const starting = scheduler.start();
    await RedisServer.start({ port });
    await starting;
    await leads(scheduler);
  });

  test('a connection that dies silently is replaced, and dispatch goes on', async ({ task }) => {
    const server = await startRedis();
    const proxy = await FaultProxy.start({ port: server.port });
    const scheduler = aScheduler(task, { redis: proxy.url });
    await scheduler.start();
    await leads(scheduler);
    const before = proxy.accepted;
    // What is open stays silent for ever; new connections work.
    proxy.freezeOpen();
    await eventually(() => !scheduler.readiness().ready, { timeout: 10_000 });
    await eventually(() => scheduler.readiness().ready && scheduler.readiness().leading, { timeout: 20_000 });
    expect(proxy.accepted).toBeGreaterThan(before);
  });
});

describe('a Redis that refuses us', () => {
  test.each([
    ['a wrong password', (port: number) => `redis://:wrong@127.0.0.1:${port}`, /WRONGPASS|NOAUTH/],
    ['no password', (port: number) => `redis://127.0.0.1:${port}`, /NOAUTH/],
  ])('%s: at once', async (what, url, message) => {
    const server = await startRedis({ args: ['--requirepass', 'right'] });
    const started = performance.now();
    const error = await refusalOf(aScheduler({ name: what }, { redis: url(server.port) }));
    expect(error).toMatchObject({ code: 'REDIS_UNAVAILABLE', message: expect.stringMatching(message) });
    expect(performance.now() - started).toBeLessThan(5000);
  });

  test('an ACL user without CONFIG, and with no key but ours, is enough', async ({ task }) => {
    const server = await startRedis();
    const admin = new Redis(server.url);
    onTestFinished(() => admin.disconnect());
    const prefix = namespaceFor(task);
    const keys = [`~${prefix}:*`, `~{${prefix}}:*`, `&{${prefix}}:*`];
    await admin.acl('SETUSER', 'carillon', 'on', '>pw', ...keys, '+@all', '-@admin', '-config');
    const scheduler = aScheduler(task, {
      redis: { port: server.port, username: 'carillon', password: 'pw' },
      prefix,
      namespace: prefix,
    });
    await scheduler.start();
    await leads(scheduler);
    await eventually(() => expect(scheduler.readiness()).toMatchObject({ ready: true }));
  });
});

describe('a Redis that would lose jobs', () => {
  test.each([
    ['eviction', ['--maxmemory-policy', 'allkeys-lru'], /maxmemory-policy is allkeys-lru.*: set it to noeviction\.$/],
    ['no append-only file', ['--appendonly', 'no'], /no append-only file.*: set appendonly to yes\.$/],
  ])('%s: refused in one sentence with the cure; allowVolatile accepts it', async (what, args, sentence) => {
    const server = await startRedis({ args });
    const refused = aScheduler({ name: what }, { redis: server.url });
    const error = await refusalOf(refused);
    expect(error).toMatchObject({ code: 'UNSAFE_REDIS', message: expect.stringMatching(sentence) });
    expect(error.message.match(/\.(\s|$)/g)).toHaveLength(1);
    expect(error.todo).toContain('allowVolatile');
    const accepted = aScheduler({ name: what }, { redis: server.url, allowVolatile: true });
    await accepted.start();
    await leads(accepted);
  }); // biome-ignore format: a table
});

describe('connections', () => {
  test('are named, two a scheduler', async ({ task }) => {
    const server = await startRedis();
    const client = new Redis(server.url);
    onTestFinished(() => client.disconnect());
    await aScheduler(task, { redis: server.url }).start();
    expect(await connectionNames(client)).toEqual(['carillon:scheduler', 'carillon:scheduler-wake']);
  });

  test('a client that was given is copied and left open, whatever a worker needs of it', async ({ task }) => {
    const client = new Redis(sharedRedisUrl(), { maxRetriesPerRequest: null });
    onTestFinished(() => client.disconnect());
    const scheduler = aScheduler(task, { redis: client });
    await scheduler.start();
    await leads(scheduler);
    await scheduler.stop();
    expect(client.status).toBe('ready');
    expect(await client.ping()).toBe('PONG');
  });

  test('TLS', async ({ task }) => {
    const { port, ca, server } = await startTlsRedis();
    const client = new Redis(server.url);
    onTestFinished(() => client.disconnect());
    const scheduler = aScheduler(task, { redis: { url: `rediss://127.0.0.1:${port}`, tls: { ca } } });
    await scheduler.start();
    await leads(scheduler);
    expect(await connectionNames(client)).toHaveLength(2);
  });

  test('Sentinel', async ({ task }) => {
    const master = await startRedis();
    const port = await startSentinel(master, 'bells');
    const scheduler = aScheduler(task, {
      redis: { sentinels: [{ host: '127.0.0.1', port }], name: 'bells' },
    });
    await scheduler.start();
    await leads(scheduler);
    const client = new Redis(master.url);
    onTestFinished(() => client.disconnect());
    expect(await connectionNames(client)).toContain('carillon:scheduler');
  });
});
