import { describe, expect, test } from 'vitest';
import { CalendarStore } from '../../src/redis/calendar-store.js';
import { Planner } from '../../src/scheduler/planner.js';
import { aJob, aSchedule, jobs } from '../support/builders.js';
import { namespaceFor } from '../support/namespace.js';
import { startRedis } from '../support/redis-server.js';
import { NOW, Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { LineLogger } from '../support/spine-scheduler.js';
import { timeZonesOf } from '../support/time-zones.js';

const LONG = process.env.CARILLON_LONG === '1';
/** Virtual seconds of one half; the windows are scaled with it. */
const HALF = LONG ? 3600 : 240;
/** One-time jobs a second, of either kind of id: enough to fill every bucket within a window. */
const JOBS = 30;
const SCHEDULES = LONG ? 20 : 10;

async function setup(task: { name: string }) {
  const server = await startRedis({ appendfsync: 'no' });
  const spine = await Spine.open({
    url: server.url,
    namespace: namespaceFor(task),
    choices: { clock: 'virtual' },
  });
  await spine.setClock(NOW);
  return spine;
}

async function usage(spine: Spine) {
  const memory = Number((await spine.client.info('memory')).match(/used_memory:(\d+)/)?.[1]);
  return { keys: await spine.client.dbsize(), memory };
}

describe('B50 nothing of ours grows for ever', () => {
  test(`${SCHEDULES} schedules of every second and one-time jobs: keys and memory level off`, async ({
    task,
  }) => {
    const spine = await setup(task);
    const owned = await spine.lead();
    const planner = new Planner(new LineLogger(), new CalendarStore(spine.shard), timeZonesOf(spine));
    const policies = '{"every":1000,"missed":"skip"}';
    const ticks = { cur: NOW + 1000, curFire: NOW + 1000, next: NOW + 2000, nextFire: NOW + 2000, policies };
    for (let i = 0; i < SCHEDULES; i++)
      await spine.schedules.upsert('q', `s${i}`, aSchedule(NOW, ticks), `r${i}`);
    let popped = 0;

    /** One virtual second: what is due fires, is run and removed; what is asked is planned; the house is kept. */
    const second = async (at: number) => {
      await spine.setClock(NOW + at * 1000);
      await spine.submit('q', [
        ...jobs(JOBS, `j-${at}-`, (i) => ({ time: NOW + at * 1000 + 500 + i })),
        ...jobs(JOBS, `g-${at}-`, () => ({ time: NOW + at * 1000, chosen: false })),
      ]);
      for (;;) {
        const reply = await spine.pop(owned);
        popped += reply.popped;
        if (reply.planned.length > 0) await planner.plan(spine.leader, owned, reply.planned);
        else if (reply.popped === 0) break;
      }
      // A worker with removeOnComplete runs everything at once.
      const ids = await spine.client.lrange(spine.bull('q', 'wait'), 0, -1);
      if (ids.length > 0) {
        await spine.client.del(spine.bull('q', 'wait'), ...ids.map((id) => spine.bull('q', id)));
      }
      if (at % 60 === 0) await spine.leader.rotateSpent((HALF / 4) * 1000, (HALF / 8) * 1000, HALF * 250);
    };
    for (let at = 1; at <= HALF; at++) await second(at);
    const first = await usage(spine);
    for (let at = HALF + 1; at <= 2 * HALF; at++) await second(at);
    const secondHalf = await usage(spine);

    expect(popped).toBe(2 * HALF * (SCHEDULES + JOBS) - JOBS);
    expect(secondHalf.keys / first.keys).toBeLessThan(1.01);
    // Beside the queue's event stream, which BullMQ trims in blocks.
    expect(secondHalf.memory / first.memory).toBeLessThan(LONG ? 1.01 : 1.1);
    expect(await spine.client.xlen(spine.bull('q', 'events'))).toBeLessThan(10_000 + 200);
    await expectHealthy(spine);
  }, 600_000);

  test('1,000 schedules made and deleted: nothing is left but the history and the spent ids, and these go', async ({
    task,
  }) => {
    const spine = await setup(task);
    await spine.submit('q', [aJob('first')]);
    await spine.jobs.cancel('q', 'first', '', 'c');
    const before = await usage(spine);
    for (let i = 0; i < 1000; i++) {
      await spine.schedules.upsert('q', `s${i}`, aSchedule(NOW), `u${i}`);
      await spine.jobs.cancel('q', `s${i}`, '', `c${i}`);
    }
    expect(await spine.client.hget(spine.keys.queues, 'q:schedules')).toBe('0');
    for (const hours of [1, 2, 3]) {
      await spine.setClock(NOW + hours * 3_600_000);
      await spine.leader.rotateSpent(3_600_000, 600_000, 1000);
    }
    expect((await usage(spine)).keys).toBeLessThanOrEqual(before.keys);
    expect(await spine.client.xlen(spine.keys.history)).toBeLessThan(10_000 + 200);
    await expectHealthy(spine);
  }, 60_000);
});
