import { describe, expect, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import type { OwnedRange } from '../../src/redis/leader-scripts.js';
import { FLAGS } from '../../src/redis/record.js';
import { aJob, aSchedule, jobs } from '../support/builders.js';
import { aRun, jobModel, packRecord, scheduleModel } from '../support/builders-record.js';
import { INC, NOW, Spine } from '../support/spine.js';
import { changesOf, readState } from '../support/spine-state.js';

const BUCKET = bucketOf('q:a');
const MINUTE = 60_000;

describe('pop-due, a one-time job', () => {
  test('moves it whole: hash, wait list, marker, events in; record, timer, head out; spent inherits its requests', async ({
    task,
  }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [aJob('a', { time: NOW + 1000, opts: '{"attempts":3}' })]);
    const owned = await spine.lead();
    await spine.setClock(NOW + 1003);
    const { result, changes } = await changesOf(spine, () => spine.pop(owned));
    expect(result).toEqual({
      now: NOW + 1003,
      popped: 1,
      nextHead: 0,
      planned: [],
      fenced: [],
      lower: [],
      trouble: [],
      bytes: expect.any(Number),
      taken: 1,
      took: expect.any(Number),
      past: expect.any(Number),
      working: false,
    });
    expect('past' in result && result.past >= result.took).toBe(true);
    expect(changes).toEqual({
      'jobs q:a': null,
      'due q:a': null,
      [`heads ${BUCKET}`]: null,
      'queues q:scheduled': '0',
      'q:a': {
        name: 'send',
        data: '{"to":"ann"}',
        opts: `{"attempts":3,"carillon":"${spine.namespace} ${NOW + 1000} ${INC}"}`,
        timestamp: String(NOW),
        delay: '0',
        priority: '0',
      },
      'q:wait': ['a'],
      'q:marker 0': 0,
      'q:meta opts.maxLenEvents': '10000',
      'q:events': [
        { event: 'added', jobId: 'a', name: 'send' },
        { event: 'waiting', jobId: 'a' },
      ],
      'spent:1 q:a': { at: NOW + 1003, how: 'run', answers: [1] },
      'meta spent': '1',
      'meta spentAt': String(NOW + 1003),
    });
  });

  test('I2 never early: not a millisecond before, also with an index that says so', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [aJob('a', { time: NOW + 1000 })]);
    const owned = await spine.lead();
    await spine.setClock(NOW + 999);
    expect(await spine.pop(owned)).toMatchObject({ popped: 0, nextHead: NOW + 1000 });
    await spine.client.zadd(spine.keys.due(BUCKET), NOW, 'q:a');
    await spine.client.zadd(spine.keys.heads, NOW, BUCKET);
    expect(await spine.pop(owned)).toMatchObject({
      popped: 0,
      trouble: ['REPAIRED q:a'],
      nextHead: NOW + 1000,
    });
    expect(await readState(spine)).toMatchObject({ 'due q:a': NOW + 1000, 'jobs q:a': {} });
    await spine.setClock(NOW + 1000);
    expect(await spine.pop(owned)).toMatchObject({ popped: 1 });
  });

  test('an index entry that has no business in due is taken out; the record stays', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [aJob('a', { time: NOW + 10 })]);
    await spine.jobs.pause('q', 'a', '', 'r');
    const owned = await spine.lead();
    await spine.client.zadd(spine.keys.due(BUCKET), NOW, 'q:a', NOW, 'q:nobody');
    await spine.client.zadd(spine.keys.heads, NOW, BUCKET);
    const { result, changes } = await changesOf(spine, () => spine.pop(owned));
    expect(result.trouble).toEqual(['REPAIRED q:a']);
    expect(changes).toEqual({ 'due q:a': null, 'due q:nobody': null, [`heads ${BUCKET}`]: null });
  });

  test('an identity without a queue is set aside', async ({ task }) => {
    const spine = await Spine.virtual(task);
    const owned = await spine.lead();
    await spine.client.hset(spine.keys.jobs(7), 'nobody', packRecord(jobModel()));
    await spine.client.zadd(spine.keys.due(7), NOW, 'nobody');
    await spine.client.zadd(spine.keys.heads, NOW, 7);
    const { result, changes } = await changesOf(spine, () => spine.pop(owned));
    expect(result.trouble).toEqual(['QUARANTINED nobody BAD_RECORD the identity holds no queue']);
    expect(changes).toMatchObject({ 'quarantine nobody': {}, 'jobs nobody': null, 'due nobody': null });
  });

  test('B52 order: by fire time over all buckets, priorities by BullMQ’s own score, lifo at the other end', async ({
    task,
  }) => {
    const spine = await Spine.virtual(task);
    await spine.submit(
      'q',
      jobs(20, 'a', (i) => ({ time: NOW + 100 - i })),
    );
    await spine.submit('q', [
      aJob('p2', { time: NOW + 1, priority: 2 }),
      aJob('p1', { time: NOW + 2, priority: 1 }),
      aJob('p2b', { time: NOW + 3, priority: 2 }),
      aJob('top', { time: NOW + 4, lifo: true }),
    ]);
    const owned = await spine.lead();
    await spine.setClock(NOW + 200);
    await spine.drain(owned);
    // Workers take from the right.
    const waiting = await spine.client.lrange(spine.bull('q', 'wait'), 0, -1);
    expect(waiting.reverse()).toEqual(['top', ...Array.from({ length: 20 }, (_, i) => `a${19 - i}`)]);
    expect(await spine.client.zrange(spine.bull('q', 'prioritized'), '0', '-1')).toEqual(['p1', 'p2', 'p2b']);
    expect(await spine.client.get(spine.bull('q', 'pc'))).toBe('3');
  });

  test('a paused queue gets its jobs, but no marker that wakes its workers', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.client.hset(spine.bull('q', 'meta'), 'paused', '1');
    await spine.submit('q', [aJob('a', { time: NOW + 1 }), aJob('p', { time: NOW + 1, priority: 1 })]);
    await spine.setClock(NOW + 1);
    await spine.drain(await spine.lead());
    expect(await readState(spine)).toMatchObject({ 'q:wait': ['a'], 'q:prioritized p': expect.any(Number) });
    expect(await spine.client.exists(spine.bull('q', 'marker'))).toBe(0);
  });

  test('the same jobId in two queues are two jobs', async ({ task }) => {
    const spine = await Spine.virtual(task);
    for (const queue of ['q1', 'q2'])
      await spine.submit(queue, [aJob('a', { time: NOW + 1, data: `"${queue}"` })]);
    await spine.jobs.cancel('q1', 'a', '', 'r');
    await spine.setClock(NOW + 1);
    expect(await spine.drain(await spine.lead())).toEqual({ popped: 1, trouble: [] });
    const state = await readState(spine);
    expect(state).toMatchObject({ 'q2:a': { data: '"q2"' }, 'spent:1 q1:a': { how: 'cancelled' } });
    expect(state).not.toHaveProperty(['q1:a']);
  });

  test('the batch is bounded by count and by bytes; what is left stays at the head', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit(
      'q',
      jobs(300, 'a', () => ({ time: NOW + 1, data: `"${'x'.repeat(10_000)}"` })),
    );
    const owned = await spine.lead();
    await spine.setClock(NOW + 1);
    expect(await spine.pop(owned, { limit: 30 })).toMatchObject({ popped: 30, nextHead: NOW + 1 });
    const { popped, bytes } = await spine.pop(owned, { limit: 200, bytes: 100_000 });
    // Records are read in chunks of 25: one chunk may come on top.
    expect(bytes).toBeLessThan(100_000 + 26 * 10_100);
    expect(popped).toBeGreaterThanOrEqual(9);
    expect((await spine.drain(owned)).popped).toBe(300 - 30 - popped);
  });
});

describe('pop-due, a tick of a schedule', () => {
  test('fires under its run id; its successor is swapped in and the one after asked for', async ({
    task,
  }) => {
    const spine = await Spine.virtual(task);
    await spine.schedules.upsert('q', 's', aSchedule(NOW, { priority: 2 }), 'r');
    const owned = await spine.lead();
    const runId = `s@${NOW + MINUTE}`;
    await spine.setClock(NOW + MINUTE + 7);
    await spine.leader.refreshHeads(owned);
    const { result, changes } = await changesOf(spine, () => spine.pop(owned));
    expect(result).toMatchObject({ popped: 1, nextHead: NOW + 2 * MINUTE });
    const bucket = bucketOf('q:s');
    expect(changes).toEqual({
      'jobs q:s': {
        last: NOW + MINUTE,
        cur: NOW + 2 * MINUTE,
        curFire: NOW + 2 * MINUTE,
        next: 0,
        nextFire: 0,
        count: 1,
        rows: 1,
        open: [{ scheduledFor: NOW + MINUTE, since: NOW + MINUTE + 7, kind: 'tick', suffix: '' }],
      },
      'ledger:q:s 0': `${NOW + MINUTE}|dispatched|${NOW + MINUTE + 7}||`,
      'due q:s': NOW + 2 * MINUTE,
      'plan q:s': NOW + MINUTE + 7,
      [`heads ${bucket}`]: NOW + 2 * MINUTE,
      [`heads p${bucket}`]: NOW + MINUTE + 7,
      [`q:${runId}`]: {
        name: 'tick',
        data: '{}',
        opts: `{"attempts":0,"carillon":"${spine.namespace} ${NOW + MINUTE} ${INC}"}`,
        timestamp: String(NOW + MINUTE),
        delay: '0',
        priority: '2',
      },
      [`q:prioritized ${runId}`]: 2 * 2 ** 32 + 1,
      'q:pc': '1',
      'q:marker 0': 0,
      'q:meta opts.maxLenEvents': '10000',
      'q:events': [
        { event: 'added', jobId: runId, name: 'tick' },
        { event: 'waiting', jobId: runId },
      ],
    });
  });

  test('a backlog makes a tick late, not missed: served all the time, it fires at any lateness below its period', async ({
    task,
  }) => {
    const spine = await Spine.virtual(task);
    await spine.schedules.upsert('q', 's', aSchedule(NOW, { grace: 0 }), 'r');
    const owned = await spine.lead();
    await spine.setClock(NOW + 2 * MINUTE - 1);
    await spine.leader.refreshHeads(owned);
    expect(await spine.drain(owned)).toEqual({ popped: 1, trouble: [] });
    expect(await spine.client.lrange(spine.bull('q', 'wait'), 0, -1)).toEqual([`s@${NOW + MINUTE}`]);
  });

  test('missed: a tick whose grace ended before the bucket was served goes to the planner', async ({
    task,
  }) => {
    const spine = await Spine.virtual(task);
    await spine.schedules.upsert('q', 's', aSchedule(NOW, { grace: 30_000 }), 'r');
    await spine.setClock(NOW + MINUTE + 30_001);
    const owned = await spine.lead();
    const { result, changes } = await changesOf(spine, () => spine.pop(owned));
    expect(result).toMatchObject({ popped: 0, trouble: [] });
    expect(changes).toEqual({
      'jobs q:s': { flags: FLAGS.overdue },
      'due q:s': null,
      'plan q:s': NOW + MINUTE + 30_001,
      [`heads ${bucketOf('q:s')}`]: null,
      [`heads p${bucketOf('q:s')}`]: NOW + MINUTE + 30_001,
    });
  });

  test('not missed at the last millisecond of its grace', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.schedules.upsert('q', 's', aSchedule(NOW, { grace: 30_000 }), 'r');
    await spine.setClock(NOW + MINUTE + 30_000);
    expect(await spine.pop(await spine.lead())).toMatchObject({ popped: 1 });
  });

  test('the grace never reaches beyond the next tick', async ({ task }) => {
    const spine = await Spine.virtual(task);
    const everySecond = { cur: NOW + 1000, curFire: NOW + 1000, next: NOW + 2000, nextFire: NOW + 2000 };
    await spine.schedules.upsert('q', 's', aSchedule(NOW, { ...everySecond, grace: 30_000 }), 'r');
    await spine.setClock(NOW + 2001);
    expect(await spine.pop(await spine.lead())).toMatchObject({ popped: 0 });
    expect(await readState(spine)).toMatchObject({ 'plan q:s': NOW + 2001 });
  });

  test('an overdue tick is the planner’s: only what waits runs, however late', async ({ task }) => {
    const spine = await Spine.virtual(task);
    const owned = await spine.lead();
    const waiting = [aRun(500, { kind: 'catchUp', since: 900 })];
    const model = scheduleModel({ cur: 1000, curFire: 1000, check: 900, waiting, marks: FLAGS.overdue });
    await spine.client.hset(spine.keys.jobs(bucketOf('q:s')), 'q:s', packRecord(model));
    await spine.client.zadd(spine.keys.due(bucketOf('q:s')), 900, 'q:s');
    await spine.client.zadd(spine.keys.heads, 900, bucketOf('q:s'));
    expect(await spine.pop(owned)).toMatchObject({ popped: 1 });
    expect(await spine.client.lrange(spine.bull('q', 'wait'), 0, -1)).toEqual(['s@500']);
    const state = await readState(spine);
    expect(state).toMatchObject({
      'jobs q:s': { flags: FLAGS.overdue, last: 0, cur: 1000, check: 0, waiting: [] },
      'ledger:q:s 0': `500|caught up|${NOW}||`,
      'plan q:s': NOW,
    });
    expect(state).not.toHaveProperty(['due q:s']);
  });

  test('the last tick of all leaves the timer to the planner', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.schedules.upsert('q', 's', aSchedule(NOW, { next: 0, nextFire: 0 }), 'r');
    const owned = await spine.lead();
    await spine.setClock(NOW + MINUTE);
    await spine.leader.refreshHeads(owned);
    const { changes } = await changesOf(spine, () => spine.pop(owned));
    expect(changes).toMatchObject({
      'jobs q:s': { cur: 0, curFire: 0, last: NOW + MINUTE },
      'due q:s': null,
    });
  });
});

describe('pop-due, who may', () => {
  test('I5 FENCED: another token moves nothing and is told so', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [aJob('a', { time: NOW + 1 })]);
    const old = await spine.lead(9);
    const owned = await spine.lead(10);
    await spine.setClock(NOW + 1);
    const { result, changes } = await changesOf(spine, () => spine.pop(old));
    expect(result).toMatchObject({ popped: 0, lower: [], nextHead: 0 });
    expect(result.fenced).toHaveLength(256);
    expect(changes).toEqual({});
    expect((await spine.pop(old, { prove: false })).fenced).toEqual([BUCKET]);
    expect(await spine.pop(owned)).toMatchObject({ popped: 1, fenced: [] });
  });

  test('a fence below mine: told as lower, nothing moved, and the raise can be repeated', async ({
    task,
  }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [aJob('a', { time: NOW + 1 })]);
    const owned = await spine.lead(10);
    await spine.client.hset(spine.keys.fence, BUCKET, '1|e|9|h9');
    await spine.setClock(NOW + 1);
    expect(await spine.pop(owned)).toMatchObject({ popped: 0, fenced: [], lower: [BUCKET] });
    expect(await spine.leader.takeOver(owned)).toMatchObject({ raised: 256, fenced: [] });
    expect(await spine.pop(owned)).toMatchObject({ popped: 1, lower: [] });
  });

  test('buckets that are not owned are left alone', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [aJob('a', { time: NOW + 1 }), aJob('b', { time: NOW + 1 })]);
    const [all] = await spine.lead();
    await spine.setClock(NOW + 1);
    const half = [{ ...all, first: BUCKET, last: BUCKET }] as Parameters<Spine['pop']>[0];
    expect(await spine.pop(half)).toMatchObject({ popped: 1, nextHead: 0 });
    expect(await spine.client.lrange(spine.bull('q', 'wait'), 0, -1)).toEqual(['a']);
  });

  test('I6 CLOCK_JUMP: a TIME past what the caller can believe fires nothing', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [aJob('a', { time: NOW + 1 })]);
    const owned = await spine.lead();
    await spine.setClock(NOW + 10_000);
    const options = { limit: 10, bytes: 1000, prove: true };
    const { result, changes } = await changesOf(spine, () =>
      spine.leader.popDue(owned, { ...options, latest: NOW + 9999 }),
    );
    expect(result).toEqual({ clockJumpedTo: NOW + 10_000 });
    expect(changes).toEqual({});
    expect(await spine.leader.popDue(owned, { ...options, latest: NOW + 10_000 })).toMatchObject({
      popped: 1,
    });
  });

  test('WRONG_LAYOUT moves nothing', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [aJob('a', { time: NOW + 1 })]);
    const owned = await spine.lead();
    await spine.setClock(NOW + 1);
    await spine.client.hset(spine.keys.meta, 'layout', 'another');
    const { changes } = await changesOf(spine, () =>
      expect(spine.pop(owned)).rejects.toMatchObject({ code: 'WRONG_LAYOUT' }),
    );
    expect(changes).toEqual({});
  });
});

describe('pop-due, the heads', () => {
  test('buckets to plan are told to who asks for them', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.schedules.upsert('q', 's', aSchedule(NOW, { next: 0, nextFire: 0 }), 'r');
    const owned = await spine.lead();
    expect(await spine.pop(owned)).toMatchObject({ planned: [bucketOf('q:s')] });
    expect(await spine.pop(owned, { planning: false })).toMatchObject({ planned: [] });
    const others = owned.map((range) => ({ ...range, first: 0, last: bucketOf('q:s') - 1 }));
    expect(await spine.pop(others)).toMatchObject({ planned: [] });
  });

  test('a head of somebody else’s bucket is not taken, and brings nobody back at once', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [aJob('a', { time: NOW + 1 })]);
    const owned = await spine.lead();
    await spine.setClock(NOW + 1);
    const others = owned.map((range) => ({ ...range, first: 0, last: BUCKET - 1 }));
    expect(await spine.pop(others)).toMatchObject({ taken: 0, nextHead: 0, fenced: [] });
    // Nor does a batch that is full before it.
    const above = [{ ...others[0], first: BUCKET + 1, last: 255 } as OwnedRange];
    expect(await spine.pop(above, { limit: 0 })).toMatchObject({ taken: 0, nextHead: 0 });
    expect(await spine.pop(owned, { limit: 0 })).toMatchObject({ taken: 0, nextHead: NOW + 1 });
    expect(await spine.pop(owned)).toMatchObject({ taken: 1, popped: 1 });
  });

  test('the next head of ours is found behind many of others', async ({ task }) => {
    const spine = await Spine.virtual(task);
    const [all] = await spine.lead();
    const last = [{ ...all, first: 200, last: 255 } as OwnedRange];
    for (let bucket = 0; bucket < 200; bucket++)
      await spine.client.zadd(spine.keys.heads, NOW + bucket + 1, bucket);
    expect(await spine.pop(last)).toMatchObject({ nextHead: 0 });
    await spine.client.zadd(spine.keys.heads, NOW + 5000, 255);
    expect(await spine.pop(last)).toMatchObject({ nextHead: NOW + 5000 });
    expect(await spine.pop([all as OwnedRange])).toMatchObject({ nextHead: NOW + 1 });
  });

  test('members that name no bucket are passed over', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [aJob('a', { time: NOW + 1 })]);
    const owned = await spine.lead();
    for (const [score, member] of [[1, 'x'], [1, 'p'], [1, 'px'], [NOW + 9, 'y']] as const) {
      await spine.client.zadd(spine.keys.heads, score, member);
    } // biome-ignore format: one table
    await spine.setClock(NOW + 1);
    expect(await spine.pop(owned)).toMatchObject({ popped: 1, planned: [], trouble: [] });
  });
});

describe('pop-due, workers', () => {
  test('it tells that workers have runs of a queue that it feeds', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [aJob('a', { time: NOW + 1 }), aJob('b', { time: NOW + 2 })]);
    const owned = await spine.lead();
    await spine.setClock(NOW + 1);
    expect(await spine.pop(owned)).toMatchObject({ popped: 1, working: false });
    await spine.client.lmove(spine.bull('q', 'wait'), spine.bull('q', 'active'), 'RIGHT', 'LEFT');
    await spine.setClock(NOW + 2);
    expect(await spine.pop(owned)).toMatchObject({ popped: 1, working: true });
  });
});

describe('pop-due, a queue key of the wrong type', () => {
  test.each([
    ['wait', 'zset'],
    ['active', 'string'],
    ['prioritized', 'list'],
    ['marker', 'string'],
    ['events', 'hash'],
    ['meta', 'string'],
    ['pc', 'list'],
  ])('%s is a %s: that queue is parked, the others flow', async (key, type) => {
    const spine = await Spine.virtual({ name: 'broken key' });
    await spine.submit('q', [aJob('a', { time: NOW + 1, priority: 1 })]);
    await spine.submit('good', [aJob('a', { time: NOW + 1 })]);
    const owned = await spine.lead();
    const wrong = spine.bull('q', key);
    if (type === 'zset') await spine.client.zadd(wrong, 1, 'x');
    else if (type === 'list') await spine.client.lpush(wrong, 'x');
    else if (type === 'hash') await spine.client.hset(wrong, 'x', 'x');
    else await spine.client.set(wrong, 'x');
    await spine.setClock(NOW + 1);
    const { result, changes } = await changesOf(spine, () => spine.drain(owned));
    const reason = `${key} is a ${type}, BullMQ needs a `;
    expect(result).toEqual({ popped: 1, trouble: [expect.stringContaining(`QUEUE_BROKEN q ${reason}`)] });
    expect(changes).toMatchObject({
      'jobs q:a': { state: 'parked' },
      'due q:a': null,
      'parked q:a': NOW + 1,
      'queues q:scheduled': '0',
      'queues q:parked': '1',
      'queues q:broken': expect.stringContaining(`${NOW + 1}|${reason}`),
      'good:wait': ['a'],
    });
    expect(changes).not.toHaveProperty(['q:a']);
  });

  test('a schedule that waits for the planner too is parked and no more on plan', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.schedules.upsert('q', 's', aSchedule(NOW, { next: 0, nextFire: 0 }), 'r');
    const owned = await spine.lead();
    await spine.client.set(spine.bull('q', 'wait'), 'x');
    await spine.setClock(NOW + 60_000);
    expect(await readState(spine)).toMatchObject({ 'plan q:s': NOW });
    const { changes } = await changesOf(spine, () => spine.drain(owned));
    expect(changes).toMatchObject({ 'due q:s': null, 'plan q:s': null, 'parked q:s': NOW + 60_000 });

    // Cured, it is planned again.
    await spine.client.del(spine.bull('q', 'wait'));
    await spine.leader.unparkQueue(owned, 'q', { bucket: 0, offset: 0 }, 10);
    expect(await readState(spine)).toMatchObject({ 'due q:s': NOW + 60_000, 'plan q:s': NOW + 60_000 });
  });
});
