import { Redis } from 'ioredis';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Admin } from '../../src/client/admin.js';
import type { ListedJob, Page } from '../../src/client/admin-listing.js';
import { aJob, jobs } from '../support/builders.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { Spine } from '../support/spine.js';

async function setup(task: { name: string }) {
  const prefix = namespaceFor(task);
  const namespace = `carillon-${prefix}`;
  const spine = await Spine.open({ url: sharedRedisUrl(), namespace, prefix });
  const admin = new Admin({ connection: sharedRedisUrl(), prefix });
  onTestFinished(() => admin.close());
  return { spine, admin };
}

async function everyPage(admin: Admin, options: Parameters<Admin['jobs']>[0]): Promise<ListedJob[]> {
  const found: ListedJob[] = [];
  let cursor: string | undefined;
  do {
    const page: Page<ListedJob> = await admin.jobs({ ...options, ...(cursor && { cursor }) });
    expect(page.items.length).toBeLessThanOrEqual(options?.limit ?? 100);
    found.push(...page.items);
    cursor = page.cursor;
  } while (cursor !== undefined);
  return found;
}

describe('Admin', () => {
  test('lists every job once, whatever the size of a page', async ({ task }) => {
    const { spine, admin } = await setup(task);
    await spine.submit(
      'emails',
      jobs(700, 'a', () => ({})),
    );
    await spine.submit(
      'other',
      jobs(50, 'b', () => ({})),
    );
    for (let i = 0; i < 20; i++) await spine.jobs.pause('emails', `a${i}`, 'why', `r${i}`);
    for (const limit of [7, 100, 1000]) {
      const found = await everyPage(admin, { limit });
      expect(found).toHaveLength(750);
      expect(new Set(found.map(({ queue, id }) => `${queue}:${id}`)).size).toBe(750);
    }
    expect(await everyPage(admin, { queue: 'other' })).toHaveLength(50);
    const paused = await everyPage(admin, { queue: 'emails', states: ['paused'], limit: 3 });
    expect(paused.map(({ id, note }) => `${id} ${note}`).sort()).toEqual(
      Array.from({ length: 20 }, (_, i) => `a${i} why`).sort(),
    );
    expect(await everyPage(admin, { kind: 'schedule' })).toEqual([]);
  });

  test('a record that cannot be read keeps nobody from the others', async ({ task }) => {
    const { spine, admin } = await setup(task);
    await spine.submit('emails', [aJob('a')]);
    await spine.client.hset(spine.keys.jobs(7), 'emails:bad', 'rubbish');
    expect((await admin.jobs()).items.map(({ id }) => id)).toEqual(['a']);
  });

  test('the newest ends first', async ({ task }) => {
    const { spine, admin } = await setup(task);
    await spine.submit('emails', [aJob('a'), aJob('b')]);
    await spine.jobs.cancel('emails', 'a', 'sold out', 'r1');
    await spine.jobs.cancel('emails', 'b', '', 'r2');
    const history = await admin.history();
    expect(history.map(({ job, what, reason }) => `${job} ${what} ${reason}`.trim())).toEqual([
      'emails:b cancelled',
      'emails:a cancelled sold out',
    ]);
    expect(Math.abs((history[0]?.at ?? 0) - (await spine.now()))).toBeLessThan(10_000);
    expect(await admin.history({ limit: 1 })).toHaveLength(1);
  });

  test('ends of one queue, of one job, over more than a page of others', async ({ task }) => {
    const { spine, admin } = await setup(task);
    await spine.submit('emails', [aJob('a'), aJob('b')]);
    await spine.submit('emails2', [aJob('a')]);
    for (const [queue, id] of [
      ['emails', 'a'],
      ['emails', 'b'],
      ['emails2', 'a'],
    ] as const)
      await spine.jobs.cancel(queue, id, '', `${queue}${id}`);
    const crowd = spine.client.pipeline();
    for (let i = 0; i < 2500; i++) crowd.xadd(spine.keys.history, '*', 'job', `x:${i}`, 'what', 'cancelled');
    await crowd.exec();
    const jobsOf = async (options: Parameters<Admin['history']>[0]) =>
      (await admin.history(options)).map(({ job }) => job);
    expect(await jobsOf({ queue: 'emails' })).toEqual(['emails:b', 'emails:a']);
    expect(await jobsOf({ queue: 'emails', jobId: 'a' })).toEqual(['emails:a']);
    expect(await jobsOf({ queue: 'emails', jobId: 'none' })).toEqual([]);
    expect(await jobsOf({ queue: 'x', limit: 1000 })).toHaveLength(1000);
    await expect(admin.history({ jobId: 'a' })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      field: 'jobId',
    });
  });

  test('who leads, since when it was heard of', async ({ task }) => {
    const { spine, admin } = await setup(task);
    expect(await admin.leader()).toBeUndefined();
    const now = await spine.now();
    await spine.client.hset(spine.keys.leader, { holder: 'h', token: 7, epoch: '1|e', beat: now - 500 });
    const leader = await admin.leader();
    expect(leader).toMatchObject({ holder: 'h', token: 7, epoch: '1|e' });
    expect(leader?.beatAge).toBeGreaterThanOrEqual(500);
  });

  test('a client that it was given stays open', async () => {
    const client = new Redis(sharedRedisUrl());
    onTestFinished(() => client.disconnect());
    const admin = new Admin({ connection: client });
    await admin.queues();
    await admin.close();
    expect(await client.ping()).toBe('PONG');
  });

  test.for([
    [{ conection: 'redis://x' }, 'conection'],
    [{ prefix: '' }, 'prefix'],
    [{ namespace: 'a b' }, 'namespace'],
    [{ connection: 'http://x' }, 'connection'],
  ] as const)('refuses %o', ([options, field]) => {
    expect(() => new Admin(options as object)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', field }),
    );
  });

  test('refuses what it cannot list', async ({ task }) => {
    const { admin } = await setup(task);
    const refused = (field: string, code = 'INVALID_OPTION') => expect.objectContaining({ code, field });
    await expect(admin.jobs({ limit: 0 })).rejects.toThrow(refused('limit'));
    await expect(admin.jobs({ limit: 1001 })).rejects.toThrow(refused('limit'));
    await expect(admin.jobs({ cursor: '1' })).rejects.toThrow(refused('cursor'));
    await expect(admin.jobs({ states: ['running' as 'paused'] })).rejects.toThrow(refused('states'));
    await expect(admin.quarantine({ queue: 'a:b' })).rejects.toThrow(refused('queue', 'INVALID_ID'));
    await expect(admin.history({ limit: Number.NaN })).rejects.toThrow(refused('limit'));
    await expect(admin.releaseQuarantine('q', '')).rejects.toThrow(refused('jobId', 'INVALID_ID'));
    await expect(admin.doctor({ pause: -1 })).rejects.toMatchObject({
      code: 'INVALID_DURATION',
      field: 'pause',
    });
  });
});
