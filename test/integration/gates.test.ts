import { Queue as BullQueue, Worker } from 'bullmq';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Admin } from '../../src/client/admin.js';
import { Queue } from '../../src/client/queue.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { ScheduleWorld } from '../support/schedule-world.js';
import { Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { startScheduler } from '../support/spine-scheduler.js';

async function world(task: { name: string }) {
  const spine = await Spine.open({ url: sharedRedisUrl(), namespace: namespaceFor(task) });
  const { namespace, prefix } = spine;
  const queue = new Queue('q', { connection: { url: spine.url }, namespace, prefix });
  onTestFinished(() => queue.close());
  const admin = new Admin({ connection: spine.client, namespace, prefix });
  const ids = async () => [
    ...(await spine.client.lrange(spine.bull('q', 'wait'), 0, -1)).reverse(),
    ...(await spine.client.zrange(spine.bull('q', 'prioritized'), '0', '-1')),
  ];
  return { spine, queue, admin, ids };
}

function names(count: number): string[] {
  return Array.from({ length: count }, (_, i) => `j${i}`);
}

/** One run at a time, in the order in which BullMQ hands them out. */
function stockWorker(
  spine: Spine,
  process: (job: { id?: string; attemptsMade: number }) => Promise<void>,
): Worker {
  const { hostname, port } = new URL(spine.url);
  const worker = new Worker('q', process, {
    prefix: spine.prefix,
    connection: { host: hostname, port: Number(port) },
  });
  worker.on('error', () => undefined);
  onTestFinished(() => worker.close());
  return worker;
}

describe('queue.gate', () => {
  test('set, get, clear: limits hold from then on, and what is held goes when they are gone', async ({
    task,
  }) => {
    const { spine, queue, ids } = await world(task);
    await startScheduler(spine);
    await queue.gate.set({ rate: { max: 2, duration: '1h' }, burst: 2 });
    await queue.addBulk(
      Array.from({ length: 5 }, (_, i) => ({ name: 'n', data: {}, opts: { jobId: `j${i}` } })),
    );
    await eventually(async () => (await ids()).length === 2);
    expect(await queue.gate.get()).toEqual({ queue: 'q', held: 3, max: 2, duration: 3_600_000, burst: 2 });
    expect(await queue.getJobCounts('delayed', 'wait')).toEqual({ delayed: 3, wait: 2 });
    await queue.gate.clear();
    await eventually(async () => (await ids()).length === 5);
    expect(await queue.gate.get()).toBeUndefined();
    await expectHealthy(spine);
  });

  test('limits that mean nothing are refused, each by its field', async ({ task }) => {
    const { queue } = await world(task);
    const bad = [
      [{}, 'gate'],
      [{ rate: 0 }, 'rate'],
      [{ rate: { max: 5, duration: 0 } }, 'rate.duration'],
      [{ burst: 3, maxWaiting: 1 }, 'burst'],
      [{ maxWaiting: 0 }, 'maxWaiting'],
      [{ groupBurst: 1, rate: 1 }, 'groupBurst'],
      [{ rates: 1 }, 'rates'],
      [{ rate: '50/s' }, 'rate'],
      [{ rate: null }, 'rate'],
      [{ rate: { max: 1, duration: '1s', bursts: 3 } }, 'rate.bursts'],
      [{ groupRate: { max: 1, duration: '1s', burst: 3 } }, 'groupRate.burst'],
    ] as const;
    for (const [options, field] of bad) {
      await expect(queue.gate.set(options as never)).rejects.toMatchObject({ field });
    }
    await expect(queue.gate.set({ rate: '50/s' } as never)).rejects.toThrow(
      'a number a second, or { max, duration }',
    );
    await expect(queue.add('n', {}, { group: '' })).rejects.toMatchObject({ field: 'group' });
    expect(await queue.gate.get()).toBeUndefined();
  });

  test('cancel, update, reschedule, pause, resume, promote reach what is held', async ({ task }) => {
    const { spine, queue, ids } = await world(task);
    await startScheduler(spine);
    await queue.gate.hold('maintenance');
    for (const jobId of ['gone', 'changed', 'later', 'kept', 'now'])
      await queue.add('n', {}, { jobId, group: 'a' });
    await eventually(async () => (await queue.gate.get())?.held === 5);
    await queue.cancel('gone');
    await queue.updateJob('changed', { opts: { priority: 3, group: 'b' } });
    await queue.changeDelay('later', 3_600_000);
    await queue.pauseJob('kept', { note: 'wait' });
    await (await queue.getJob('now'))?.promote();
    expect(await ids()).toEqual(['now']);
    expect(await queue.gate.get()).toMatchObject({ held: 1, hold: true, note: 'maintenance' });
    await expectHealthy(spine);
    await queue.gate.release();
    await eventually(async () => (await ids()).length === 2);
    expect(await ids()).toEqual(['now', 'changed']);
    await queue.resumeJob('kept');
    await eventually(async () => (await ids()).includes('kept'));
    await expectHealthy(spine);
  });

  test('what was paused in the queue comes back to the gate, with its attempts, and is reached there', async ({
    task,
  }) => {
    const { spine, queue, ids } = await world(task);
    await startScheduler(spine);
    const all = ['kept', 'gone', 'again', 'later', 'now', 'changed'];
    for (const jobId of all) await queue.add('n', {}, { jobId });
    for (const jobId of all) await spine.client.hset(spine.bull('q', jobId), 'atm', 1);
    expect((await queue.changeJobs('pause', { all: true })).jobs).toHaveLength(6);
    await queue.gate.hold('provider down');
    expect((await queue.changeJobs('resume', { all: true })).jobs.filter(({ done }) => done)).toHaveLength(6);
    expect([await ids(), (await queue.gate.get())?.held]).toEqual([[], 6]);
    expect(await queue.getJobState('kept')).toBe('delayed');
    await expectHealthy(spine);
    await queue.cancel('gone');
    await queue.pauseJob('again');
    await queue.resumeJob('again');
    await queue.changeDelay('later', 3_600_000);
    await (await queue.getJob('now'))?.promote();
    await queue.updateJob('changed', { data: { v: 2 }, opts: { priority: 3, group: 'b' } });
    expect([await ids(), (await queue.gate.get())?.held]).toEqual([['now'], 3]);
    await expectHealthy(spine);
    await queue.gate.release();
    await eventually(async () => (await ids()).length === 4);
    expect((await ids()).sort()).toEqual(['again', 'changed', 'kept', 'now']);
    expect(await spine.client.zcard(spine.bull('q', 'delayed'))).toBe(1);
    expect(await queue.getJob('changed')).toMatchObject({ data: { v: 2 }, attemptsMade: 1, priority: 3 });
    expect((await queue.getJob('kept'))?.attemptsMade).toBe(1);
    expect(await queue.getJob('gone')).toBeUndefined();
    await expectHealthy(spine);
  });

  test('what was paused in the queue goes on by the rate of its gate', async ({ task }) => {
    const { spine, queue, ids } = await world(task);
    await queue.addBulk(names(20).map((jobId) => ({ name: 'n', data: {}, opts: { jobId } })));
    await queue.changeJobs('pause', { all: true });
    await queue.gate.set({ rate: { max: 5, duration: '1h' }, burst: 5 });
    await startScheduler(spine);
    await queue.changeJobs('resume', { all: true });
    await eventually(async () => (await ids()).length === 5);
    expect((await queue.gate.get())?.held).toBe(15);
    await queue.gate.clear();
    await eventually(async () => (await ids()).length === 20);
    await expectHealthy(spine);
  });

  test('B52 priority holds after a retry: what failed starts again before all of lower priority that wait', async ({
    task,
  }) => {
    const { spine, queue } = await world(task);
    await startScheduler(spine);
    await queue.gate.set({ rate: 1000, maxWaiting: 20 });
    const starts: string[] = [];
    const released = new Set<string>();
    let failedAt = 0;
    const worker = stockWorker(spine, async ({ id = '', attemptsMade }) => {
      starts.push(id);
      await eventually(() => released.has(id), { every: 5 });
      if (id === 'again' && attemptsMade === 0) {
        failedAt = starts.length;
        throw new Error('once');
      }
    });
    const at = Date.now() + 200;
    await queue.add('n', {}, { jobId: 'again', priority: 1, at, attempts: 2, backoff: 1 });
    await queue.addBulk(
      Array.from({ length: 10 }, (_, i) => ({
        name: 'n',
        data: {},
        opts: { jobId: `j${i}`, priority: 2, at },
      })),
    );
    await eventually(() => starts.length === 1);
    expect(starts).toEqual(['again']);
    released.add('again');
    // The next one runs while the retry comes due: that goes before the nine others then.
    await eventually(() => starts.length === 2);
    expect(await queue.getJobState('again')).toBe('delayed');
    for (const id of names(10)) released.add(id);
    await eventually(() => starts.length === 12);
    expect(starts.slice(failedAt).indexOf('again')).toBe(1);
    await worker.close();
    await expectHealthy(spine);
  });

  test('B52 priority holds after a delay and a promotion, in the gate as in the queue', async ({ task }) => {
    const { spine, queue, ids } = await world(task);
    await startScheduler(spine);
    await queue.gate.hold();
    const at = Date.now() + 200;
    for (const jobId of ['a', 'b', 'c', 'd']) await queue.add('n', {}, { jobId, priority: 2, at });
    await queue.add('n', {}, { jobId: 'first', priority: 1, at });
    await eventually(async () => (await queue.gate.get())?.held === 5);
    await queue.gate.set({ maxWaiting: 1 });
    await queue.gate.release();
    await eventually(async () => (await ids()).length === 1);
    expect(await ids()).toEqual(['first']);
    await queue.gate.clear();
    await eventually(async () => (await ids()).length === 5);
    await queue.promoteJobs();
    expect((await ids())[0]).toBe('first');
  });
});

describe('ticks of a gated queue', () => {
  test('are held beside their schedule, and are open runs until the gate lets them go', async ({ task }) => {
    const world = await ScheduleWorld.at('2024-03-01T00:00:00Z', task);
    const { spine } = world;
    const admin = adminOf(spine);
    await admin.gates.set('q', { rate: { max: 1, duration: '1d' } });
    await spine.client.hset(spine.keys.gateTokens('q'), '', `0|${Date.parse('2024-03-01T00:00:00Z')}`);
    await world.schedules.upsert(
      's',
      { cron: '* * * * *', tz: 'UTC', missed: 'skip', overlap: 'skip' },
      { name: 'n' },
    );
    await world.startScheduler();
    await world.setClock('2024-03-01T00:01:00Z');
    await eventually(async () => (await admin.gates.get('q'))?.held === 1);
    const tick = `s@${Date.parse('2024-03-01T00:01:00Z')}`;
    await world.setClock('2024-03-01T00:02:00Z');
    await eventually(async () => (await rows(world)).length === 2);
    expect(await rows(world)).toEqual(['dispatched ', 'skipped overlap']);
    await expectHealthy(spine, 'heads');
    await spine.jobs.cancel('q', tick, 'no', 'r1', 'job');
    expect((await admin.gates.get('q'))?.held).toBe(0);
    await world.setClock('2024-03-01T00:03:00Z');
    await eventually(async () => (await admin.gates.get('q'))?.held === 1);
    await admin.gates.clear('q');
    await eventually(async () => (await world.queue.getWaitingCount()) === 1);
  });
});

/** One that goes by the clock that the test moves. */
function adminOf({ client, namespace, prefix }: Spine): Admin {
  return new Admin({ connection: client, namespace, prefix, scripts: { clock: 'virtual' } });
}

async function rows(world: ScheduleWorld): Promise<string[]> {
  const list = await world.schedules.get('s').runs();
  return list.map(({ what, reason }: { what: string; reason?: string }) => `${what} ${reason ?? ''}`);
}

describe('B56 pause and resume', () => {
  test.each(['skip', 'latest'] as const)(
    'of a queue, missed %s: no start in the window, and nothing is stuck after it',
    async (missed) => {
      const task = { name: `b56 ${missed}` };
      const world = await ScheduleWorld.at('2024-03-01T11:59:30Z', task);
      const { spine } = world;
      const admin = adminOf(spine);
      await world.schedules.upsert(
        's',
        { cron: '* * * * *', tz: 'UTC', missed, overlap: 'allow' },
        { name: 'n' },
      );
      const first = await world.startScheduler();
      await world.queue.addBulk(
        Array.from({ length: 10 }, (_, i) => ({ name: 'n', data: {}, opts: { jobId: `w${i}` } })),
      );
      await world.setClock('2024-03-01T12:00:30Z');
      await eventually(async () => (await world.queue.getWaitingCount()) === 11);
      await admin.pauseQueue('q', 'maintenance');
      await spine.submit('q', [{ ...ONE_TIME, time: Date.parse('2024-03-01T12:05:00Z') }]);
      for (let minute = 1; minute <= 10; minute++) {
        await world.setClock(`2024-03-01T12:${String(minute).padStart(2, '0')}:01Z`);
        // Pause survives failover and restart.
        if (minute === 6) {
          await first.stop();
          await world.startScheduler();
        }
        await eventually(
          async () => (await spine.client.zcount(spine.keys.heads, 0, await world.now())) === 0,
        );
      }
      expect(await world.queue.isPaused()).toBe(true);
      expect(await world.queue.getWaitingCount()).toBe(11);
      expect(await admin.gates.get('q')).toMatchObject({ held: 1, paused: true, pauseNote: 'maintenance' });
      await expectHealthy(spine, 'heads');
      await world.setClock('2024-03-01T12:10:45Z');
      await admin.resumeQueue('q');
      const caughtUp = missed === 'latest' ? 1 : 0;
      await eventually(async () => (await world.queue.getWaitingCount()) === 12 + caughtUp);
      await world.setClock('2024-03-01T12:11:00Z');
      await eventually(async () => (await world.queue.getWaitingCount()) === 13 + caughtUp);
      const ids = (await world.queue.getWaiting()).map(({ id }) => id);
      expect(ids.filter((id) => id === 'one')).toHaveLength(1);
      expect(ids).toContain(`s@${Date.parse('2024-03-01T12:11:00Z')}`);
      expect(await world.queue.isPaused()).toBe(false);
      await expectHealthy(spine, 'heads');
    },
  );

  test('B56 of everything: all queues hold, those paused by themselves stay so, all 10 + 3 jobs go on', async ({
    task,
  }) => {
    const { spine, queue, admin } = await world(task);
    await startScheduler(spine);
    const starts: string[] = [];
    let broken = true;
    stockWorker(spine, async ({ id = '' }) => {
      starts.push(id);
      if (broken) throw new Error('no');
    });
    await queue.addBulk(
      Array.from({ length: 5 }, (_, i) => ({ name: 'n', data: {}, opts: { jobId: `failed${i}` } })),
    );
    await eventually(async () => (await queue.getFailedCount()) === 5);
    broken = false;
    starts.length = 0;
    const other = new BullQueue('other', { connection: { url: spine.url }, prefix: spine.prefix });
    onTestFinished(() => other.close());
    await queue.add('n', {}, { jobId: 'soon', delay: 300 });
    await admin.pauseQueue('other', 'by itself');
    expect((await admin.pauseAll('moving')).sort()).toEqual(['q']);
    await queue.addBulk(
      Array.from({ length: 10 }, (_, i) => ({ name: 'n', data: {}, opts: { jobId: `j${i}` } })),
    );
    for (const id of ['failed0', 'failed1', 'failed2']) await queue.dead.requeue(id);
    await eventually(async () => (await queue.gate.get())?.held === 11);
    expect(await queue.isPaused()).toBe(true);
    await expect(admin.resumeQueue('q')).rejects.toMatchObject({ code: 'CONFLICT' });
    expect(starts).toEqual([]);
    expect(await admin.resumeAll()).toEqual(['q']);
    await eventually(async () => (await queue.getCompletedCount()) === 14);
    expect([...starts].sort()).toEqual([...names(10), 'soon', 'failed0', 'failed1', 'failed2'].sort());
    expect(await queue.getFailedCount()).toBe(2);
    expect([await queue.isPaused(), await other.isPaused()]).toEqual([false, true]);
    await expectHealthy(spine);
  });
});

const ONE_TIME = {
  jobId: 'one', chosen: true, relative: false, replace: false, window: 3_600_000, name: 'n', data: '{}', opts: '', priority: 0,
  lifo: false, timestamp: undefined, dedup: false, deadline: false,
}; // biome-ignore format: one job
