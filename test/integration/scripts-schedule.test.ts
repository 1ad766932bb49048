import { describe, expect, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import type { PlanAnswer } from '../../src/redis/leader-scripts.js';
import { FLAGS, type ScheduleRecord } from '../../src/redis/record.js';
import { aJob, aSchedule } from '../support/builders.js';
import { INC, NOW, Spine } from '../support/spine.js';
import { changesOf, readState } from '../support/spine-state.js';

const MINUTE = 60_000;
const BUCKET = bucketOf('q:s');

async function recordOf(spine: Spine): Promise<ScheduleRecord> {
  return (await spine.jobs.get('q', 's')).record as ScheduleRecord;
}

async function expectedOf(spine: Spine): Promise<{ inc: number; ver: number; last: number }> {
  const { inc, ver, last } = await recordOf(spine);
  return { inc, ver, last };
}

describe('upsert-schedule', () => {
  test('OK, creation: a record with two ticks and a timer', async ({ task }) => {
    const spine = await Spine.virtual(task);
    const { result, changes } = await changesOf(spine, () =>
      spine.schedules.upsert('q', 's', aSchedule(NOW), 'r'),
    );
    expect(result).toMatchObject({ status: 'OK', now: NOW, record: { cur: NOW + MINUTE } });
    expect(changes).toEqual({
      'jobs q:s': {
        kind: 'schedule',
        anchor: NOW,
        after: false,
        state: 'scheduled',
        flags: 0,
        inc: INC,
        ver: INC,
        timestamp: NOW,
        priority: 0,
        lifo: false,
        requests: 1,
        name: 'tick',
        data: '{}',
        opts: '',
        last: 0,
        cur: NOW + MINUTE,
        curFire: NOW + MINUTE,
        next: NOW + 2 * MINUTE,
        nextFire: NOW + 2 * MINUTE,
        check: 0,
        count: 0,
        rows: 0,
        owed: false,
        grace: 30_000,
        runTimeout: 0,
        missed: 0,
        overlap: 0,
        maxOpen: 32,
        maxConcurrent: 1,
        keptRows: 50,
        pauseAfter: 0,
        failures: 0,
        skips: 0,
        open: [],
        waiting: [],
        policies: '{"every":60000,"missed":"skip"}',
      },
      'due q:s': NOW + MINUTE,
      [`heads ${BUCKET}`]: NOW + MINUTE,
      'queues q:schedules': '1',
      'meta inc': String(INC),
    });
  });

  test('OK, without a known successor: on plan as well', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.schedules.upsert('q', 's', aSchedule(NOW, { next: 0, nextFire: 0 }), 'r');
    expect(await readState(spine)).toMatchObject({ 'due q:s': NOW + MINUTE, 'plan q:s': NOW });
  });

  test('OK, an edit of the template alone moves no tick', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.schedules.upsert('q', 's', aSchedule(NOW), 'r1');
    const expected = await expectedOf(spine);
    const { changes } = await changesOf(spine, () =>
      spine.schedules.upsert(
        'q',
        's',
        aSchedule(NOW, { expected, keepTicks: true, cur: 0, data: '[1]' }),
        'r2',
      ),
    );
    expect(changes).toEqual({
      'jobs q:s': { data: '[1]', ver: INC + 1, flags: FLAGS.ver, requests: 2 },
      'meta inc': String(INC + 1),
    });
  });

  test('B10 B12 OK, an edit of the times: the old tick fires no more, an overdue one is recorded as edited', async ({
    task,
  }) => {
    const spine = await Spine.virtual(task);
    await spine.schedules.upsert('q', 's', aSchedule(NOW), 'r1');
    const owned = await spine.lead();
    const now = NOW + MINUTE + 5;
    await spine.setClock(now);
    const write = aSchedule(now, {
      expected: await expectedOf(spine),
      cur: NOW + 5 * MINUTE,
      curFire: NOW + 5 * MINUTE,
    });
    const { changes } = await changesOf(spine, () => spine.schedules.upsert('q', 's', write, 'r2'));
    expect(changes).toMatchObject({
      'jobs q:s': { last: NOW + MINUTE, cur: NOW + 5 * MINUTE },
      'due q:s': NOW + 5 * MINUTE,
      'ledger:q:s 0': `${NOW + MINUTE}|skipped|${now}||edited`,
    });
    expect(await spine.drain(owned)).toEqual({ popped: 0, trouble: [] });
  });

  test('CONFLICT: somebody wrote it meanwhile, created it or deleted it', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.schedules.upsert('q', 's', aSchedule(NOW), 'r1');
    const { inc, ver, last } = await recordOf(spine);
    const { changes } = await changesOf(spine, async () => {
      for (const expected of [
        { inc, ver: ver + 1, last },
        { inc: inc - 1, ver, last },
        { inc, ver, last: NOW },
        undefined,
      ]) {
        const { status } = await spine.schedules.upsert('q', 's', aSchedule(NOW, { expected }), 'r2');
        expect(status).toBe('CONFLICT');
      }
      const gone = await spine.schedules.upsert(
        'q',
        'none',
        aSchedule(NOW, { expected: { inc, ver, last } }),
        'r3',
      );
      expect(gone.status).toBe('CONFLICT');
    });
    expect(changes).toEqual({});
  });

  test('RETRY: ticks computed from a TIME of long ago, or at or below the last one that ran (I6)', async ({
    task,
  }) => {
    const spine = await Spine.virtual(task);
    const late = await spine.schedules.upsert('q', 's', aSchedule(NOW - 10_001), 'r1');
    expect(late).toEqual({ status: 'RETRY', now: NOW, last: 0 });
    await spine.schedules.upsert('q', 's', aSchedule(NOW), 'r2');
    await spine.setClock(NOW + MINUTE);
    await spine.drain(await spine.lead());
    // TIME goes back: the first tick of a new definition would be one that ran.
    await spine.setClock(NOW + MINUTE - 2000);
    const again = aSchedule(NOW + MINUTE - 2000, { cur: NOW + MINUTE, curFire: NOW + MINUTE });
    const expected = await expectedOf(spine);
    expect(await spine.schedules.upsert('q', 's', { ...again, expected }, 'r3')).toMatchObject({
      status: 'RETRY',
      last: NOW + MINUTE,
    });
    await spine.jobs.cancel('q', 's', '', 'c');
    expect(await spine.schedules.upsert('q', 's', again, 'r4')).toMatchObject({
      status: 'RETRY',
      last: NOW + MINUTE,
    });
  });

  test('ID_IN_USE: a one-time job has the id', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [aJob('s')]);
    const { changes } = await changesOf(spine, () =>
      expect(spine.schedules.upsert('q', 's', aSchedule(NOW), 'r')).rejects.toMatchObject({
        code: 'ID_IN_USE',
      }),
    );
    expect(changes).toEqual({});
  });

  test('a definition without any tick ends the schedule; one with ticks wakes it again', async ({ task }) => {
    const spine = await Spine.virtual(task);
    const never = { cur: 0, curFire: 0, next: 0, nextFire: 0, ends: true };
    await spine.schedules.upsert('q', 's', aSchedule(NOW, never), 'r1');
    expect(await readState(spine)).toMatchObject({ 'jobs q:s': { state: 'ended' } });
    expect(await readState(spine)).not.toHaveProperty(['plan q:s']);
    await spine.schedules.upsert('q', 's', aSchedule(NOW, { expected: await expectedOf(spine) }), 'r2');
    expect(await readState(spine)).toMatchObject({
      'jobs q:s': { state: 'scheduled' },
      'due q:s': NOW + MINUTE,
    });
  });
});

/** The row of the tick that the plain way left to the record. */
const ROW = { 'ledger:q:s 0': `${NOW + MINUTE}|dispatched|${NOW + MINUTE}||` };
const SETTLED = { owed: false, rows: 1 };

describe('read-plan and set-next', () => {
  /** A schedule whose first tick just fired: its successor is asked for. */
  async function setup(task: { name: string }) {
    const spine = await Spine.virtual(task);
    await spine.schedules.upsert('q', 's', aSchedule(NOW), 'r');
    const owned = await spine.lead();
    await spine.setClock(NOW + MINUTE);
    await spine.leader.refreshHeads(owned);
    await spine.pop(owned);
    const { inc, ver } = await recordOf(spine);
    const target = { bucket: BUCKET, identity: 'q:s', inc: String(inc), ver: String(ver) };
    const append: PlanAnswer = {
      ...target,
      op: 'append',
      tail: NOW + 2 * MINUTE,
      tick: NOW + 3 * MINUTE,
      fireAt: NOW + 3 * MINUTE + 7,
    };
    return { spine, owned, target, append };
  }

  /** A schedule whose only tick was missed: it stands on plan alone. */
  async function missed(task: { name: string }) {
    const spine = await Spine.virtual(task);
    await spine.schedules.upsert('q', 's', aSchedule(NOW, { next: 0, nextFire: 0 }), 'r');
    await spine.setClock(NOW + 10 * MINUTE);
    const owned = await spine.lead();
    await spine.pop(owned);
    const { inc, ver } = await recordOf(spine);
    const resolve: PlanAnswer = {
      bucket: BUCKET,
      identity: 'q:s',
      inc: String(inc),
      ver: String(ver),
      op: 'resolve',
      cur: NOW + MINUTE,
      last: 0,
      newLast: NOW + 10 * MINUTE,
      newCur: NOW + 11 * MINUTE,
      newCurFire: NOW + 11 * MINUTE,
      newNext: NOW + 12 * MINUTE,
      newNextFire: NOW + 12 * MINUTE,
      catchUp: [],
      ends: false,
      skipped: [{ at: NOW + 10 * MINUTE, what: 'skipped', reason: 'missed' }],
    };
    return { spine, owned, resolve };
  }

  test('read-plan tells what is asked, and when', async ({ task }) => {
    const { spine } = await setup(task);
    const { now, items } = await spine.leader.readPlan([BUCKET, 3], 10, 1000);
    expect(now).toBe(NOW + MINUTE);
    expect(items).toEqual([
      { bucket: BUCKET, identity: 'q:s', record: expect.any(Buffer), askedAt: NOW + MINUTE },
    ]);
    const { spine: other } = await missed(task);
    expect((await other.leader.readPlan([BUCKET], 10, 1000)).items).toHaveLength(1);
    // It was asked for since its creation, before its tick was missed too.
    await other.setClock(NOW - 1);
    expect((await other.leader.readPlan([BUCKET], 10, 1000)).items).toEqual([]);
  });

  test('append OK: the successor is known, nothing more is asked', async ({ task }) => {
    const { spine, owned, append } = await setup(task);
    const { result, changes } = await changesOf(spine, () => spine.leader.setNext(owned, [append]));
    expect(result).toEqual({ outcomes: ['OK'], now: NOW + MINUTE });
    expect(changes).toEqual({
      'jobs q:s': { next: NOW + 3 * MINUTE, nextFire: NOW + 3 * MINUTE + 7, ...SETTLED },
      ...ROW,
      'plan q:s': null,
      [`heads p${BUCKET}`]: null,
    });
  });

  test('CONFLICT: an answer to another state of the record changes nothing but what is asked', async ({
    task,
  }) => {
    const { spine, owned, append } = await setup(task);
    const others: PlanAnswer[] = [
      { ...append, ver: String(INC + 99) },
      { ...append, inc: '1' },
      { ...append, tail: NOW + MINUTE } as PlanAnswer,
      { ...append, tick: NOW + MINUTE } as PlanAnswer,
    ];
    const { result, changes } = await changesOf(spine, () => spine.leader.setNext(owned, others));
    expect(result.outcomes).toEqual(['CONFLICT', 'CONFLICT', 'CONFLICT', 'CONFLICT']);
    expect(changes).toEqual({});
    expect((await spine.leader.setNext(owned, [append, append])).outcomes).toEqual(['OK', 'CONFLICT']);
  });

  test('FENCED: nothing changes', async ({ task }) => {
    const { spine, owned, append } = await setup(task);
    await spine.lead(2);
    const { result, changes } = await changesOf(spine, () => spine.leader.setNext(owned, [append]));
    expect(result.outcomes).toEqual(['FENCED']);
    expect(changes).toEqual({});
  });

  test('resolve OK: skipped ticks are recorded, the next one is pending', async ({ task }) => {
    const { spine, owned, resolve } = await missed(task);
    const { result, changes } = await changesOf(spine, () => spine.leader.setNext(owned, [resolve]));
    expect(result.outcomes).toEqual(['OK']);
    expect(changes).toEqual({
      'jobs q:s': {
        last: NOW + 10 * MINUTE,
        cur: NOW + 11 * MINUTE,
        curFire: NOW + 11 * MINUTE,
        next: NOW + 12 * MINUTE,
        nextFire: NOW + 12 * MINUTE,
        flags: 0,
        rows: 1,
      },
      'ledger:q:s 0': `${NOW + 10 * MINUTE}|skipped|${NOW + 10 * MINUTE}||missed`,
      'due q:s': NOW + 11 * MINUTE,
      'plan q:s': null,
      [`heads ${BUCKET}`]: NOW + 11 * MINUTE,
      [`heads p${BUCKET}`]: null,
    });
    expect((await spine.leader.setNext(owned, [resolve])).outcomes).toEqual(['CONFLICT']);
  });

  test('resolve to catch-up runs: they wait, counted, and the next pop starts the first; the rest in turn', async ({
    task,
  }) => {
    const { spine, owned, resolve } = await missed(task);
    const ticks = [NOW + 9 * MINUTE, NOW + 10 * MINUTE];
    const caught = { ...resolve, catchUp: ticks, skipped: [] } as PlanAnswer;
    const { changes } = await changesOf(spine, () => spine.leader.setNext(owned, [caught]));
    const now = NOW + 10 * MINUTE;
    expect(changes).toMatchObject({
      'jobs q:s': {
        count: 2,
        check: now,
        waiting: ticks.map((scheduledFor) => ({ scheduledFor, since: now, kind: 'catchUp', suffix: '' })),
      },
      'due q:s': now,
      [`heads ${BUCKET}`]: now,
    });
    expect(await spine.drain(owned)).toEqual({ popped: 1, trouble: [] });
    expect(await readState(spine)).toMatchObject({
      'jobs q:s': { open: [{ scheduledFor: ticks[0] }], waiting: [{ scheduledFor: ticks[1] }], count: 2 },
      'due q:s': now + 250,
      'ledger:q:s 0': `${ticks[0]}|caught up|${now}||`,
    });
  });

  test('resolve to nothing: the schedule has ended, but not while runs wait', async ({ task }) => {
    const { spine, owned, resolve } = await missed(task);
    const none = { newCur: 0, newCurFire: 0, newNext: 0, newNextFire: 0, ends: true };
    const { changes } = await changesOf(spine, () =>
      spine.leader.setNext(owned, [{ ...resolve, ...none } as PlanAnswer]),
    );
    expect(changes).toMatchObject({
      'jobs q:s': { state: 'ended', cur: 0 },
      'plan q:s': null,
      history: [{ what: 'ended', reason: 'no tick follows' }],
    });
    expect(await readState(spine)).not.toHaveProperty(['due q:s']);

    const { spine: other, owned: its, resolve: last } = await missed(task);
    const tick = NOW + 10 * MINUTE;
    const caught = { ...last, ...none, catchUp: [tick], skipped: [] } as PlanAnswer;
    await other.leader.setNext(its, [caught]);
    const waits = await readState(other);
    expect(waits).toMatchObject({ 'jobs q:s': { state: 'scheduled', flags: FLAGS.last }, 'due q:s': tick });
    // Nobody asks the planner again and again meanwhile.
    expect(waits).not.toHaveProperty(['plan q:s']);
    await other.drain(its);
    expect(await readState(other)).toMatchObject({ 'plan q:s': tick });
    const after = { cur: 0, last: NOW + 10 * MINUTE, catchUp: [], skipped: [] };
    await other.leader.setNext(its, [{ ...caught, ...after } as PlanAnswer]);
    expect(await readState(other)).toMatchObject({ 'jobs q:s': { state: 'ended' } });
  });

  test('resolve with a reason to suspend', async ({ task }) => {
    const { spine, owned, resolve } = await missed(task);
    const none = { newCur: 0, newCurFire: 0, newNext: 0, newNextFire: 0, ends: true };
    const suspends = { ...resolve, ...none, suspends: 'more than 100 ticks were missed' } as PlanAnswer;
    const { changes } = await changesOf(spine, () => spine.leader.setNext(owned, [suspends]));
    expect(changes).toMatchObject({
      'jobs q:s': { state: 'suspended', note: 'more than 100 ticks were missed' },
      'plan q:s': null,
      history: [{ what: 'suspended', reason: 'more than 100 ticks were missed' }],
    });
  });

  test('resolve CONFLICT for a tick that nobody gave to the planner: that one is the pop’s to fire', async ({
    task,
  }) => {
    const { spine, owned, target } = await setup(task);
    const { resolve } = await missed(task);
    const record = await recordOf(spine);
    const early = { ...resolve, ...target, cur: record.cur, last: record.last } as PlanAnswer;
    const { changes, result } = await changesOf(spine, () => spine.leader.setNext(owned, [early]));
    expect(result.outcomes).toEqual(['CONFLICT']);
    expect(changes).toEqual({});
  });

  test('defer asks again later; suspend says why', async ({ task }) => {
    const { spine, owned, target } = await setup(task);
    const later = NOW + 5 * MINUTE;
    const { changes: deferred } = await changesOf(spine, () =>
      spine.leader.setNext(owned, [{ ...target, op: 'defer', planAt: later }]),
    );
    expect(deferred).toEqual({ 'plan q:s': later, [`heads p${BUCKET}`]: later });
    const { changes: suspended } = await changesOf(spine, () =>
      spine.leader.setNext(owned, [{ ...target, op: 'suspend', reason: 'cannot be planned' }]),
    );
    expect(suspended).toMatchObject({
      'jobs q:s': { state: 'suspended', note: 'cannot be planned' },
      'due q:s': null,
      history: [{ what: 'suspended', reason: 'cannot be planned' }],
    });
  });

  test('end: the pending tick is known to be the last, and nothing more is asked before it came', async ({
    task,
  }) => {
    const { spine, owned, target } = await setup(task);
    const end = { ...target, op: 'end', tail: NOW + 2 * MINUTE } as PlanAnswer;
    const other = { ...end, tail: NOW + MINUTE } as PlanAnswer;
    const { result, changes } = await changesOf(spine, () => spine.leader.setNext(owned, [other, end]));
    expect(result.outcomes).toEqual(['CONFLICT', 'OK']);
    expect(changes).toEqual({
      'jobs q:s': { flags: FLAGS.last, ...SETTLED },
      ...ROW,
      'plan q:s': null,
      [`heads p${BUCKET}`]: null,
    });
    await spine.setClock(NOW + 2 * MINUTE);
    await spine.leader.refreshHeads(owned);
    // Its run is open, and overlap is skip: a limit counts runs, so that one more tick may follow.
    await spine.client.del(spine.bull('q', 'wait'));
    expect(await spine.pop(owned)).toMatchObject({ popped: 0 });
    expect(await readState(spine)).toMatchObject({
      'jobs q:s': { cur: 0, flags: 0, count: 1 },
      'ledger:q:s 1': `${NOW + 2 * MINUTE}|skipped|${NOW + 2 * MINUTE}||overlap`,
      'plan q:s': NOW + 2 * MINUTE,
    });
  });

  test('forget drops a plan entry without a record, or one that asks for nothing', async ({ task }) => {
    const { spine, owned, target, append } = await setup(task);
    await spine.leader.setNext(owned, [append]);
    await spine.client.zadd(spine.keys.plan(BUCKET), NOW, 'q:s', NOW, 'q:nobody');
    await spine.leader.setNext(owned, [
      { ...target, op: 'forget' },
      { ...target, identity: 'q:nobody', op: 'forget' },
    ]);
    expect(await spine.client.zcard(spine.keys.plan(BUCKET))).toBe(0);
  });

  test('BAD_RECORD: a record that cannot be read, a successor that cannot be packed; it is asked for again', async ({
    task,
  }) => {
    const { spine, owned, append } = await setup(task);
    const { result, changes } = await changesOf(spine, () =>
      spine.leader.setNext(owned, [{ ...append, fireAt: 2 ** 48 - 1 } as PlanAnswer]),
    );
    expect(result.outcomes).toEqual([expect.stringMatching(/^BAD_RECORD .*out of range/)]);
    const again = NOW + 2 * MINUTE;
    // The row is true all the same, and written again with the next answer.
    expect(changes).toEqual({ 'plan q:s': again, [`heads p${BUCKET}`]: again, ...ROW });
    await spine.client.hset(spine.keys.jobs(BUCKET), 'q:s', 'garbage');
    expect((await spine.leader.setNext(owned, [append])).outcomes).toEqual(['BAD_RECORD']);
  });

  test('quarantine: a record that cannot be read is set aside whole; a newer format is left alone', async ({
    task,
  }) => {
    const { spine, owned, target } = await setup(task);
    const aside = [
      { ...target, inc: '', ver: '', op: 'quarantine', reason: 'BAD_RECORD: x' },
    ] as PlanAnswer[];
    expect((await spine.leader.setNext(owned, aside)).outcomes).toEqual(['CONFLICT']);
    await spine.client.hset(spine.keys.jobs(BUCKET), 'q:s', Buffer.alloc(40, 0x21));
    const { changes: newer } = await changesOf(spine, () => spine.leader.setNext(owned, aside));
    expect(newer).toEqual({});
    await spine.client.hset(spine.keys.jobs(BUCKET), 'q:s', 'garbage');
    const { result, changes } = await changesOf(spine, () => spine.leader.setNext(owned, aside));
    expect(result.outcomes).toEqual(['OK']);
    expect(changes).toMatchObject({
      'jobs q:s': null,
      'due q:s': null,
      'plan q:s': null,
      'quarantine q:s': { reason: 'BAD_RECORD: x', record: Buffer.from('garbage') },
      'queues q:schedules': '0',
    });
  });
});
