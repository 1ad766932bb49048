import { expect, onTestFinished, test } from 'vitest';
import { isCarillonError } from '../../src/domain/errors.js';
import { aJob, jobs } from '../support/builders.js';
import { eventually } from '../support/eventually.js';
import { History, SPOTLESS } from '../support/history.js';
import { namespaceFor } from '../support/namespace.js';
import { startRedis } from '../support/redis-server.js';
import { Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { startScheduler } from '../support/spine-scheduler.js';
import { CountingWorker } from '../support/spine-worker.js';

const LONG = process.env.CARILLON_LONG === '1';
const KILLS = LONG ? 20 : 4;

test('I1 Redis killed -9 with AOF always, under load: nothing acknowledged is lost, nothing is early or twice', async ({
  task,
}) => {
  const server = await startRedis({ appendfsync: 'always' });
  const spine = await Spine.open({ url: server.url, namespace: namespaceFor(task) });
  await History.keep(spine, 'q');
  await startScheduler(spine);
  // A run whose hand-out to the worker was lost is stalled; BullMQ's own 30 s would be waited for here.
  const worker = await CountingWorker.start(spine, 'q', {
    lockDuration: 2000,
    stalledInterval: 1000,
    maxStalledCount: 50,
  });
  const acknowledged = new Map<string, number>();
  let producing = true;
  /** Submits one after the other, due now or soon; what fails is not acknowledged, and is not repeated. */
  const produce = async (stem: string) => {
    const producer = await Spine.open({
      url: server.url,
      namespace: spine.namespace,
      connection: { maxRetriesPerRequest: 1, commandTimeout: 1000 },
    });
    for (let i = 0; producing; i++) {
      const bulk = jobs(5, `${stem}-${i}-`, (k) => ({ time: k * 150, relative: true }));
      const answers = await producer.submit('q', bulk).catch((error: unknown) => {
        expect(isCarillonError(error, 'REDIS_UNAVAILABLE')).toBe(true);
        return [];
      });
      for (const { jobId, scheduledFor } of answers) acknowledged.set(jobId, scheduledFor);
      if (answers.length === 0) await eventually(() => spine.client.status === 'ready');
    }
  };
  const producers = [produce('a'), produce('b'), produce('c')];
  for (let kill = 0; kill < KILLS; kill++) {
    const before = acknowledged.size;
    await eventually(() => acknowledged.size > before + 200, { timeout: 60_000 });
    await server.kill9();
    await server.restart();
  }
  producing = false;
  await Promise.all(producers);
  expect(acknowledged.size).toBeGreaterThan(KILLS * 200);
  await eventually(async () => Number(await spine.client.hget(spine.keys.queues, 'q:scheduled')) === 0, {
    timeout: 60_000,
  });
  await eventually(() => [...acknowledged.keys()].every((id) => worker.starts.has(id)), { timeout: 60_000 });
  const verdict = (await History.read(spine, 'q')).check(acknowledged);
  // A call that failed may have run: such jobs were nobody's promise, but they too enter once at most.
  expect({ ...verdict, strangers: [] }).toEqual(SPOTLESS);
  const strangers = new Map(verdict.strangers.map((id) => [id, undefined]));
  expect((await History.read(spine, 'q')).check(strangers).doubled).toEqual([]);
  await expectHealthy(spine);
}, 240_000);

test('LOADING: a Redis that loads its data is waited for, and says so; calls fail soon and clearly', async ({
  task,
}) => {
  // Each key takes long to load, so that loading takes seconds.
  const server = await startRedis({ args: ['--key-load-delay', '200'] });
  const spine = await Spine.open({ url: server.url, namespace: namespaceFor(task) });
  await History.keep(spine, 'q');
  const scheduler = await startScheduler(spine);
  const filler = spine.client.pipeline();
  for (let i = 0; i < 20_000; i++) filler.set(`filler-${i}`, 'x');
  await filler.exec();
  const dueAt = (await spine.now()) + 4000;
  await spine.submit(
    'q',
    jobs(200, 'a', () => ({ time: dueAt })),
  );
  const impatient = await Spine.open({
    url: server.url,
    namespace: spine.namespace,
    connection: { enableReadyCheck: false, maxRetriesPerRequest: 1, commandTimeout: 8000 },
  });
  const refusals: string[] = [];
  await server.kill9();
  const restarted = server.restart();
  await eventually(() => !scheduler.readiness().ready);
  await eventually(
    async () => {
      await impatient.submit('q', [aJob('late')]).catch((error: Error) => {
        expect(isCarillonError(error, 'REDIS_UNAVAILABLE')).toBe(true);
        refusals.push(error.message);
      });
      expect(refusals).toContainEqual(expect.stringContaining('LOADING'));
    },
    { timeout: 30_000 },
  );
  await restarted;
  await eventually(() => scheduler.readiness().ready, { timeout: 50_000 });
  const expected = new Map(Array.from({ length: 200 }, (_, i) => [`a${i}`, dueAt]));
  await eventually(async () => {
    expect((await History.read(spine, 'q')).check(expected)).toEqual(SPOTLESS);
  });
  await expectHealthy(spine);
}, 120_000);

test('B42 Redis frozen for 15 s: calls fail within their time-out, readiness goes false, all is well 10 s after', async ({
  task,
}) => {
  const server = await startRedis();
  const spine = await Spine.open({ url: server.url, namespace: namespaceFor(task) });
  await History.keep(spine, 'q');
  const scheduler = await startScheduler(spine);
  const producer = await Spine.open({
    url: server.url,
    namespace: spine.namespace,
    connection: { maxRetriesPerRequest: 1, commandTimeout: 2000 },
  });
  const dueAt = (await spine.now()) + 3000;
  await producer.submit(
    'q',
    jobs(300, 'a', () => ({ time: dueAt })),
  );
  server.sigstop();
  onTestFinished(() => server.sigcont());
  const frozenAt = performance.now();
  await expect(producer.submit('q', [aJob('b')])).rejects.toMatchObject({ code: 'REDIS_UNAVAILABLE' });
  expect(performance.now() - frozenAt).toBeLessThan(10_000);
  await eventually(() => !scheduler.readiness().ready, { timeout: 10_000 });
  // Its trust ends by the local clock, with nobody to ask.
  await eventually(() => !scheduler.readiness().leading, { timeout: 30_000 });
  await eventually(() => performance.now() - frozenAt > 15_000, { timeout: 20_000 });
  server.sigcont();
  const thawedAt = performance.now();
  await eventually(() => scheduler.readiness().ready && scheduler.readiness().leading, { timeout: 50_000 });
  const expected = new Map(Array.from({ length: 300 }, (_, i) => [`a${i}`, dueAt]));
  await eventually(async () => {
    expect((await History.read(spine, 'q')).check(expected)).toEqual(SPOTLESS);
  });
  process.stdout.write(
    `working again after a frozen Redis: ${Math.round(performance.now() - thawedAt)} ms\n`,
  );
  await expectHealthy(spine);
}, 120_000);
