import { describe, expect, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import { FLAGS } from '../../src/redis/record.js';
import { aJob, aSchedule } from '../support/builders.js';
import { INC, NOW, Spine } from '../support/spine.js';
import { changesOf } from '../support/spine-state.js';

const HOUR = 3_600_000;
/** What every edit of the first job changes besides what it is for. */
const edited = { ver: INC + 1, flags: FLAGS.ver, requests: 2 };
const counted = { 'meta inc': String(INC + 1) };

/** A namespace with one job `a` due in an hour. */
async function setup(task: { name: string }) {
  const spine = await Spine.virtual(task);
  await spine.submit('q', [aJob('a')]);
  return spine;
}

describe('reschedule-job', () => {
  test('OK: moves record, timer and head', async ({ task }) => {
    const spine = await setup(task);
    const { result, changes } = await changesOf(spine, () =>
      spine.jobs.reschedule('q', 'a', 9000, true, 'r'),
    );
    expect(result).toMatchObject({ now: NOW, record: { at: NOW + 9000 } });
    expect(changes).toEqual({
      'jobs q:a': { ...edited, at: NOW + 9000 },
      'due q:a': NOW + 9000,
      [`heads ${bucketOf('q:a')}`]: NOW + 9000,
      ...counted,
    });
  });

  test('OK: also to a time that has passed', async ({ task }) => {
    const spine = await setup(task);
    const { changes } = await changesOf(spine, () => spine.jobs.reschedule('q', 'a', 5, false, 'r'));
    expect(changes).toMatchObject({ 'jobs q:a': { ...edited, at: 5 }, 'due q:a': 5 });
  });

  test('OK: a paused job keeps waiting, with its new time', async ({ task }) => {
    const spine = await setup(task);
    await spine.jobs.pause('q', 'a', '', 'p');
    const { changes } = await changesOf(spine, () => spine.jobs.reschedule('q', 'a', 9000, true, 'r'));
    expect(changes).toEqual({
      'jobs q:a': { at: NOW + 9000, ver: INC + 2, requests: 3 },
      'meta inc': String(INC + 2),
    });
  });

  test.each([
    ['NOT_FOUND', 'NOT_FOUND', (spine: Spine) => spine.jobs.reschedule('q', 'b', 1, true, 'r')],
    [
      'OUT_OF_RANGE',
      'INVALID_OPTION',
      (spine: Spine) => spine.jobs.reschedule('q', 'a', 253402300800000, false, 'r'),
    ],
    ['OUT_OF_RANGE', 'INVALID_OPTION', (spine: Spine) => spine.jobs.reschedule('q', 'a', -1, false, 'r')],
    ['NOT_A_JOB', 'UNSUPPORTED', (spine: Spine) => spine.jobs.reschedule('q', 's', 1, true, 'r')],
  ])('%s: nothing changes', async (_status, code, act) => {
    const spine = await setup({ name: 'reschedule refused' });
    await spine.schedules.upsert('q', 's', aSchedule(NOW), 'r0');
    const { changes } = await changesOf(spine, () => expect(act(spine)).rejects.toMatchObject({ code }));
    expect(changes).toEqual({});
  });
});

describe('update-job', () => {
  test('OK: replaces only the parts that are given', async ({ task }) => {
    const spine = await setup(task);
    const { changes } = await changesOf(spine, () => spine.jobs.update('q', 'a', { data: '[1]' }, 'r1'));
    expect(changes).toEqual({ 'jobs q:a': { ...edited, data: '[1]' }, ...counted });
    const all = { name: 'n', opts: '{"attempts":2}', priority: 9, lifo: true };
    const { changes: rest } = await changesOf(spine, () => spine.jobs.update('q', 'a', all, 'r2'));
    expect(rest).toEqual({
      'jobs q:a': { ...all, ver: INC + 2, flags: FLAGS.ver | FLAGS.priority, requests: 3 },
      'meta inc': String(INC + 2),
    });
  });

  test('NOT_FOUND', async ({ task }) => {
    const spine = await setup(task);
    await expect(spine.jobs.update('q', 'b', {}, 'r')).rejects.toMatchObject({
      code: 'NOT_FOUND',
      field: 'jobId',
    });
  });
});

describe('cancel-job', () => {
  test('OK: record, timer and count go; the id is spent with its requests; BullMQ hears of it', async ({
    task,
  }) => {
    const spine = await setup(task);
    const { result, changes } = await changesOf(spine, () => spine.jobs.cancel('q', 'a', 'no more', 'r'));
    expect(result.record).toMatchObject({ kind: 'job', at: NOW + HOUR });
    expect(changes).toEqual({
      'jobs q:a': null,
      'due q:a': null,
      'queues q:scheduled': '0',
      'spent:1 q:a': { at: NOW, how: 'cancelled', answers: [5, 1] },
      'meta spent': '1',
      'meta spentAt': String(NOW),
      history: [
        {
          at: String(NOW),
          job: 'q:a',
          scheduledFor: String(NOW + HOUR),
          what: 'cancelled',
          reason: 'no more',
        },
      ],
      'q:events': [{ event: 'removed', jobId: 'a', prev: 'delayed' }],
    });
  });

  test('OK: a schedule leaves its last tick behind', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.schedules.upsert('q', 's', aSchedule(NOW), 'r1');
    await spine.setClock(NOW + 60_000);
    await spine.drain(await spine.lead());
    const { changes } = await changesOf(spine, () => spine.jobs.cancel('q', 's', '', 'r'));
    expect(changes).toMatchObject({
      'jobs q:s': null,
      'due q:s': null,
      'plan q:s': null,
      'queues q:schedules': '0',
      'spent:1 q:s': { how: 'deleted', last: NOW + 60_000 },
    });
    expect(await spine.jobs.get('q', 's')).toMatchObject({ record: undefined, last: NOW + 60_000 });
  });

  test('OK, without trimming the events of a queue that keeps more of them', async ({ task }) => {
    const spine = await setup(task);
    await spine.client.hset(spine.bull('q', 'meta'), 'opts.maxLenEvents', 50_000);
    const filling = spine.client.pipeline();
    for (let i = 0; i < 11_000; i++) filling.xadd(spine.bull('q', 'events'), '*', 'event', 'x');
    await filling.exec();
    await spine.jobs.cancel('q', 'a', '', 'r');
    expect(await spine.client.xlen(spine.bull('q', 'events'))).toBe(11_001);
  });

  test('OK also when BullMQ’s events key has the wrong type', async ({ task }) => {
    const spine = await setup(task);
    await spine.client.set(spine.bull('q', 'events'), 'x');
    await spine.jobs.cancel('q', 'a', '', 'r');
    expect((await spine.jobs.get('q', 'a')).record).toBeUndefined();
  });

  test('NOT_FOUND', async ({ task }) => {
    const spine = await setup(task);
    const { changes } = await changesOf(spine, () =>
      expect(spine.jobs.cancel('q', 'b', '', 'r')).rejects.toMatchObject({ code: 'NOT_FOUND' }),
    );
    expect(changes).toEqual({});
  });
});

describe('pause-job and resume-job', () => {
  test('OK: out of its timer with a note, and back', async ({ task }) => {
    const spine = await setup(task);
    const { changes } = await changesOf(spine, () => spine.jobs.pause('q', 'a', 'why', 'r1'));
    expect(changes).toEqual({
      'jobs q:a': { ...edited, state: 'paused', note: 'why', flags: FLAGS.ver | FLAGS.note },
      'due q:a': null,
      'queues q:scheduled': '0',
      'queues q:paused': '1',
      ...counted,
    });
    const { changes: back } = await changesOf(spine, () => spine.jobs.resume('q', 'a', 'r2'));
    expect(back).toEqual({
      'jobs q:a': { state: 'scheduled', note: undefined, flags: FLAGS.ver, ver: INC + 2, requests: 3 },
      'due q:a': NOW + HOUR,
      'queues q:scheduled': '1',
      'queues q:paused': '0',
      'meta inc': String(INC + 2),
    });
  });

  test('a paused job does not fire (B56); resumed after its time it fires once', async ({ task }) => {
    const spine = await setup(task);
    const owned = await spine.lead();
    await spine.jobs.pause('q', 'a', '', 'r1');
    await spine.setClock(NOW + 2 * HOUR);
    await spine.leader.refreshHeads(owned);
    expect(await spine.drain(owned)).toEqual({ popped: 0, trouble: [] });
    await spine.jobs.resume('q', 'a', 'r2');
    expect(await spine.drain(owned)).toEqual({ popped: 1, trouble: [] });
  });

  test('a parked job is no longer parked', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.client.set(spine.bull('q', 'wait'), 'x');
    await spine.submit('q', [aJob('a', { time: NOW })]);
    const { changes } = await changesOf(spine, () => spine.jobs.pause('q', 'a', '', 'r'));
    expect(changes).toMatchObject({
      'jobs q:a': { state: 'paused' },
      'parked q:a': null,
      'queues q:parked': '0',
      'queues q:paused': '1',
    });
  });

  test('resume of a schedule whose tick passed leaves the ticks of the pause to the planner', async ({
    task,
  }) => {
    const spine = await Spine.virtual(task);
    await spine.schedules.upsert('q', 's', aSchedule(NOW), 'r1');
    await spine.jobs.pause('q', 's', '', 'r2');
    await spine.setClock(NOW + HOUR);
    const { changes } = await changesOf(spine, () => spine.jobs.resume('q', 's', 'r3'));
    expect(changes).toMatchObject({
      'jobs q:s': { state: 'scheduled', flags: FLAGS.ver | FLAGS.overdue | FLAGS.resumed },
      'plan q:s': NOW + HOUR,
      [`heads p${bucketOf('q:s')}`]: NOW + HOUR,
    });
    expect(changes).not.toHaveProperty('due q:s');
  });

  test('NOT_PAUSED and NOT_FOUND change nothing', async ({ task }) => {
    const spine = await setup(task);
    const { changes } = await changesOf(spine, async () => {
      await expect(spine.jobs.resume('q', 'a', 'r')).rejects.toMatchObject({ code: 'CONFLICT' });
      await expect(spine.jobs.resume('q', 'b', 'r')).rejects.toMatchObject({ code: 'NOT_FOUND' });
      await expect(spine.jobs.pause('q', 'b', '', 'r')).rejects.toMatchObject({ code: 'NOT_FOUND' });
    });
    expect(changes).toEqual({});
  });
});

describe('promote-job', () => {
  test('OK: into the queue before its time', async ({ task }) => {
    const spine = await setup(task);
    const { changes } = await changesOf(spine, () => spine.jobs.promote('q', 'a', 'r'));
    expect(changes).toEqual({
      'jobs q:a': null,
      'due q:a': null,
      'queues q:scheduled': '0',
      'q:a': {
        name: 'send',
        data: '{"to":"ann"}',
        opts: `{"attempts":0,"carillon":"${spine.namespace} ${NOW + HOUR} ${INC}"}`,
        timestamp: String(NOW),
        delay: '0',
        priority: '0',
      },
      'q:wait': ['a'],
      'q:marker 0': 0,
      'q:events': [
        { event: 'added', jobId: 'a', name: 'send' },
        { event: 'waiting', jobId: 'a' },
      ],
      'q:meta opts.maxLenEvents': '10000',
      'spent:1 q:a': { at: NOW, how: 'run', answers: [5, 1] },
      'meta spent': '1',
      'meta spentAt': String(NOW),
    });
  });

  test.each([
    ['NOT_FOUND', 'NOT_FOUND', 'b', undefined],
    ['NOT_A_JOB', 'UNSUPPORTED', 's', undefined],
    ['QUEUE_BROKEN', 'QUEUE_BROKEN', 'a', 'wait'],
    ['ID_TAKEN', 'ID_IN_USE', 'a', 'a'],
  ])('%s changes nothing', async (_status, code, id, inTheWay) => {
    const spine = await setup({ name: 'promote refused' });
    await spine.schedules.upsert('q', 's', aSchedule(NOW), 'r0');
    if (inTheWay) await spine.client.set(spine.bull('q', inTheWay), 'x');
    const { changes } = await changesOf(spine, () =>
      expect(spine.jobs.promote('q', id, 'r')).rejects.toMatchObject({ code }),
    );
    expect(changes).toEqual({});
  });
});

describe('BAD_RECORD', () => {
  const edits: [string, (spine: Spine) => Promise<unknown>][] = [
    ['reschedule-job', (spine) => spine.jobs.reschedule('q', 'a', 1, true, 'r')],
    ['update-job', (spine) => spine.jobs.update('q', 'a', { data: '1' }, 'r')],
    ['cancel-job', (spine) => spine.jobs.cancel('q', 'a', '', 'r')],
    ['pause-job', (spine) => spine.jobs.pause('q', 'a', '', 'r')],
    ['resume-job', (spine) => spine.jobs.resume('q', 'a', 'r')],
    ['promote-job', (spine) => spine.jobs.promote('q', 'a', 'r')],
    ['upsert-schedule', (spine) => spine.schedules.upsert('q', 'a', aSchedule(NOW), 'r')],
  ];
  test.each(edits)('%s leaves a record that it cannot read as it is', async (_name, act) => {
    const spine = await setup({ name: 'bad record' });
    await spine.client.hset(spine.keys.jobs(bucketOf('q:a')), 'q:a', 'garbage');
    const { changes } = await changesOf(spine, () =>
      expect(act(spine)).rejects.toMatchObject({ code: 'BAD_RECORD' }),
    );
    expect(changes).toEqual({});
  });
});
