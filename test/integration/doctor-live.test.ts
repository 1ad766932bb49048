import { Worker } from 'bullmq';
import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Admin } from '../../src/client/admin.js';
import { judgeClock } from '../../src/client/doctor-server.js';
import { Queue } from '../../src/client/queue.js';
import { Keys } from '../../src/redis/keys.js';
import { Scheduler } from '../../src/scheduler/scheduler.js';
import { eventually } from '../support/eventually.js';
import { startRedis } from '../support/redis-server.js';

/** A server of its own with a scheduler, a stock worker and a queue. */
async function openTown(args: string[] = []) {
  const server = await startRedis({ args });
  const connection = { url: server.url };
  const scheduler = new Scheduler({ redis: server.url });
  const queue = new Queue('emails', { connection });
  const admin = new Admin({ connection: server.url });
  const redis = new Redis(server.url);
  const done = { runs: 0 };
  const worker = new Worker('emails', async () => void done.runs++, {
    connection: { ...connection, maxRetriesPerRequest: null },
    concurrency: 50,
    removeOnComplete: { count: 100 },
  });
  onTestFinished(async () => {
    await worker.close();
    await queue.close();
    await scheduler.stop();
    await admin.close();
    redis.disconnect();
  });
  await scheduler.start();
  return { server, scheduler, queue, admin, redis, done };
}

/** Everything that a producer does, again and again, until it is told to stop. */
function traffic(queue: Queue) {
  let goesOn = true;
  let rounds = 0;
  const ended = (async () => {
    for (; goesOn; rounds++) {
      const n = rounds;
      await queue.addBulk(
        Array.from({ length: 50 }, (_, i) => ({
          name: 'send',
          data: { n, i },
          opts: {
            jobId: `bulk-${n}-${i}`,
            delay: (i * 37) % 1500,
            ...(i % 5 === 0 ? { priority: 1 + (i % 7) } : {}),
          },
        })),
      );
      await queue.add('send', {}, { delay: 400, deduplication: { id: `d${n % 20}` } });
      await queue.add('send', {}, { delay: 30_000, jobId: `edited-${n}` });
      await queue.pauseJob(`edited-${n}`);
      await queue.resumeJob(`edited-${n}`);
      await queue.changeDelay(`edited-${n}`, 20_000);
      if (n % 2 === 0) await queue.cancel(`edited-${n}`);
      await queue.schedules.upsert(`s${n % 30}`, {
        every: '1s',
        missed: 'latest',
        jitter: n % 3 ? 0 : '200ms',
      });
      if (n % 7 === 0) await queue.schedules.get(`s${(n + 15) % 30}`).delete();
    }
  })();
  return {
    get rounds() {
      return rounds;
    },
    async stop() {
      goesOn = false;
      await ended;
    },
  };
}

describe('a namespace under load', () => {
  test('nothing is found while jobs come, change and fire, nor when all is quiet', {
    timeout: 60_000,
  }, async () => {
    const { queue, admin, done } = await openTown();
    const producing = traffic(queue);
    await eventually(() => done.runs > 500, { timeout: 20_000 });
    for (let look = 0; look < 5; look++) {
      const before = { rounds: producing.rounds, runs: done.runs };
      const report = await admin.doctor({ pause: 200 });
      expect(report.findings).toEqual([]);
      expect(report.looked.records).toBeGreaterThan(10);
      // It looked at a town that lived meanwhile.
      expect(producing.rounds).toBeGreaterThan(before.rounds);
      expect(done.runs).toBeGreaterThan(before.runs);
    }
    await producing.stop();
    const report = await admin.doctor();
    expect(report).toMatchObject({ findings: [], healthy: true });
  });

  test('what is planted under load is found', { timeout: 60_000 }, async () => {
    const { queue, admin, redis, done } = await openTown();
    const producing = traffic(queue);
    await eventually(() => done.runs > 200, { timeout: 20_000 });
    const keys = new Keys('carillon');
    await queue.add('send', {}, { jobId: 'lost', delay: 3_600_000 });
    await queue.add('send', {}, { jobId: 'displaced', delay: 3_600_000 });
    for (let bucket = 0; bucket < 256; bucket++) {
      await redis.zrem(keys.due(bucket), 'emails:lost');
      await redis.zadd(keys.due(bucket), 'XX', 'INCR', 1, 'emails:displaced');
    }
    await redis.lpush('bull:emails:wait', 'nobody');
    await redis.hset(keys.fence, 9, '9|e|0|ghost');
    const { findings } = await admin.doctor({ pause: 100 });
    const found = findings.map(({ check, subject }) => `${check} ${subject}`);
    expect(found).toContain('index emails:lost');
    expect(found).toContain('index emails:displaced');
    expect(found.some((line) => line.startsWith('fence bucket 9'))).toBe(true);
    await producing.stop();
  });

  test('a broken queue is told of while it is parked, and no more once it is cured', {
    timeout: 60_000,
  }, async () => {
    const { queue, admin, redis } = await openTown();
    await redis.set('bull:other:wait', 'x');
    const other = new Queue('other', { connection: { host: '127.0.0.1', port: redis.options.port } });
    onTestFinished(() => other.close());
    await other.add('send', {}, { delay: 10 });
    await eventually(async () => (await admin.queues()).some(({ broken }) => broken !== undefined));
    const sick = await admin.doctor({ pause: 100 });
    expect(new Set(sick.findings.map(({ check, subject }) => `${check} ${subject}`))).toEqual(
      new Set(['queue other']),
    );
    await redis.del('bull:other:wait');
    await eventually(async () => (await redis.llen('bull:other:wait')) === 1);
    await eventually(async () => (await admin.doctor({ pause: 100 })).findings.length === 0);
    expect(await queue.getJobCounts('waiting')).toEqual({ waiting: 0 });
  });
});

describe('the server', () => {
  test('one that would lose jobs is told of, with the cure', async () => {
    const server = await startRedis({ args: ['--appendonly', 'no', '--maxmemory-policy', 'allkeys-lru'] });
    const admin = new Admin({ connection: server.url });
    onTestFinished(() => admin.close());
    const report = await admin.doctor();
    const found = report.findings.filter(({ check }) => check === 'server').map(({ detail }) => detail);
    expect(found).toEqual([
      expect.stringContaining('set it to noeviction'),
      expect.stringContaining('set appendonly to yes'),
    ]);
    expect(report).toMatchObject({ healthy: false, server: { aof: false, policy: 'allkeys-lru' } });
  });

  test('one that is nearly full', async () => {
    const server = await startRedis();
    const redis = new Redis(server.url);
    const admin = new Admin({ connection: server.url });
    onTestFinished(async () => {
      redis.disconnect();
      await admin.close();
    });
    const used = Number((await redis.info('memory')).match(/used_memory:(\d+)/)?.[1]);
    await redis.config('SET', 'maxmemory', String(used));
    const { findings } = await admin.doctor();
    expect(findings).toContainEqual(expect.objectContaining({ check: 'server', severity: 'warning' }));
  });

  test('a replica', async () => {
    const master = await startRedis();
    const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(master.port)] });
    const admin = new Admin({ connection: replica.url });
    onTestFinished(() => admin.close());
    const { findings } = await admin.doctor();
    expect(findings).toContainEqual(
      expect.objectContaining({ check: 'server', detail: expect.stringContaining('this is a replica') }),
    );
  });

  test('one that cannot be reached is an error, not a finding', async () => {
    const server = await startRedis();
    const admin = new Admin({ connection: server.url });
    onTestFinished(() => admin.close());
    await server.kill9();
    await expect(admin.doctor()).rejects.toMatchObject({ code: 'REDIS_UNAVAILABLE' });
  });

  test.for([
    [1000, []],
    [-1000, []],
    [1001, ['Redis’ clock is 1001 ms ahead of this machine’s']],
    [-5000, ['Redis’ clock is 5000 ms behind this machine’s']],
  ] as const)('a clock that is %i ms off', ([offset, details]) => {
    expect(judgeClock(offset).map(({ detail }) => detail)).toEqual(details);
  });
});
