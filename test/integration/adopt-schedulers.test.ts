import { Worker } from 'bullmq';
import { describe, expect, test } from 'vitest';
import { adoptSchedulers } from '../../src/client/adopt-schedulers.js';
import { storePaused } from '../../src/client/paused-schedule.js';
import { returnSchedules } from '../../src/client/return-schedules.js';
import { nextFireTimes, Scheduler } from '../../src/index.js';
import { MoveScripts } from '../../src/redis/move-scripts.js';
import { bullmqPair } from '../support/bullmq-pair.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { sharedRedisUrl } from '../support/namespace.js';

const HOUR = 3_600_000;
const UTC = { tz: 'UTC' };

describe('Job Schedulers of BullMQ', () => {
  test('become schedules with BullMQ’s own behaviour, template and all; BullMQ keeps nothing', async ({
    task,
  }) => {
    const { stock, ours } = await bullmqPair(task);
    const endDate = Date.now() + 1000 * HOUR;
    await stock.upsertJobScheduler(
      'nightly:eu',
      { pattern: '30 2 * * *', tz: 'Europe/London', endDate, limit: 9 },
      {
        name: 'invoice',
        data: { list: [], n: 1 },
        opts: { attempts: 3, priority: 5, removeOnComplete: true },
      },
    );
    const [report] = await adoptSchedulers(ours, UTC);
    expect(report).toMatchObject({ id: 'nightly:eu', kind: 'added', warnings: [] });
    expect(await stock.getJobSchedulersCount()).toBe(0);
    expect(await stock.getDelayedCount()).toBe(0);
    const info = await ours.schedules.get('nightly:eu').describe();
    expect(info).toMatchObject({
      state: 'scheduled',
      note: undefined,
      definition: {
        cron: ['30 2 * * *'],
        tz: 'Europe/London',
        endDate,
        limit: 9,
        missed: 'latest',
        overlap: 'allow',
      },
      template: {
        name: 'invoice',
        data: { list: [], n: 1 },
        opts: { attempts: 3, priority: 5, removeOnComplete: true },
      },
    });
    expect(info?.next).toBe(
      nextFireTimes({ cron: '30 2 * * *', tz: 'Europe/London' }, { after: Date.now() })[0]?.getTime(),
    );
  });

  test('one that never fires here is told of', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    await stock.upsertJobScheduler('once', { pattern: '30 2 * * *', tz: 'UTC' }, {});
    await ours.backend.shard.client.hset(stock.toKey('repeat:once'), 'endDate', Date.UTC(2020, 0, 1));
    const told = [
      { kind: 'added', warnings: ['it never fires: its endDate 2020-01-01T00:00:00.000Z is over'] },
    ];
    expect(await adoptSchedulers(ours, { ...UTC, dryRun: true })).toMatchObject(told);
    expect(await adoptSchedulers(ours, UTC)).toMatchObject(told);
  });

  test('an every keeps its slots', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    const startDate = Date.now() + 1234 * 60_000 + 567;
    await stock.upsertJobScheduler('tick', { every: 7 * HOUR, startDate }, {});
    expect(await adoptSchedulers(ours, UTC)).toMatchObject([{ kind: 'added' }]);
    const preview = await ours.schedules.get('tick').preview(2);
    expect(preview.map(({ at }) => at)).toEqual([startDate, startDate + 7 * HOUR]);
  });

  test('a pattern without a zone gets the one that is given, and says so', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    await stock.upsertJobScheduler('plain', { pattern: '0 5 * * *' }, {});
    await stock.upsertJobScheduler('days', { pattern: '0 5 */2 * 1', tz: 'UTC' }, {});
    const report = await adoptSchedulers(ours, { tz: 'Asia/Tokyo' });
    expect(report.find(({ id }) => id === 'plain')).toMatchObject({
      definition: { tz: 'Asia/Tokyo' },
      warnings: [expect.stringContaining('no tz')],
    });
    expect(report.find(({ id }) => id === 'days')).toMatchObject({
      definition: { cron: ['0 5 1-31/2 * 1'] },
      warnings: [],
    });
  });

  test('what is left of a limit goes along', async ({ task }) => {
    const { stock, ours, prefix, connection } = await bullmqPair(task);
    let ran = 0;
    const worker = new Worker('q', async () => ++ran, { connection, prefix });
    onCleanup('worker', () => worker.close());
    await stock.upsertJobScheduler('few', { every: 150, limit: 50 }, {});
    await eventually(() => ran >= 3);
    await worker.close();
    const [report] = await adoptSchedulers(ours, UTC);
    // Those that ran, and one that the worker may have fetched or that waits in BullMQ.
    expect([50 - ran, 50 - ran - 1]).toContain(report?.definition?.limit);
  });

  test('a dry run changes nothing', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    await stock.upsertJobScheduler('a', { every: HOUR }, {});
    const foreseen = await adoptSchedulers(ours, { ...UTC, dryRun: true });
    expect(foreseen).toMatchObject([{ id: 'a', kind: 'added' }]);
    expect(await stock.getJobSchedulersCount()).toBe(1);
    expect(await ours.schedules.get('a').describe()).toBeUndefined();
    expect(await adoptSchedulers(ours, UTC)).toEqual(foreseen);
    expect(await adoptSchedulers(ours, UTC)).toEqual([]);
  });

  test('a schedule that stands stays as it is; BullMQ’s goes, and what differs is told', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    await ours.schedules.upsert('same', { cron: '0 6 * * *', missed: 'all' });
    await stock.upsertJobScheduler('same', { pattern: '0 5 * * *', tz: 'UTC' }, {});
    expect(await adoptSchedulers(ours, UTC)).toMatchObject([
      {
        kind: 'kept',
        differences: [
          { option: 'cron', from: '0 5 * * *', to: '0 6 * * *' },
          { option: 'missed', from: 'latest', to: 'all' },
          { option: 'overlap', from: 'allow', to: undefined },
        ],
      },
    ]);
    expect(await stock.getJobSchedulersCount()).toBe(0);
    expect((await ours.schedules.get('same').describe())?.definition.cron).toEqual(['0 6 * * *']);
  });

  test.each(['0 9 */2 * 1', '0 8 * * MON/2', '*/90 * * * *', '0 9 */31 * 1', '5 4 * *'])(
    'a pattern that needs other words here keeps its times, and is told as it was written: %s',
    async (pattern) => {
      const { stock, ours } = await bullmqPair({ name: pattern });
      await stock.upsertJobScheduler('s', { pattern, tz: 'UTC' }, {});
      const before = await stock.getJobScheduler('s');
      const wide = pattern.includes('/90') || pattern.includes('/31');
      const [report] = await adoptSchedulers(ours, UTC);
      expect(report).toMatchObject({ kind: 'added' });
      if (wide) expect(report?.warnings).toEqual([expect.stringMatching(/: \*\/\d+: the step leads beyond/)]);
      expect(await ours.getJobScheduler('s')).toMatchObject({ pattern, next: before?.next });
      // And back.
      expect(await returnSchedules(ours)).toMatchObject([{ kind: 'returned', notTranslated: [] }]);
      expect(await stock.getJobScheduler('s')).toMatchObject({ pattern, next: before?.next });
    },
  );

  test('what cannot be said here stays in BullMQ', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    await stock.upsertJobScheduler('run@17', { every: HOUR }, {});
    const { shard } = ours.backend;
    await shard.client.zadd(ours.toKey('repeat'), Date.now() + HOUR, 'old:1:::* * * * *');
    await shard.client.hset(ours.toKey('repeat:old:1:::* * * * *'), 'name', 'old', 'pattern', '* * * * *');
    const report = await adoptSchedulers(ours, UTC);
    expect(Object.fromEntries(report.map(({ id, kind, reason }) => [id, `${kind}: ${reason}`]))).toEqual({
      'run@17': expect.stringMatching(/^refused: .*ends like/),
      'old:1:::* * * * *': expect.stringMatching(/^refused: .*older BullMQ/),
    });
    expect(await shard.client.zcard(ours.toKey('repeat'))).toBe(2);
  });
});

describe('no tick is lost or doubled', () => {
  test('a busy scheduler is moved under a running worker: each slot has one run', async ({ task }) => {
    const { stock, ours, prefix, connection } = await bullmqPair(task);
    const EVERY = 300;
    const slots: number[] = [];
    const worker = new Worker(
      'q',
      async (job) => {
        slots.push(Number(/(\d+)$/.exec(job.id ?? '')?.[1]));
      },
      { connection, prefix },
    );
    onCleanup('worker', () => worker.close());
    const scheduler = new Scheduler({ redis: sharedRedisUrl(), prefix, allowVolatile: true });
    await scheduler.start();
    try {
      await stock.upsertJobScheduler('tick', { every: EVERY }, {});
      await eventually(() => slots.length >= 3);
      expect(await adoptSchedulers(ours, UTC)).toMatchObject([{ kind: 'added' }]);
      const atMove = slots.length;
      await eventually(() => slots.length >= atMove + 5);
    } finally {
      await scheduler.stop();
    }
    expect(new Set(slots).size).toBe(slots.length);
    // BullMQ's first slot is the moment of creation; its second is the next multiple.
    const steady = slots.slice(1);
    const expected = Array.from({ length: steady.length }, (_, n) => (steady[0] ?? 0) + n * EVERY);
    expect(steady).toEqual(expected);
  });

  test('a moving that broke off after the schedule was stored is finished by a repeat', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    await stock.upsertJobScheduler('a', { pattern: '0 5 * * *', tz: 'UTC' }, {});
    const policies = { cron: ['0 5 * * *'], missed: 'latest', overlap: 'allow' } as const;
    const note = 'moving from BullMQ: repeat the import';
    await storePaused(ours, 'a', { ...policies, cron: ['0 5 * * *'] }, {}, note);
    expect(await adoptSchedulers(ours, { ...UTC, dryRun: true })).toMatchObject([
      { id: 'a', kind: 'finished' },
    ]);
    expect(await adoptSchedulers(ours, UTC)).toMatchObject([{ id: 'a', kind: 'finished' }]);
    expect(await stock.getJobSchedulersCount()).toBe(0);
    expect(await ours.schedules.get('a').describe()).toMatchObject({ state: 'scheduled', note: undefined });
  });

  test('one that broke off after BullMQ’s was removed is finished as well', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    await stock.upsertJobScheduler('a', { pattern: '0 5 * * *', tz: 'UTC' }, {});
    const note = 'moving from BullMQ: repeat the import';
    await storePaused(ours, 'a', { cron: ['0 5 * * *'], missed: 'latest', overlap: 'allow' }, {}, note);
    await ours.schedules.upsert('other', { cron: '0 5 * * *', missed: 'skip' });
    await ours.schedules.get('other').pause({ note: 'a person’s' });
    await new MoveScripts(ours.backend.shard).dropJobScheduler('q', 'a');
    expect(await adoptSchedulers(ours, UTC)).toMatchObject([{ id: 'a', kind: 'finished' }]);
    expect((await ours.schedules.get('a').describe())?.state).toBe('scheduled');
    expect((await ours.schedules.get('other').describe())?.state).toBe('paused');
  });

  test('a run that BullMQ handed over already is not run again', async ({ task }) => {
    const { stock, ours } = await bullmqPair(task);
    await stock.upsertJobScheduler('a', { every: HOUR }, {});
    // The first run of an every is due at once: it waits for a worker, and none is there.
    expect(await stock.getWaitingCount()).toBe(1);
    const [waiting] = await stock.getWaiting();
    const slot = Number(/(\d+)$/.exec(waiting?.id ?? '')?.[1]);
    await adoptSchedulers(ours, UTC);
    expect(await stock.getWaitingCount()).toBe(1);
    expect((await ours.schedules.get('a').describe())?.next).toBe(slot + HOUR);
  });
});
