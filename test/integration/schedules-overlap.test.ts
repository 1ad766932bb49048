import { describe, expect, test } from 'vitest';
import type { ScheduleDefinition } from '../../src/domain/schedule.js';
import { HandWorker, runIdOf } from '../support/hand-worker.js';
import { QUEUE, ScheduleWorld } from '../support/schedule-world.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { LineLogger } from '../support/spine-scheduler.js';

const at = (time: string) => `2026-01-15T${time}Z`;
const minutely: ScheduleDefinition = { cron: '* * * * *', missed: 'skip' };

/** A world with a scheduler whose fence check is on or off, and what it logs. */
async function worldOf(name: string, fence: 'on' | 'off' = 'on', start = '11:59:30') {
  const world = await ScheduleWorld.at(at(start), { name: `${name} ${fence}` }, { fence });
  const logger = new LineLogger();
  await world.startScheduler({ logger });
  return { world, logger };
}

/** How many runs of a schedule its record holds. */
async function held(world: ScheduleWorld, id: string) {
  const info = await world.schedules.get(id).describe();
  const times = (runs: { scheduledFor: number }[] = []) =>
    runs.map(({ scheduledFor }) => new Date(scheduledFor).toISOString().slice(11, 16));
  return { open: times(info?.open), waiting: times(info?.waiting) };
}

describe.each(['on', 'off'] as const)('overlap, fence check %s', (fence) => {
  test('skip: a tick that comes while a run is open does not run; three in a row alert', async () => {
    const { world, logger } = await worldOf('skip', fence);
    const worker = await HandWorker.start(world, { holdAll: true });
    await world.schedules.upsert('s', { ...minutely, overlap: 'Forbid' });
    await world.passBy(60_000, at('12:01:30'));
    const alerts = () => logger.lines.filter((line) => line.includes('SKIPPING'));
    await world.passTo(at('12:02:00'));
    expect(alerts()).toEqual([]);
    await world.passTo(at('12:03:00'));
    expect(alerts()).toEqual(['error SKIPPING q:s overlap']);
    await world.passTo(at('12:04:00'));
    expect(await world.schedules.get('s').describe()).toMatchObject({ skips: 4, count: 1 });
    await worker.started(1);
    await worker.end(runIdOf('s', at('12:00:00')));
    await world.passTo(at('12:05:00'));
    await worker.started(2);
    expect(worker.starts).toEqual([runIdOf('s', at('12:00:00')), runIdOf('s', at('12:05:00'))]);
    expect(await world.ledger('s')).toEqual([
      `dispatched ${at('12:00:00')}`,
      ...['12:01', '12:02', '12:03', '12:04'].map((time) => `skipped ${at(`${time}:00`)} overlap`),
      `dispatched ${at('12:05:00')}`,
    ]);
    expect(await world.schedules.get('s').describe()).toMatchObject({ skips: 0, count: 2 });
    expect(alerts()).toHaveLength(1);
  });

  test('bufferOne: one tick waits, others are skipped; bufferAll: each waits, in order', async () => {
    const { world } = await worldOf('buffers', fence);
    const worker = await HandWorker.start(world, { holdAll: true });
    for (const overlap of ['bufferOne', 'bufferAll'] as const)
      await world.schedules.upsert(overlap, { ...minutely, overlap });
    for (const minute of ['12:00', '12:01', '12:02', '12:03']) await world.passTo(at(`${minute}:00`));
    expect(await held(world, 'bufferOne')).toEqual({ open: ['12:00'], waiting: ['12:01'] });
    expect(await held(world, 'bufferAll')).toEqual({ open: ['12:00'], waiting: ['12:01', '12:02', '12:03'] });
    await worker.started(2);
    for (let ended = 0; ended < 4; ended++) {
      for (const runId of worker.running) await worker.end(runId);
      await world.look();
      await worker.idle();
      expect(worker.running.length).toBe([2, 1, 1, 0][ended]);
    }
    const started = (id: string) => worker.starts.filter((runId) => runId.startsWith(`${id}@`));
    const ticks = ['12:00', '12:01', '12:02', '12:03'].map((minute) => at(`${minute}:00`));
    expect(started('bufferOne')).toEqual(ticks.slice(0, 2).map((time) => runIdOf('bufferOne', time)));
    expect(started('bufferAll')).toEqual(ticks.map((time) => runIdOf('bufferAll', time)));
    expect(await world.ledger('bufferOne')).toEqual([
      `dispatched ${ticks[0]}`,
      `skipped ${ticks[2]} overlap`,
      `skipped ${ticks[3]} overlap`,
      `dispatched ${ticks[1]}`,
    ]);
    expect(await world.ledger('bufferAll')).toEqual(ticks.map((time) => `dispatched ${time}`));
    expect(await world.schedules.get('bufferAll').describe()).toMatchObject({ waiting: [], count: 4 });
  });

  test('cancelOther: a run that no worker has fetched gives way; its hash and its logs go with it', async () => {
    const { world } = await worldOf('cancel waiting', fence);
    await world.schedules.upsert('s', { ...minutely, overlap: 'Replace' });
    await world.schedules.upsert('prio', { ...minutely, overlap: 'cancelOther' }, { opts: { priority: 3 } });
    await world.passTo(at('12:00:00'));
    await world.queue.addJobLog(runIdOf('s', at('12:00:00')), 'a remark');
    await world.passTo(at('12:01:00'));
    expect(
      await world.queue.getJobs(['wait', 'prioritized']).then((jobs) => jobs.map(({ id }) => id).sort()),
    ).toEqual([runIdOf('prio', at('12:01:00')), runIdOf('s', at('12:01:00'))]);
    const { client } = world.spine;
    expect(await client.keys(world.spine.bull(QUEUE, `*@${Date.parse(at('12:00:00'))}*`))).toEqual([]);
    expect(await world.ledger('s')).toEqual([
      `dispatched ${at('12:00:00')}`,
      `cancelled ${at('12:00:00')} overlap`,
      `dispatched ${at('12:01:00')}`,
    ]);
    expect(await world.schedules.get('s').describe()).toMatchObject({ count: 1, skips: 0 });
    const events = await client.xrange(world.spine.bull(QUEUE, 'events'), '-', '+');
    expect(events.map(([, fields]) => fields.join(' '))).toContain(
      `event removed jobId ${runIdOf('s', at('12:00:00'))} prev waiting`,
    );
  });

  test('cancelOther: a run that a worker has goes on; the newest tick waits for its end', async () => {
    const { world } = await worldOf('cancel running', fence);
    const worker = await HandWorker.start(world, { holdAll: true });
    await world.schedules.upsert('s', { ...minutely, overlap: 'cancelOther' });
    await world.passTo(at('12:00:00'));
    await worker.started(1);
    await world.passTo(at('12:01:00'));
    expect(await held(world, 's')).toEqual({ open: ['12:00'], waiting: ['12:01'] });
    await world.passTo(at('12:02:00'));
    expect(await held(world, 's')).toEqual({ open: ['12:00'], waiting: ['12:02'] });
    await worker.end(runIdOf('s', at('12:00:00')));
    await world.look();
    await worker.started(2);
    expect(worker.starts).toEqual([runIdOf('s', at('12:00:00')), runIdOf('s', at('12:02:00'))]);
    expect(await world.ledger('s')).toEqual([
      `dispatched ${at('12:00:00')}`,
      `cancelled ${at('12:01:00')} overlap`,
      `dispatched ${at('12:02:00')}`,
    ]);
  });

  test('maxConcurrent: so many at once; further ticks go by the policy', async () => {
    const { world } = await worldOf('concurrent', fence);
    const worker = await HandWorker.start(world, { holdAll: true });
    const policies = ['skip', 'bufferAll', 'cancelOther', 'allow'] as const;
    for (const overlap of policies)
      await world.schedules.upsert(overlap, { ...minutely, overlap, maxConcurrent: 2 });
    await world.passTo(at('12:00:00'));
    await world.passTo(at('12:01:00'));
    await worker.started(8);
    await world.passTo(at('12:02:00'));
    await world.passTo(at('12:03:00'));
    const open = ['12:00', '12:01'];
    expect(await held(world, 'skip')).toEqual({ open, waiting: [] });
    expect(await held(world, 'bufferAll')).toEqual({ open, waiting: ['12:02', '12:03'] });
    expect(await held(world, 'cancelOther')).toEqual({ open, waiting: ['12:03'] });
    expect(await held(world, 'allow')).toEqual({ open, waiting: ['12:02', '12:03'] });
    for (const overlap of policies) await worker.end(runIdOf(overlap, at('12:00:00')));
    await world.look();
    expect(await held(world, 'bufferAll')).toEqual({ open: ['12:01', '12:02'], waiting: ['12:03'] });
    expect(await held(world, 'allow')).toEqual({ open: ['12:01', '12:02'], waiting: ['12:03'] });
    await worker.started(11);
    expect(worker.most).toBe(8);
  });

  test('maxOpenRuns bounds every policy: a tick beyond it is skipped as backlog', async () => {
    const { world } = await worldOf('bounded', fence);
    const worker = await HandWorker.start(world, { holdAll: true });
    const bounds = {
      skip: { maxOpenRuns: 1 },
      bufferOne: { maxOpenRuns: 1 },
      bufferAll: { maxOpenRuns: 3 },
      cancelOther: { maxOpenRuns: 1 },
      allow: { maxOpenRuns: 3 },
    } as const;
    const policies = Object.keys(bounds) as (keyof typeof bounds)[];
    for (const overlap of policies)
      await world.schedules.upsert(overlap, { ...minutely, overlap, ...bounds[overlap] });
    await world.passTo(at('12:00:00'));
    await worker.started(5);
    for (const minute of ['12:01', '12:02', '12:03']) await world.passTo(at(`${minute}:00`));
    for (const overlap of policies) {
      const { open, waiting } = await held(world, overlap);
      const most = bounds[overlap].maxOpenRuns;
      expect([overlap, open.length + waiting.length]).toEqual([overlap, most]);
      expect((await world.ledger(overlap)).filter((row) => row.startsWith('skipped'))).toEqual(
        ['12:01', '12:02', '12:03'].slice(most - 1).map((minute) => `skipped ${at(`${minute}:00`)} backlog`),
      );
    }
    // Where a run ended there is room again.
    await worker.started(7);
    for (const runId of worker.running) await worker.end(runId);
    await world.passTo(at('12:04:00'));
    expect((await held(world, 'allow')).open).toEqual(['12:04']);
    expect((await held(world, 'skip')).open).toEqual(['12:04']);
    await expectHealthy(world.spine, 'leader');
  });

  test('allow: runs are beside each other, up to 32 when nothing else is said', {
    timeout: 60_000,
  }, async () => {
    const { world } = await worldOf('allowed', fence);
    await world.schedules.upsert('s', { ...minutely, overlap: 'allow' });
    await world.passBy(60_000, at('12:34:30'));
    expect(await world.runIds()).toHaveLength(32);
    expect((await world.ledger('s')).slice(-3)).toEqual(
      [
        `skipped ${at('12:32:00')} backlog`,
        `skipped ${at('12:33:00')} backlog`,
        `skipped ${at('12:34:00')} backlog`,
      ].slice(-3),
    );
  });

  test('ID_TAKEN: only that tick is set aside, at once or after it waited', async () => {
    const { world, logger } = await worldOf('taken', fence);
    const worker = await HandWorker.start(world, { holdAll: true });
    await world.schedules.upsert('s', { ...minutely, overlap: 'bufferAll' });
    const others = ['12:01', '12:02'].map((minute) => runIdOf('s', at(`${minute}:00`)));
    for (const runId of others)
      await world.spine.client.hset(world.spine.bull(QUEUE, runId), 'name', 'other');
    for (const minute of ['12:00', '12:01', '12:02', '12:03']) await world.passTo(at(`${minute}:00`));
    await worker.started(1);
    await worker.end(runIdOf('s', at('12:00:00')));
    await world.look();
    await worker.started(2);
    expect(worker.starts).toEqual([runIdOf('s', at('12:00:00')), runIdOf('s', at('12:03:00'))]);
    expect(await world.ledger('s')).toEqual([
      `dispatched ${at('12:00:00')}`,
      `quarantined ${at('12:01:00')} ID_TAKEN`,
      `quarantined ${at('12:02:00')} ID_TAKEN`,
      `dispatched ${at('12:03:00')}`,
    ]);
    for (const runId of others)
      expect(await world.spine.client.hgetall(world.spine.bull(QUEUE, runId))).toEqual({ name: 'other' });
    expect(logger.lines.filter((line) => line.includes('ID_TAKEN')).length).toBeGreaterThanOrEqual(1);
    expect((await held(world, 's')).open).toEqual(['12:03']);
  });
});

describe('a run is open until it has ended', () => {
  test('B54 a run that waits for its retry is open: no tick runs beside its attempts', async () => {
    const { world } = await worldOf('retries', 'on', '12:00:30');
    const worker = await HandWorker.start(world, { holdAll: true });
    const hour = { type: 'fixed', delay: 3_600_000 };
    await world.schedules.upsert('s', minutely, { opts: { attempts: 5, backoff: hour } });
    const runId = runIdOf('s', at('12:01:00'));
    const attempts = ['12:01:00', '12:01:40', '12:02:20', '12:03:00', '12:03:40'];
    for (const [i, time] of attempts.entries()) {
      await world.passTo(at(time));
      // BullMQ's own clock does not leap: the retry is called at its time.
      if (i > 0) await world.queue.getJob(runId).then((job) => job?.promote());
      await worker.started(i + 1);
      await worker.end(runId, 'failed');
      expect(await world.queue.getJobState(runId)).toBe(i < 4 ? 'delayed' : 'failed');
      if (i < 4) expect((await held(world, 's')).open).toEqual(['12:01']);
    }
    await world.passTo(at('12:04:00'));
    await worker.started(6);
    expect(worker.starts).toEqual([...Array(5).fill(runId), runIdOf('s', at('12:04:00'))]);
    expect(await world.ledger('s')).toEqual([
      `dispatched ${at('12:01:00')}`,
      `skipped ${at('12:02:00')} overlap`,
      `skipped ${at('12:03:00')} overlap`,
      `dispatched ${at('12:04:00')}`,
    ]);
  });

  test('B54 an hour of a job that always fails: never two at once, no backlog', {
    timeout: 60_000,
  }, async () => {
    const { world } = await worldOf('always fails');
    const worker = await HandWorker.start(world, { holdAll: true });
    const opts = { attempts: 2, backoff: { type: 'fixed', delay: 3_600_000 } };
    for (const overlap of ['skip', 'bufferOne'] as const)
      await world.schedules.upsert(overlap, { ...minutely, overlap, cron: '*/2 * * * *' }, { opts });
    let ended = 0;
    for (let minute = Date.parse(at('12:00:00')); minute <= Date.parse(at('12:58:00')); minute += 120_000) {
      await world.passTo(minute);
      await worker.idle();
      for (const runId of worker.running) {
        await worker.end(runId, 'failed');
        ended++;
      }
      // Each retry takes until after the next tick.
      for (const job of await world.queue.getDelayed()) {
        if (Number(job.id?.split('@').at(-1)) < minute) await job.promote();
      }
      await worker.idle();
      for (const id of ['skip', 'bufferOne']) {
        const { open, waiting } = await held(world, id);
        expect(open.length).toBeLessThanOrEqual(1);
        expect(waiting.length).toBeLessThanOrEqual(1);
      }
    }
    expect(worker.most).toBeLessThanOrEqual(2);
    expect(ended).toBeGreaterThan(40);
  });

  test.each<[string, (world: ScheduleWorld) => Promise<unknown>]>([
    ['removed as soon as they end', async () => undefined],
    ['cleaned by an operator', (world) => world.queue.clean(0, 100, 'completed')],
    ['obliterated', (world) => world.queue.obliterate({ force: true })],
    ['drained before a worker came', (world) => world.queue.drain(true)],
  ])('runs that are %s neither block the next tick nor come again', async (how, remove) => {
    const { world } = await worldOf(how);
    const removed = how.startsWith('removed');
    const worker = how.startsWith('drained') ? undefined : await HandWorker.start(world);
    const template = removed ? { opts: { removeOnComplete: true, removeOnFail: true } } : {};
    for (const overlap of ['skip', 'bufferAll', 'cancelOther'] as const)
      await world.schedules.upsert(overlap, { ...minutely, overlap }, template);
    for (const minute of ['12:00', '12:01', '12:02']) {
      await world.passTo(at(`${minute}:00`));
      await worker?.idle();
      await remove(world);
      await world.look();
      if (how === 'obliterated') await worker?.idle();
    }
    for (const overlap of ['skip', 'bufferAll', 'cancelOther']) {
      expect(await world.ledger(overlap)).toEqual(
        ['12:00', '12:01', '12:02'].map((minute) => `dispatched ${at(`${minute}:00`)}`),
      );
      if (worker !== undefined) {
        expect(worker.starts.filter((runId) => runId.startsWith(`${overlap}@`))).toEqual(
          ['12:00', '12:01', '12:02'].map((minute) => runIdOf(overlap, at(`${minute}:00`))),
        );
      }
    }
    await expectHealthy(world.spine, 'leader');
  });
});

describe('pauseOnFailure', () => {
  test('so many failed runs in a row pause it, before its next tick runs; resume counts anew', async () => {
    const { world, logger } = await worldOf('failing');
    const worker = await HandWorker.start(world, { holdAll: true });
    await world.schedules.upsert('s', { ...minutely, pauseOnFailure: 2 });
    const run = async (minute: string, how: 'completed' | 'failed') => {
      await world.passTo(at(`${minute}:00`));
      await worker.idle();
      await worker.end(runIdOf('s', at(`${minute}:00`)), how);
    };
    await run('12:00', 'failed');
    await run('12:01', 'completed');
    await run('12:02', 'failed');
    expect(await world.schedules.get('s').describe()).toMatchObject({ state: 'scheduled' });
    await run('12:03', 'failed');
    await world.passTo(at('12:04:00'));
    expect(await world.schedules.get('s').describe()).toMatchObject({
      state: 'paused',
      note: '2 runs failed in a row',
      failures: 2,
    });
    expect(logger.lines).toContain('error PAUSED q:s 2 runs failed in a row');
    await world.passTo(at('12:05:00'));
    expect(worker.starts).toHaveLength(4);
    await expectHealthy(world.spine, 'leader');

    await world.schedules.get('s').resume();
    await world.settle();
    await run('12:06', 'failed');
    await run('12:07', 'completed');
    await world.passTo(at('12:08:00'));
    expect(await world.schedules.get('s').describe()).toMatchObject({ state: 'scheduled', failures: 0 });
  });

  test('a run that failed first and succeeded at last is no failure', async () => {
    const { world } = await worldOf('second attempt');
    const worker = await HandWorker.start(world, { holdAll: true });
    const opts = { attempts: 2, backoff: { type: 'fixed', delay: 3_600_000 } };
    await world.schedules.upsert('s', { ...minutely, pauseOnFailure: 1 }, { opts });
    await world.passTo(at('12:00:00'));
    const runId = runIdOf('s', at('12:00:00'));
    await worker.started(1);
    await worker.end(runId, 'failed');
    await world.queue.getJob(runId).then((job) => job?.promote());
    await worker.started(2);
    await worker.end(runId);
    await world.passTo(at('12:01:00'));
    await worker.started(3);
    expect(await world.schedules.get('s').describe()).toMatchObject({ state: 'scheduled', failures: 0 });
  });

  test('a successful run that is removed at once ends the row of failures', async () => {
    const { world } = await worldOf('gone');
    const worker = await HandWorker.start(world, { holdAll: true });
    await world.schedules.upsert(
      's',
      { ...minutely, pauseOnFailure: 2 },
      { opts: { removeOnComplete: true } },
    );
    for (const [minute, how] of [
      ['12:00', 'failed'],
      ['12:01', 'completed'],
      ['12:02', 'failed'],
    ] as const) {
      await world.passTo(at(`${minute}:00`));
      await worker.idle();
      await worker.end(runIdOf('s', at(`${minute}:00`)), how);
    }
    await world.passTo(at('12:03:00'));
    expect(await world.schedules.get('s').describe()).toMatchObject({ state: 'scheduled', failures: 1 });
  });
});

describe('runTimeout', () => {
  test('a run that does not end counts as ended after so long: the schedule goes on beside it', async () => {
    const { world, logger } = await worldOf('hangs');
    const worker = await HandWorker.start(world, { holdAll: true });
    await world.schedules.upsert('s', { ...minutely, runTimeout: '150s' });
    for (const minute of ['12:00', '12:01', '12:02']) await world.passTo(at(`${minute}:00`));
    expect(await held(world, 's')).toEqual({ open: ['12:00'], waiting: [] });
    await world.passTo(at('12:03:00'));
    await worker.started(2);
    const [first, second] = [runIdOf('s', at('12:00:00')), runIdOf('s', at('12:03:00'))];
    expect(worker.running).toEqual([first, second]);
    expect(await world.ledger('s')).toEqual([
      `dispatched ${at('12:00:00')}`,
      `skipped ${at('12:01:00')} overlap`,
      `skipped ${at('12:02:00')} overlap`,
      `timed out ${at('12:00:00')}`,
      `dispatched ${at('12:03:00')}`,
    ]);
    expect(logger.lines).toContain(`error TIMED_OUT q:${first}`);
    // What it does in the end is nobody's business any more.
    await worker.end(first, 'failed');
    await worker.end(second);
    await world.passTo(at('12:04:00'));
    expect(await world.schedules.get('s').describe()).toMatchObject({
      failures: 0,
      open: [{ kind: 'tick' }],
    });
  });

  test('counts from when the run went into the queue, not from its scheduled time', async () => {
    const { world } = await worldOf('late run');
    const worker = await HandWorker.start(world, { holdAll: true });
    const s = world.schedules.get('s');
    await world.schedules.upsert('s', { ...minutely, cron: '0 13 * * *', runTimeout: '1s' });
    await s.backfill({ from: '2026-01-10T13:00:00Z', to: '2026-01-11T13:00:00Z' });
    await world.settle();
    await worker.started(1);
    await world.passTo((await world.now()) + 999);
    expect((await held(world, 's')).waiting).toHaveLength(1);
    await world.look();
    await worker.started(2);
    expect(await world.ledger('s')).toEqual([
      'backfilled 2026-01-10T13:00:00Z',
      'timed out 2026-01-10T13:00:00Z',
      'backfilled 2026-01-11T13:00:00Z',
    ]);
  });
});
