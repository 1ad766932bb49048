import { describe, expect, test } from 'vitest';
import { aJob, aSchedule, jobs } from '../support/builders.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { History } from '../support/history.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { startRedis } from '../support/redis-server.js';
import { NOW, Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { startScheduler } from '../support/spine-scheduler.js';

/** So rare a poll that only a wake-up can be in time. */
const RARELY = { pollInterval: '10s', ttl: '1m' };
const DAY = 86_400_000;
/** Beyond its time a job may be this late on a busy machine; the promise is a few ms. */
const LATE = 1000;

async function open(task: { name: string }, url = sharedRedisUrl()): Promise<Spine> {
  return Spine.open({ url, namespace: namespaceFor(task) });
}

/** How late a run entered its queue, once it did. */
async function lateness(spine: Spine, jobId: string, dueAt: number, timeout = 20_000): Promise<number> {
  const history = await eventually(
    async () => {
      const read = await History.read(spine, 'q');
      expect(read.waiting.has(jobId)).toBe(true);
      return read;
    },
    { timeout },
  );
  return (history.waiting.get(jobId)?.[0] ?? 0) - dueAt;
}

describe('what wakes the loop', () => {
  test.each([300, 2500])('a job stored %d ms ahead fires on time, though the poll is 10 s', async (ahead) => {
    const spine = await open({ name: 'wake' });
    await startScheduler(spine, RARELY);
    // The loop is asleep once its first round is over.
    await eventually(async () => (await spine.client.hlen(spine.keys.fence)) === 256);
    const [answer] = await spine.submit('q', [aJob('a', { time: ahead, relative: true })]);
    const late = await lateness(spine, 'a', answer?.scheduledFor ?? 0);
    expect(late).toBeGreaterThanOrEqual(0);
    expect(late).toBeLessThan(LATE);
  });

  test('a job that is brought forward fires at its new time', async ({ task }) => {
    const spine = await open(task);
    await startScheduler(spine, RARELY);
    await spine.submit('q', [aJob('a')]);
    const { record } = await spine.jobs.reschedule('q', 'a', 400, true, 'r');
    const late = await lateness(spine, 'a', record?.kind === 'job' ? record.at : 0);
    expect(late).toBeGreaterThanOrEqual(0);
    expect(late).toBeLessThan(LATE);
  });

  test('a job that fires while many others are stored meets no older answer (hints in flight)', async ({
    task,
  }) => {
    const spine = await open(task);
    await startScheduler(spine, RARELY);
    const due = new Map<string, number>();
    for (let round = 0; round < 60; round++) {
      const [answer] = await spine.submit('q', [aJob(`a${round}`, { time: 40, relative: true })]);
      due.set(`a${round}`, answer?.scheduledFor ?? 0);
    }
    for (const [id, at] of due) expect(await lateness(spine, id, at)).toBeLessThan(LATE);
    expect((await History.read(spine, 'q')).check(due)).toMatchObject({ lost: [], doubled: [], early: [] });
  });
});

describe('B46 the wake-up is armed again after a lost connection', () => {
  test('a single job in the future fires at its time, nothing else being added', async ({ task }) => {
    const server = await startRedis();
    const spine = await open(task, server.url);
    const proxy = await FaultProxy.start({ port: server.port });
    const scheduler = await startScheduler(spine, { redis: proxy.url });
    const [answer] = await spine.submit('q', [aJob('a', { time: 4000, relative: true })]);
    await proxy.suspend();
    await eventually(() => !scheduler.readiness().ready, { timeout: 10_000 });
    await proxy.resume();
    expect(await lateness(spine, 'a', answer?.scheduledFor ?? 0)).toBeLessThan(LATE);
    // The subscription is back too.
    const [soon] = await spine.submit('q', [aJob('b', { time: 300, relative: true })]);
    expect(await lateness(spine, 'b', soon?.scheduledFor ?? 0)).toBeLessThan(LATE);
    await expectHealthy(spine);
  });
});

describe('B01 timers beyond what a process timer can hold', () => {
  test('days and weeks ahead: nothing fires before its time, everything at it, and the loop does not spin', async ({
    task,
  }) => {
    const server = await startRedis({ appendfsync: 'no' });
    const choices = { clock: 'virtual' } as const;
    const spine = await Spine.open({ url: server.url, namespace: namespaceFor(task), choices });
    await spine.setClock(NOW);
    const delays = { a: 2_147_483_647, b: 2_147_483_648, c: 4_294_972_296, century: 36_500 * DAY };
    await spine.submit(
      'q',
      Object.entries(delays).map(([id, time]) => aJob(id, { time, relative: true })),
    );
    const every = {
      cur: NOW + 66 * DAY,
      curFire: NOW + 66 * DAY,
      next: NOW + 132 * DAY,
      nextFire: NOW + 132 * DAY,
    };
    await spine.schedules.upsert(
      'q',
      'd',
      aSchedule(NOW, { ...every, policies: '{"every":5702400000,"missed":"skip"}' }),
      'r',
    );
    const scheduler = await startScheduler(spine, { scripts: choices, pollInterval: '200ms' });
    const waiting = async () => (await spine.client.lrange(spine.bull('q', 'wait'), 0, -1)).reverse();
    // Five polls a second, and what goes with them.
    expect(await commandsIn(spine, 2000)).toBeLessThan(150);

    const expected: string[] = [];
    const moments: [number, string][] = [
      [delays.a, 'a'],
      [delays.b, 'b'],
      [delays.c, 'c'],
      [66 * DAY, `d@${NOW + 66 * DAY}`],
      [delays.century, 'century'],
    ];
    const owned = await spine.client.hget(spine.keys.fence, '0');
    const range = [{ first: 0, last: 255, servedFrom: 0, fence: owned ?? '' }];
    for (const [after, id] of moments.slice(0, 4)) {
      await spine.setClock(NOW + after - 1);
      // A far timer comes within sight of the heads once a minute; here at once.
      await spine.leader.refreshHeads(range);
      await expect(
        eventually(async () => (await waiting()).includes(id), { timeout: 200 }),
      ).rejects.toThrow();
      await spine.setClock(NOW + after);
      expected.push(id);
      await eventually(async () => expect(await waiting()).toEqual(expected));
    }
    expect((await spine.jobs.get('q', 'century')).record).toMatchObject({ at: NOW + delays.century });
    await eventually(() => expect(scheduler.readiness()).toMatchObject({ ready: true, popped: 4 }));
  });
});

test('an idle scheduler with many pending timers sends fewer than 20 commands a second', async ({ task }) => {
  const server = await startRedis({ appendfsync: 'no' });
  const spine = await open(task, server.url);
  await spine.submit(
    'q',
    jobs(20_000, 'a', (i) => ({ time: DAY + i * 1000, relative: true })),
  );
  await startScheduler(spine);
  // Its first second takes over and re-reads all heads.
  await eventually(async () => (await commandsIn(spine, 1000)) < 40);
  const scripts = async () =>
    Number((await spine.client.info('commandstats')).match(/cmdstat_evalsha:calls=(\d+)/)?.[1]);
  const seconds = 5;
  const before = await scripts();
  const total = (await commandsIn(spine, seconds * 1000)) / seconds;
  const sent = ((await scripts()) - before) / seconds;
  process.stdout.write(`idle: ${sent} scripts a second, ${total} commands with those inside scripts\n`);
  expect(sent).toBeLessThan(5);
  expect(total).toBeLessThan(25);
});

/** Commands that Redis counts in a span of ms, those inside scripts too, without the two that ask. */
async function commandsIn(spine: Spine, ms: number): Promise<number> {
  const read = async () =>
    Number((await spine.client.info('stats')).match(/total_commands_processed:(\d+)/)?.[1]);
  const before = await read();
  const until = performance.now() + ms;
  await eventually(() => performance.now() >= until, { timeout: ms * 5, every: 100 });
  return (await read()) - before - 1;
}
