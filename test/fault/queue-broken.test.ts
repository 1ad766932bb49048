import { describe, expect, test } from 'vitest';
import { aJob, jobs } from '../support/builders.js';
import { eventually } from '../support/eventually.js';
import { History, SPOTLESS } from '../support/history.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { SchedulerProcess } from '../support/spine-process.js';
import { startScheduler } from '../support/spine-scheduler.js';

const LONG = process.env.CARILLON_LONG === '1';
const BROKEN = LONG ? 100_000 : 5000;
const GOOD = 1000;

describe.each(['on', 'off'] as const)('a queue key of the wrong type, fence check %s', (fence) => {
  async function setup(task: { name: string }) {
    const spine = await Spine.open({
      url: sharedRedisUrl(),
      namespace: namespaceFor(task),
      choices: { fence },
    });
    await History.keep(spine, 'good');
    return spine;
  }
  const count = async (spine: Spine, field: string) =>
    Number(await spine.client.hget(spine.keys.queues, field));

  test(`${BROKEN} due of a broken queue before ${GOOD} good ones: that queue is parked, the others flow, cured it resumes`, async ({
    task,
  }) => {
    const spine = await setup(task);
    await spine.client.set(spine.bull('broken', 'wait'), 'not a list');
    const dueAt = (await spine.now()) + 1500;
    await spine.submit(
      'broken',
      jobs(BROKEN, 'b', () => ({ time: dueAt })),
    );
    // Behind all of them, as the fire time goes.
    await spine.submit(
      'good',
      jobs(GOOD, 'g', () => ({ time: dueAt + 200 })),
    );
    const scheduler = await startScheduler(spine, { scripts: { fence } });
    const good = new Map(Array.from({ length: GOOD }, (_, i) => [`g${i}`, dueAt + 200]));
    await eventually(async () => expect((await History.read(spine, 'good')).check(good)).toEqual(SPOTLESS), {
      timeout: 50_000,
      every: 100,
    });
    await eventually(async () => expect(await count(spine, 'broken:parked')).toBe(BROKEN), {
      timeout: 50_000,
    });
    await eventually(() =>
      expect(scheduler.readiness()).toMatchObject({ ready: true, brokenQueues: ['broken'] }),
    );
    await expectHealthy(spine, 'queue', 'parked');

    // What is due now is kept too, and answered as ever.
    const [answer] = await spine.submit('broken', [aJob('now', { time: 1 })]);
    expect(answer).toMatchObject({ answer: 'created' });

    await spine.client.del(spine.bull('broken', 'wait'));
    await History.keep(spine, 'broken');
    const all = new Map([...Array(BROKEN).keys()].map((i): [string, number] => [`b${i}`, dueAt]));
    all.set('now', 1);
    await eventually(async () => expect((await History.read(spine, 'broken')).check(all)).toEqual(SPOTLESS), {
      timeout: 120_000,
      every: 200,
    });
    await eventually(() => expect(scheduler.readiness().brokenQueues).toEqual([]));
    await expectHealthy(spine);
  }, 240_000);

  test('parked by one scheduler, found and resumed by the next one', async ({ task }) => {
    const spine = await setup(task);
    await spine.client.set(spine.bull('broken', 'events'), 'not a stream');
    const dueAt = (await spine.now()) + 300;
    await spine.submit(
      'broken',
      jobs(50, 'b', () => ({ time: dueAt })),
    );
    const first = await SchedulerProcess.start(spine, { scripts: { fence } });
    await eventually(async () => expect(await count(spine, 'broken:parked')).toBe(50));
    await first.node.kill9();
    await spine.client.del(spine.bull('broken', 'events'));
    await startScheduler(spine, { takeOver: true, scripts: { fence } });
    await eventually(async () => expect(await spine.client.llen(spine.bull('broken', 'wait'))).toBe(50));
    expect(await spine.client.hget(spine.keys.queues, 'broken:broken')).toBeNull();
    await expectHealthy(spine);
  }, 60_000);
});
