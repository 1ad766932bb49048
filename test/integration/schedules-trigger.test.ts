import { describe, expect, test } from 'vitest';
import type { ScheduleDefinition } from '../../src/domain/schedule.js';
import { requestHash } from '../../src/redis/request-id.js';
import { aJob } from '../support/builders.js';
import { HandWorker, runIdOf } from '../support/hand-worker.js';
import { QUEUE, ScheduleWorld } from '../support/schedule-world.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { changesOf } from '../support/spine-state.js';

const at = (time: string) => `2026-01-15T${time}Z`;
const minutely: ScheduleDefinition = { cron: '* * * * *', missed: 'skip' };

/** The id of a run that was triggered at `time` by a request. */
function triggeredId(time: string, requestId: string): string {
  return `${runIdOf('s', at(time))}+${requestHash('trigger', requestId).toString('hex').slice(0, 12)}`;
}

async function worldAt(time: string, task: { name: string }, definition: ScheduleDefinition = minutely) {
  const world = await ScheduleWorld.at(at(time), task);
  await world.schedules.upsert('s', definition, { data: { of: 'the template' } });
  await world.startScheduler();
  return { world, s: world.schedules.get('s') };
}

describe('trigger', () => {
  test('runs it now, beside its ticks, which go on', async ({ task }) => {
    const { world, s } = await worldAt('12:00:30', task, { ...minutely, overlap: 'allow' });
    const info = await s.trigger({ requestId: 'r' });
    expect(info).toMatchObject({ id: 's', count: 0, open: [{ kind: 'trigger' }] });
    await world.passTo(at('12:01:00'));
    const runId = triggeredId('12:00:30', 'r');
    expect(await world.runIds()).toEqual([runId, runIdOf('s', at('12:01:00'))]);
    expect(await world.queue.getJob(runId)).toMatchObject({ name: 's', data: { of: 'the template' } });
    expect(await s.runs()).toMatchObject([
      { what: 'triggered', runId, lateBy: 0, outcome: 'waiting' },
      { what: 'dispatched', lateBy: 0, outcome: 'waiting' },
    ]);
  });

  test('a request that is sent again runs nothing more', async ({ task }) => {
    const { world, s } = await worldAt('12:00:30', task);
    await s.trigger({ requestId: 'r' });
    await world.passTo(at('12:00:40'));
    // Seen once more, the run is open still.
    const { changes } = await changesOf(world.spine, () => s.trigger({ requestId: 'r' }));
    expect(changes).toEqual({});
    await s.trigger({ requestId: 'other' });
    expect(await world.runIds()).toEqual([triggeredId('12:00:30', 'r'), triggeredId('12:00:40', 'other')]);
  });

  test('its run is one of the open ones: a tick that comes meanwhile goes by the overlap policy', async ({
    task,
  }) => {
    const { world, s } = await worldAt('12:00:30', task);
    await s.trigger();
    await world.passTo(at('12:01:00'));
    expect(await world.ledger('s')).toEqual([
      `triggered ${at('12:00:30')}`,
      `skipped ${at('12:01:00')} overlap`,
    ]);
  });

  test('in turn: it waits behind open runs, and starts before a later tick', async ({ task }) => {
    const { world, s } = await worldAt('11:59:30', task, { ...minutely, overlap: 'bufferAll' });
    const worker = await HandWorker.start(world, { holdAll: true });
    await world.passTo(at('12:00:00'));
    await world.passTo(at('12:00:30'));
    const info = await s.trigger({ overlap: 'policy', requestId: 'r' });
    expect(info).toMatchObject({ open: [{ kind: 'tick' }], waiting: [{ kind: 'trigger' }] });
    // Sent again, it waits once.
    expect(await s.trigger({ overlap: 'policy', requestId: 'r' })).toMatchObject({ waiting: [{}] });
    await world.passTo(at('12:01:00'));
    for (const next of [triggeredId('12:00:30', 'r'), runIdOf('s', at('12:01:00'))]) {
      await worker.started(worker.starts.length);
      await worker.idle();
      for (const runId of worker.running) await worker.end(runId);
      await world.look();
      await worker.idle();
      expect(worker.running).toEqual([next]);
    }
  });

  test('in turn: where there is room it starts at once', async ({ task }) => {
    const { world, s } = await worldAt('11:59:30', task, { ...minutely, maxConcurrent: 2 });
    await world.passTo(at('12:00:00'));
    expect(await s.trigger({ overlap: 'policy' })).toMatchObject({ open: [{}, {}], waiting: [] });
    expect(await s.trigger({ overlap: 'policy' })).toMatchObject({ open: [{}, {}], waiting: [{}] });
  });

  test('QUOTA: as many runs are open and wait as there may be; nothing was written', async ({ task }) => {
    const { world, s } = await worldAt('12:00:30', task, { ...minutely, maxOpenRuns: 2 });
    await s.trigger();
    await s.trigger({ overlap: 'policy' });
    await world.passTo(at('12:00:31'));
    const { changes } = await changesOf(world.spine, async () => {
      for (const overlap of ['allow', 'policy'] as const)
        await expect(s.trigger({ overlap })).rejects.toMatchObject({ code: 'QUOTA', retryable: true });
    });
    // But for the scheduler's own beat.
    const { 'leader beat': _, ...written } = changes;
    expect(written).toEqual({});
  });

  test('counts against no limit', async ({ task }) => {
    const { world, s } = await worldAt('12:00:30', task, { ...minutely, overlap: 'allow', limit: 1 });
    await s.trigger();
    await world.passTo(at('12:01:00'));
    await world.passTo(at('12:02:00'));
    expect(await world.ledger('s')).toEqual([`triggered ${at('12:00:30')}`, `dispatched ${at('12:01:00')}`]);
    expect(await s.describe()).toMatchObject({ state: 'ended', count: 1 });
  });

  test('a paused schedule runs on a person’s word; what waits goes on when it is resumed', async ({
    task,
  }) => {
    const { world, s } = await worldAt('12:00:30', task);
    await s.pause();
    await s.trigger();
    await s.trigger({ overlap: 'policy', requestId: 'r' });
    await world.endRuns();
    await world.passTo(at('12:05:30'));
    expect(await world.runIds()).toHaveLength(1);
    await expectHealthy(world.spine, 'leader', 'orphan');
    await s.resume();
    await world.settle();
    expect((await world.runIds()).at(-1)).toBe(triggeredId('12:00:30', 'r'));
    expect(await s.describe()).toMatchObject({ state: 'scheduled', next: Date.parse(at('12:06:00')) });
  });

  test('an ended schedule: a run in turn has its turn, and the schedule ends again', async ({ task }) => {
    const { world, s } = await worldAt('12:00:30', task, { ...minutely, endDate: at('12:01:00') });
    await world.passTo(at('12:01:00'));
    await world.passTo(at('12:01:30'));
    expect(await s.describe()).toMatchObject({ state: 'ended' });
    await s.trigger({ overlap: 'policy', requestId: 'r' });
    expect(await s.describe()).toMatchObject({ state: 'scheduled', next: undefined });
    await world.endRuns();
    // A run that has been open for long is looked at the less often.
    await world.passTo(at('12:01:35'));
    expect((await world.runIds()).at(-1)).toBe(triggeredId('12:01:30', 'r'));
    expect(await s.describe()).toMatchObject({ state: 'ended', waiting: [] });
    await expectHealthy(world.spine, 'leader', 'orphan');
  });

  test('refusals: no such schedule, a one-time job, a broken queue, a taken id, an unknown word', async ({
    task,
  }) => {
    const world = await ScheduleWorld.at(at('12:00:30'), task);
    await world.schedules.upsert('s', minutely);
    const s = world.schedules.get('s');
    await world.spine.submit(QUEUE, [aJob('job')]);
    const taken = triggeredId('12:00:30', 'taken');
    await world.spine.client.hset(world.spine.bull(QUEUE, taken), 'name', 'other');
    const { changes } = await changesOf(world.spine, async () => {
      await expect(world.schedules.get('none').trigger()).rejects.toMatchObject({ code: 'NOT_FOUND' });
      await expect(world.schedules.get('job').trigger()).rejects.toMatchObject({ code: 'UNSUPPORTED' });
      await expect(s.trigger({ requestId: 'taken' })).rejects.toMatchObject({ code: 'ID_IN_USE' });
      await expect(s.trigger({ overlap: 'now' as 'allow' })).rejects.toMatchObject({
        code: 'INVALID_OPTION',
        field: 'overlap',
      });
      await expect(s.trigger({ requestId: '' })).rejects.toMatchObject({ code: 'INVALID_OPTION' });
    });
    expect(changes).toEqual({});
    await world.spine.client.set(world.spine.bull(QUEUE, 'wait'), 'x');
    await expect(s.trigger()).rejects.toMatchObject({ code: 'QUEUE_BROKEN' });
    await world.spine.client.del(world.spine.bull(QUEUE, 'wait'));
    await s.trigger({ requestId: 'r' });
    await s.delete();
    await expect(s.trigger({ requestId: 'r' })).rejects.toMatchObject({ code: 'NOT_FOUND' });
  });
});
