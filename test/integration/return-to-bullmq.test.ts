import { type Job, Worker } from 'bullmq';
import { describe, expect, test } from 'vitest';
import { adoptDelayed } from '../../src/client/adopt-delayed.js';
import { adoptSchedulers } from '../../src/client/adopt-schedulers.js';
import { returnDelayed } from '../../src/client/return-delayed.js';
import { returnSchedules } from '../../src/client/return-schedules.js';
import { Scheduler } from '../../src/index.js';
import { bullmqPair } from '../support/bullmq-pair.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { sharedRedisUrl } from '../support/namespace.js';

const HOUR = 3_600_000;
const NOTHING = { moved: 0, due: 0, left: 0, examples: [] };

const shown = (job: Job | undefined) =>
  job && {
    id: job.id,
    name: job.name,
    data: job.data,
    timestamp: job.timestamp,
    delay: job.delay,
    priority: job.priority,
    opts: job.opts,
  };

describe('jobs of the timers', () => {
  test('become delayed jobs of BullMQ, as BullMQ would have stored them', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    const opts = { attempts: 3, backoff: { type: 'fixed', delay: 9 }, priority: 4, removeOnFail: 5 };
    await ours.add('send', { list: [], n: 1.5 }, { ...opts, jobId: 'a', delay: HOUR });
    await ours.add('send', {}, { delay: 2 * HOUR });
    const before = await ours.getDelayed();
    expect(await returnDelayed(ours)).toEqual({ ...NOTHING, moved: 2 });
    expect((await stock.getDelayed()).map(shown)).toEqual(
      before.map((job) => shown(job)).map((job) => ({ ...job, opts: { ...job?.opts, jobId: job?.id } })),
    );
    expect(await ours.backend.pending.counts()).toMatchObject({ scheduled: 0 });
    // There and back again.
    expect(await adoptDelayed(ours)).toMatchObject({ moved: 2, renamed: 0 });
    expect((await ours.getDelayed()).map(({ id }) => id)).toEqual(before.map(({ id }) => id));
  });

  test('a stock worker runs them without a scheduler', async ({ task }) => {
    const { ours, prefix, connection } = await bullmqPair(task);
    const ran: string[] = [];
    await ours.addBulk(
      Array.from({ length: 20 }, (_, n) => ({
        name: 'x',
        data: n,
        opts: { delay: 1000 + n, jobId: `j${n}` },
      })),
    );
    expect(await returnDelayed(ours, { dryRun: true })).toEqual({ ...NOTHING, moved: 20 });
    expect(await returnDelayed(ours)).toEqual({ ...NOTHING, moved: 20 });
    const worker = new Worker('q', async (job) => ran.push(`${job.id}`), { connection, prefix });
    onCleanup('worker', () => worker.close());
    await eventually(() => expect(ran).toHaveLength(20));
    expect(ran).toEqual(Array.from({ length: 20 }, (_, n) => `j${n}`));
  });

  test('deduplication goes along', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    await ours.add('x', {}, { jobId: 'a', delay: HOUR, deduplication: { id: 'd', ttl: HOUR } });
    await returnDelayed(ours);
    expect(await stock.getDeduplicationJobId('d')).toBe('a');
    expect((await stock.add('x', {}, { delay: HOUR, deduplication: { id: 'd', ttl: HOUR } })).id).toBe('a');
    expect(await ours.backend.shard.client.hlen(ours.backend.shard.keys.dedup('q'))).toBe(0);
  });

  test('a job with a deadline stays: BullMQ would run it, however late', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    await ours.add('x', {}, { jobId: 'a', delay: HOUR, deadline: Date.now() + 2 * HOUR });
    expect(await returnDelayed(ours)).toEqual({
      ...NOTHING,
      left: 1,
      examples: [{ id: 'a', reason: 'it has a deadline, which BullMQ does not know' }],
    });
    expect(await stock.getJob('a')).toBeUndefined();
    expect(await ours.getJobState('a')).toBe('delayed');
  });

  test('paused jobs stay, and one whose id BullMQ holds', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    await ours.add('x', {}, { jobId: 'resting', delay: HOUR });
    await ours.pauseJob('resting');
    await ours.add('x', { ours: true }, { jobId: 'taken', delay: HOUR });
    await stock.add('x', { theirs: true }, { jobId: 'taken', delay: HOUR });
    const { moved, examples } = await returnDelayed(ours);
    expect(moved).toBe(0);
    expect(Object.fromEntries(examples.map(({ id, reason }) => [id, reason]))).toEqual({
      resting: 'it is paused',
      taken: 'BullMQ holds another job under this id',
    });
    expect((await ours.getJob('taken'))?.data).toEqual({ ours: true });
  });
});

describe('schedules', () => {
  test('become Job Schedulers that fire at the same times', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    await ours.schedules.upsert(
      'nightly',
      { cron: '30 2 * * *', tz: 'Europe/London', missed: 'latest', overlap: 'allow', limit: 5 },
      { name: 'invoice', data: { n: 1 }, opts: { attempts: 2 } },
    );
    await ours.schedules.upsert('tick', {
      every: '7h',
      anchor: Date.now() + 61_234,
      missed: 'latest',
      overlap: 'allow',
    });
    await ours.schedules.upsert('hashed', { cron: 'H H * * *', missed: 'latest', overlap: 'allow' });
    const before = new Map<string, number | undefined>();
    for await (const { id, next } of ours.schedules.list()) before.set(id, next);
    expect(await returnSchedules(ours)).toEqual([
      expect.objectContaining({ id: 'hashed', kind: 'returned', notTranslated: [] }),
      {
        id: 'nightly',
        kind: 'returned',
        form: { pattern: '30 2 * * *', tz: 'Europe/London', limit: 5 },
        notTranslated: [],
      },
      expect.objectContaining({ id: 'tick', kind: 'returned', notTranslated: [] }),
    ]);
    const schedulers = await stock.getJobSchedulers();
    expect(new Map(schedulers.map(({ key, next }) => [key, next]))).toEqual(before);
    expect(await stock.getJobScheduler('nightly')).toMatchObject({
      name: 'invoice',
      limit: 5,
      template: { data: { n: 1 }, opts: { attempts: 2 } },
    });
    expect(await ours.getJobSchedulersCount()).toBe(0);
    // There and back again.
    await adoptSchedulers(ours, { tz: 'UTC' });
    const after = new Map<string, number | undefined>();
    for await (const { id, next } of ours.schedules.list()) after.set(id, next);
    expect(after).toEqual(before);
  });

  test('what BullMQ does not do is listed', async ({ task }) => {
    const { ours } = await bullmqPair(task);
    await ours.schedules.upsert('a', {
      cron: '0 5 * * *',
      missed: 'skip',
      jitter: '5m',
      gap: 'skip',
      pauseOnFailure: 3,
      tags: ['x'],
    });
    const [report] = await returnSchedules(ours, { dryRun: true });
    expect([...(report?.notTranslated ?? [])].sort()).toEqual([
      'gap "skip"',
      'jitter "5m"',
      'missed "skip"',
      'overlap "skip"',
      'pauseOnFailure 3',
      'tags ["x"]',
    ]);
    expect(await ours.getJobSchedulersCount()).toBe(1);
  });

  test('what BullMQ cannot have stays a schedule', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    const policies = { missed: 'latest', overlap: 'allow' } as const;
    await ours.schedules.upsert('several', { crons: ['0 5 * * *', '0 9 * * 1'], ...policies });
    await ours.schedules.upsert('both', { cron: '0 5 */2 * 1', ...policies });
    await ours.schedules.upsert('workday', { cron: '0 5 15W * *', ...policies });
    await ours.schedules.upsert('resting', { cron: '0 5 * * *', ...policies });
    await ours.schedules.get('resting').pause({ note: 'holidays' });
    const report = await returnSchedules(ours);
    expect(Object.fromEntries(report.map(({ id, kind, reason }) => [id, `${kind}: ${reason}`]))).toEqual({
      several: expect.stringMatching(/^refused: .*several expressions/),
      both: expect.stringMatching(/^refused: .*at other times/),
      workday: expect.stringMatching(/^refused: BullMQ does not take/),
      resting: expect.stringMatching(/^refused: it is paused/),
    });
    expect(await stock.getJobSchedulersCount()).toBe(0);
    expect((await ours.schedules.get('both').describe())?.state).toBe('scheduled');
    expect((await ours.schedules.get('resting').describe())?.note).toBe('holidays');
  });

  test('where clocks change BullMQ has other rules: what it would fire elsewhere stays', async ({ task }) => {
    const { ours } = await bullmqPair(task);
    const policies = { missed: 'latest', overlap: 'allow' } as const;
    const timings = {
      daily: { cron: '30 9 * * *', tz: 'America/New_York' },
      troll: { cron: '30 2 25-31 10 *', tz: 'Antarctica/Troll' },
      twice: { cron: '30 1 * * *', tz: 'Europe/London', fold: 'both' },
    } as const;
    for (const [id, timing] of Object.entries(timings))
      await ours.schedules.upsert(id, { ...timing, ...policies });
    const report = await returnSchedules(ours, { dryRun: true });
    const refused = report.filter(({ kind }) => kind === 'refused');
    expect(refused.map(({ id }) => id)).toEqual(['troll', 'twice']);
    for (const { reason } of refused) expect(reason).toMatch(/ in \w+\/\w+ at other times: at /);
  });

  test('a moving that broke off is finished by a repeat', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    await ours.schedules.upsert('a', { cron: '0 5 * * *', missed: 'latest', overlap: 'allow' });
    await ours.schedules.get('a').pause({ note: 'moving to BullMQ: repeat the export' });
    await stock.upsertJobScheduler('a', { pattern: '0 5 * * *', tz: 'UTC' }, {});
    expect(await returnSchedules(ours)).toMatchObject([{ id: 'a', kind: 'returned' }]);
    expect(await ours.schedules.get('a').describe()).toBeUndefined();
    expect(await stock.getJobSchedulersCount()).toBe(1);
  });

  test('a busy one is moved under a running worker: each slot has one run', async ({ task }) => {
    const { ours, prefix, connection } = await bullmqPair(task);
    const EVERY = 300;
    const slots: number[] = [];
    const worker = new Worker('q', async (job) => slots.push(Number(/(\d+)$/.exec(job.id ?? '')?.[1])), {
      connection,
      prefix,
    });
    onCleanup('worker', () => worker.close());
    const scheduler = new Scheduler({ redis: sharedRedisUrl(), prefix, allowVolatile: true });
    await scheduler.start();
    try {
      await ours.schedules.upsert('tick', { every: EVERY, missed: 'latest', overlap: 'allow' });
      await eventually(() => slots.length >= 3);
      expect(await returnSchedules(ours)).toMatchObject([{ kind: 'returned' }]);
      const atMove = slots.length;
      await eventually(() => slots.length >= atMove + 5);
    } finally {
      await scheduler.stop();
    }
    const expected = Array.from({ length: slots.length }, (_, n) => (slots[0] ?? 0) + n * EVERY);
    expect(slots).toEqual(expected);
  });
});
