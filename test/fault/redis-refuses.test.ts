import { mkdtemp, rmdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { aJob, jobs } from '../support/builders.js';
import { eventually } from '../support/eventually.js';
import { History, SPOTLESS } from '../support/history.js';
import { namespaceFor } from '../support/namespace.js';
import { startRedis } from '../support/redis-server.js';
import { Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { startScheduler } from '../support/spine-scheduler.js';
import { changesOf } from '../support/spine-state.js';

/** How long a server's refusal lasts at least, so that everything that gives up by then has given up. */
const HOLD = 7000;

async function setup(task: { name: string }, args: string[] = []) {
  const server = await startRedis({ args });
  const spine = await Spine.open({ url: server.url, namespace: namespaceFor(task) });
  await History.keep(spine, 'q');
  return { server, spine };
}

async function submitDueSoon(
  spine: Spine,
  count: number,
  { bytes = 20, delay = 800 } = {},
): Promise<Map<string, number>> {
  const dueAt = (await spine.now()) + delay;
  const data = JSON.stringify('x'.repeat(bytes));
  await spine.submit(
    'q',
    jobs(count, 'a', () => ({ time: dueAt, data })),
  );
  return new Map(Array.from({ length: count }, (_, i) => [`a${i}`, dueAt]));
}

async function allFired(spine: Spine, expected: Map<string, number>): Promise<void> {
  await eventually(async () => expect((await History.read(spine, 'q')).check(expected)).toEqual(SPOTLESS), {
    timeout: 50_000,
    every: 200,
  });
}

describe('Redis at maxmemory', () => {
  test('submit is refused whole and leaves nothing behind; dispatch holds with OOM_HELD and resumes by itself', async ({
    task,
  }) => {
    const { spine } = await setup(task);
    const scheduler = await startScheduler(spine, { memoryHeadroom: 40_000, ttl: '5s' });
    const expected = await submitDueSoon(spine, 600, { bytes: 200, delay: 3000 });
    const token = await spine.client.hget(spine.keys.leader, 'token');
    const used = Number((await spine.client.info('memory')).match(/used_memory:(\d+)/)?.[1]);
    await spine.client.config('SET', 'maxmemory', Math.round(used * 0.9));

    const { changes } = await changesOf(spine, async () => {
      const bulk = [aJob('new'), aJob('due', { time: 1 })];
      await expect(spine.submit('q', bulk)).rejects.toMatchObject({ code: 'OUT_OF_MEMORY', retryable: true });
      await expect(spine.jobs.reschedule('q', 'a0', 5, true, 'r')).rejects.toMatchObject({
        code: 'OUT_OF_MEMORY',
      });
    });
    expect(Object.keys(changes).filter((name) => !/^(leader|heads)/.test(name))).toEqual([]);

    const heldAt = performance.now();
    await eventually(() => expect(scheduler.readiness()).toMatchObject({ ready: false }));
    await eventually(() => expect(scheduler.readiness().reason).toMatch(/^OOM_HELD/));
    // The headroom was used, and no more than a batch beyond it.
    const held = await spine.client.llen(spine.bull('q', 'wait'));
    expect(held).toBeGreaterThan(0);
    expect(held).toBeLessThan(600);
    await eventually(() => performance.now() - heldAt > HOLD, { timeout: 2 * HOLD });
    expect(await spine.client.llen(spine.bull('q', 'wait'))).toBe(held);
    // Nobody else could do better: the leadership is not thrown away.
    expect(await spine.client.hget(spine.keys.leader, 'token')).toBe(token);
    // Freeing works at maxmemory.
    await spine.jobs.cancel('q', 'a599', '', 'c').catch(() => undefined);

    await spine.client.config('SET', 'maxmemory', 0);
    await eventually(() => expect(scheduler.readiness()).toMatchObject({ ready: true }), { timeout: 50_000 });
    if ((await spine.jobs.get('q', 'a599')).ended?.how === 2) expected.delete('a599');
    await allFired(spine, expected);
    await expectHealthy(spine);
  }, 120_000);

  test('without headroom nothing moves at all until memory is back', async ({ task }) => {
    const { spine } = await setup(task);
    const scheduler = await startScheduler(spine, { memoryHeadroom: 0 });
    const expected = await submitDueSoon(spine, 50);
    await spine.client.config('SET', 'maxmemory', '1mb');
    await eventually(() => expect(scheduler.readiness().reason).toMatch(/^OOM_HELD/));
    expect(await spine.client.llen(spine.bull('q', 'wait'))).toBe(0);
    await spine.client.config('SET', 'maxmemory', 0);
    await allFired(spine, expected);
    await expectHealthy(spine);
  }, 60_000);
});

describe('a Redis that refuses writes for its own reasons: submit fails clearly, dispatch holds and resumes', () => {
  test('MISCONF', async ({ task }) => {
    const { server, spine } = await setup(task, ['--enable-protected-configs', 'local']);
    const scheduler = await startScheduler(spine, { ttl: '5s' });
    const expected = await submitDueSoon(spine, 100);
    // Snapshots that cannot be written: their folder is gone.
    const gone = await mkdtemp(join(tmpdir(), 'carillon-misconf-'));
    await spine.client.config('SET', 'dir', gone);
    await rmdir(gone);
    await spine.client.config('SET', 'save', '1 1');
    await eventually(async () => {
      await expect(spine.submit('q', [aJob('b')])).rejects.toMatchObject({
        code: 'REDIS_UNAVAILABLE',
        message: expect.stringContaining('MISCONF'),
      });
    });
    await eventually(() => expect(scheduler.readiness().reason).toMatch(/^MISCONF/));
    await spine.client.config('SET', 'save', '');
    await spine.client.config('SET', 'dir', server.dir);
    await eventually(() => expect(scheduler.readiness()).toMatchObject({ ready: true }), { timeout: 50_000 });
    await allFired(spine, expected);
    await spine.client.del(spine.bull('q', 'b'));
    await expectHealthy(spine, 'server');
  }, 120_000);

  test('READONLY', async ({ task }) => {
    const { spine } = await setup(task);
    const scheduler = await startScheduler(spine);
    const expected = await submitDueSoon(spine, 100);
    // A replica of nobody: it keeps its data and refuses writes.
    await spine.client.call('REPLICAOF', '127.0.0.1', '1');
    await expect(spine.submit('q', [aJob('b')])).rejects.toMatchObject({
      code: 'REDIS_UNAVAILABLE',
      retryable: true,
      message: expect.stringContaining('READONLY'),
    });
    await eventually(() => expect(scheduler.readiness().reason).toMatch(/^READONLY/), {
      timeout: 20_000,
      every: 5,
    });
    await spine.client.call('REPLICAOF', 'NO', 'ONE');
    await eventually(() => expect(scheduler.readiness()).toMatchObject({ ready: true, leading: true }), {
      timeout: 50_000,
    });
    await allFired(spine, expected);
    await expectHealthy(spine);
  }, 60_000);

  test('NOREPLICAS', async ({ task }) => {
    const { spine } = await setup(task);
    const scheduler = await startScheduler(spine);
    const expected = await submitDueSoon(spine, 100);
    await spine.client.config('SET', 'min-replicas-to-write', 1);
    await expect(spine.submit('q', [aJob('b')])).rejects.toMatchObject({
      code: 'REDIS_UNAVAILABLE',
      retryable: true,
    });
    await eventually(() => expect(scheduler.readiness().reason).toMatch(/^NOREPLICAS/));
    await spine.client.config('SET', 'min-replicas-to-write', 0);
    await allFired(spine, expected);
    await expectHealthy(spine);
  }, 60_000);
});

describe('B45 a Redis that would lose jobs', () => {
  test.each(['allkeys-lru', 'volatile-lru', 'allkeys-random'])(
    '%s is refused, with the cure',
    async (policy) => {
      const { spine } = await setup({ name: 'evicts' }, ['--maxmemory-policy', policy]);
      await expect(startScheduler(spine)).rejects.toMatchObject({
        code: 'UNSAFE_REDIS',
        message: expect.stringContaining(policy),
      });
    },
  );

  test('without an append-only file it is refused, unless jobs may be lost', async ({ task }) => {
    const { spine } = await setup(task, ['--appendonly', 'no']);
    await expect(startScheduler(spine)).rejects.toMatchObject({ code: 'UNSAFE_REDIS' });
    await startScheduler(spine, { allowVolatile: true });
  });

  test('no key of ours has a time to live, but deduplication in BullMQ', async ({ task }) => {
    const { spine } = await setup(task);
    await startScheduler(spine);
    await spine.submit('q', [
      aJob('later'),
      aJob('now', { time: 1 }),
      aJob('g', { chosen: false, time: 1 }),
      aJob('d', { opts: '{"de":{"id":"d","ttl":60000}}', dedup: true }),
      aJob('e', { time: 1, opts: '{"de":{"id":"e","ttl":60000}}', dedup: true }),
    ]);
    const mortal: string[] = [];
    for await (const page of spine.client.scanStream({ count: 1000 })) {
      for (const key of page as string[]) if ((await spine.client.pttl(key)) !== -1) mortal.push(key);
    }
    expect(mortal).toEqual([spine.bull('q', 'de:e')]);
  });
});
