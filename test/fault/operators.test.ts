import { Queue } from 'bullmq';
import { describe, expect, onTestFinished, test } from 'vitest';
import { aJob, aSchedule, jobs } from '../support/builders.js';
import { eventually } from '../support/eventually.js';
import { History, SPOTLESS } from '../support/history.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { NOW, Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { startScheduler } from '../support/spine-scheduler.js';
import { CountingWorker } from '../support/spine-worker.js';

/** BullMQ's own handle of a queue, as an operator has it. */
function operator(spine: Spine, queue: string): Queue {
  const { hostname, port } = new URL(spine.url);
  const handle = new Queue(queue, {
    prefix: spine.prefix,
    connection: { host: hostname, port: Number(port) },
  });
  onTestFinished(() => handle.close());
  return handle;
}

describe.each(['on', 'off'] as const)(
  'what is done on BullMQ’s side neither repeats nor blocks a run, fence check %s',
  (fence) => {
    const choices = { fence };

    test('removeOnComplete: true: each run once, though its hash is gone at once', async ({ task }) => {
      const spine = await Spine.open({ url: sharedRedisUrl(), namespace: namespaceFor(task), choices });
      await History.keep(spine, 'q');
      await startScheduler(spine, { scripts: choices });
      const worker = await CountingWorker.start(spine, 'q');
      const dueAt = (await spine.now()) + 500;
      const opts = '{"attempts":1,"removeOnComplete":true}';
      const items = jobs(1000, 'a', (i) => ({ time: dueAt + (i % 10) * 20, opts }));
      await spine.submit('q', items, { requestId: 'r' });
      // The producer's library repeats its call all the while.
      const expected = new Map(items.map(({ jobId, time }) => [jobId, time]));
      while (worker.starts.size < 1000) {
        const answers = await spine.submit('q', items, { requestId: 'r' });
        expect(new Set(answers.map(({ answer }) => answer))).toEqual(new Set(['created']));
      }
      await eventually(async () => (await spine.client.llen(spine.bull('q', 'active'))) === 0);
      await spine.submit('q', items, { requestId: 'r' });
      expect((await History.read(spine, 'q')).check(expected)).toEqual(SPOTLESS);
      expect(worker.doubled).toEqual([]);
      await expectHealthy(spine);
    }, 60_000);

    test('obliterate and clean between pops: what was not due yet fires all the same, nothing else comes back', async ({
      task,
    }) => {
      const spine = await Spine.open({ url: sharedRedisUrl(), namespace: namespaceFor(task), choices });
      const scheduler = await startScheduler(spine, { scripts: choices });
      const queue = operator(spine, 'q');
      const start = (await spine.now()) + 300;
      const items = jobs(600, 'a', (i) => ({ time: start + i * 5 }));
      await spine.submit('q', items);
      let gone = 0;
      while (scheduler.readiness().popped < 600) {
        const before = await spine.client.llen(spine.bull('q', 'wait'));
        if (gone % 2 === 0) await queue.obliterate({ force: true });
        else await queue.clean(0, 10_000, 'wait');
        if (before > 0) gone += 1;
      }
      expect(gone).toBeGreaterThan(3);
      expect(scheduler.readiness()).toMatchObject({
        ready: true,
        popped: 600,
        quarantined: 0,
        brokenQueues: [],
      });
      await queue.obliterate({ force: true });
      // The ids are spent: the same jobs are not run again within the window.
      const again = await spine.submit('q', items);
      expect(new Set(again.map(({ answer }) => answer))).toEqual(new Set(['fired']));
      expect(await spine.client.exists(spine.bull('q', 'wait'))).toBe(0);
      await expectHealthy(spine);
    }, 60_000);

    test('B14 a handed-over tick removed through BullMQ’s own API: the schedule goes on', async ({
      task,
    }) => {
      const spine = await Spine.virtual(task, choices);
      const queue = operator(spine, 'q');
      await spine.schedules.upsert('q', 's', aSchedule(NOW), 'r');
      await startScheduler(spine, { scripts: { ...choices, clock: 'virtual' }, pollInterval: '50ms' });
      for (let tick = 1; tick <= 4; tick++) {
        const scheduledFor = NOW + tick * 60_000;
        await spine.setClock(scheduledFor);
        const id = `s@${scheduledFor}`;
        await eventually(async () =>
          expect(await spine.client.lrange(spine.bull('q', 'wait'), 0, -1)).toEqual([id]),
        );
        const job = await queue.getJob(id);
        if (tick % 2 === 0) await job?.remove();
        else await queue.obliterate({ force: true });
        await eventually(async () =>
          expect((await spine.jobs.get('q', 's')).record).toMatchObject({
            last: scheduledFor,
            cur: scheduledFor + 60_000,
            next: scheduledFor + 120_000,
          }),
        );
      }
      await expectHealthy(spine);
    }, 60_000);
  },
);

test('a cancelled job does not fire, whatever comes after', async ({ task }) => {
  const spine = await Spine.open({ url: sharedRedisUrl(), namespace: namespaceFor(task) });
  await History.keep(spine, 'q');
  await startScheduler(spine);
  const dueAt = (await spine.now()) + 2000;
  const items = jobs(200, 'a', () => ({ time: dueAt }));
  await spine.submit('q', items, { requestId: 'r' });
  await Promise.all(items.map(({ jobId }) => spine.jobs.cancel('q', jobId, 'no more', `c-${jobId}`)));
  const repeated = await spine.submit('q', items, { requestId: 'r' });
  expect(new Set(repeated.map(({ answer }) => answer))).toEqual(new Set(['created']));
  await spine.submit('q', [aJob('after', { time: dueAt + 300 })]);
  await eventually(async () => (await spine.client.llen(spine.bull('q', 'wait'))) > 0);
  expect(await spine.client.lrange(spine.bull('q', 'wait'), 0, -1)).toEqual(['after']);
  await expectHealthy(spine);
});
