import { describe, expect, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import { HeartbeatScripts } from '../../src/redis/heartbeat-scripts.js';
import type { ParkedPosition } from '../../src/redis/leader-scripts.js';
import { FLAGS } from '../../src/redis/record.js';
import { aJob, aSchedule } from '../support/builders.js';
import { aRun, packRecord, scheduleModel } from '../support/builders-record.js';
import { NOW, Spine } from '../support/spine.js';
import { changesOf, readState } from '../support/spine-state.js';

const MINUTE = 60_000;
const HOUR = 3_600_000;
const range = { first: 0, last: 255, servedFrom: 0 };
const START: ParkedPosition = { bucket: 0, offset: 0 };

describe('take-over', () => {
  test('OK: raises every fence of the range, no other', async ({ task }) => {
    const spine = await Spine.virtual(task);
    const some = { ...range, first: 3, last: 5, fence: '1|e|7|me' };
    const { result, changes } = await changesOf(spine, () => spine.leader.takeOver([some]));
    expect(result).toEqual({ raised: 3, fenced: [], otherEpoch: [], now: NOW });
    expect(changes).toEqual({ 'fence 3': some.fence, 'fence 4': some.fence, 'fence 5': some.fence });
  });

  test('B30 tokens are ordered as numbers: 10 above 9, 100 above 99', async ({ task }) => {
    const spine = await Spine.virtual(task);
    for (const [old, young] of [
      [9, 10],
      [99, 100],
    ] as const) {
      await spine.lead(old);
      expect(await spine.leader.takeOver([{ ...range, fence: `1|e|${young}|me` }])).toMatchObject({
        raised: 256,
      });
      const { result, changes } = await changesOf(spine, () =>
        spine.leader.takeOver([{ ...range, fence: `1|e|${old}|h${old}` }]),
      );
      expect(result.raised).toBe(0);
      expect(result.fenced).toHaveLength(256);
      expect(changes).toEqual({});
    }
  });

  test('the same token of another holder is refused; one’s own again is fine', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.lead(5, 'me');
    expect(await spine.leader.takeOver([{ ...range, fence: '1|e|5|me' }])).toMatchObject({ raised: 256 });
    expect((await spine.leader.takeOver([{ ...range, fence: '1|e|5|you' }])).fenced).toHaveLength(256);
  });

  test('another epoch of the same number is told apart; a higher number is above any token', async ({
    task,
  }) => {
    const spine = await Spine.virtual(task);
    await spine.lead(5);
    const other = await spine.leader.takeOver([{ ...range, fence: '1|other|9|me' }]);
    expect(other).toMatchObject({ raised: 0, fenced: [] });
    expect(other.otherEpoch).toHaveLength(256);
    expect(await spine.leader.takeOver([{ ...range, fence: '2|other|1|me' }])).toMatchObject({ raised: 256 });
  });
});

describe('hold-leadership', () => {
  const setup = async (task: { name: string }) => {
    const spine = await Spine.virtual(task);
    return { spine, beats: new HeartbeatScripts(spine.shard) };
  };
  const acquire = (beats: HeartbeatScripts, holder: string, force = false) =>
    beats.hold(holder, 0, 10_000, force);

  test('ACQUIRED with the first token; STANDBY while it beats; HELD by each beat', async ({ task }) => {
    const { spine, beats } = await setup(task);
    const { result, changes } = await changesOf(spine, () => acquire(beats, 'a'));
    expect(result).toMatchObject({ status: 'ACQUIRED', token: 1, epoch: expect.stringMatching(/^1\|.+/) });
    expect(changes).toMatchObject({ 'leader holder': 'a', 'leader token': '1', 'leader beat': String(NOW) });
    await spine.setClock(NOW + 9999);
    expect(await acquire(beats, 'b')).toMatchObject({ status: 'STANDBY', holder: 'a', age: 9999 });
    expect(await beats.hold('a', 1, 10_000, false)).toMatchObject({ status: 'HELD', token: 1 });
    await spine.setClock(NOW + 19_998);
    expect(await acquire(beats, 'b')).toMatchObject({ status: 'STANDBY' });
  });

  test('ACQUIRED by another once the beat is stale; the old holder is told LOST and stays out', async ({
    task,
  }) => {
    const { spine, beats } = await setup(task);
    await acquire(beats, 'a');
    await spine.setClock(NOW + 10_000);
    expect(await acquire(beats, 'b')).toMatchObject({ status: 'ACQUIRED', token: 2 });
    const { result, changes } = await changesOf(spine, () => beats.hold('a', 1, 10_000, false));
    expect(result).toMatchObject({ status: 'LOST', holder: 'b' });
    expect(changes).toEqual({});
  });

  test('the token is above every fence, whatever the counter says', async ({ task }) => {
    const { spine, beats } = await setup(task);
    await spine.client.hset(spine.keys.fence, 17, '1|e|41|x', 18, '1|e|9|x');
    expect(await acquire(beats, 'a')).toMatchObject({ status: 'ACQUIRED', token: 42 });
    await spine.setClock(NOW + 10_000);
    expect(await acquire(beats, 'b')).toMatchObject({ token: 43 });
  });

  test('force takes it from a holder that beats', async ({ task }) => {
    const { beats } = await setup(task);
    await acquire(beats, 'a');
    expect(await acquire(beats, 'b', true)).toMatchObject({ status: 'ACQUIRED', token: 2 });
  });

  test('release frees it at once; by another or with an old token it frees nothing', async ({ task }) => {
    const { spine, beats } = await setup(task);
    await acquire(beats, 'a');
    const { changes } = await changesOf(spine, async () => {
      await beats.release('b', 1);
      await beats.release('a', 7);
    });
    expect(changes).toEqual({});
    await beats.release('a', 1);
    expect(await acquire(beats, 'b')).toMatchObject({ status: 'ACQUIRED', token: 2 });
  });

  test('I6 TIME that went back: the beat of a dead holder does not keep others out for longer than a TTL', async ({
    task,
  }) => {
    const { spine, beats } = await setup(task);
    await acquire(beats, 'a');
    await spine.setClock(NOW - HOUR);
    expect(await acquire(beats, 'b')).toMatchObject({ status: 'STANDBY', age: 0 });
    await spine.setClock(NOW - HOUR + 10_000);
    expect(await acquire(beats, 'b')).toMatchObject({ status: 'ACQUIRED' });
  });
});

describe('refresh-heads', () => {
  test('OK: far timers come within sight, heads of empty buckets go', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [aJob('a')]);
    await spine.schedules.upsert('q', 's', aSchedule(NOW, { cur: 0, curFire: 0, next: 0, nextFire: 0 }), 'r');
    await spine.client.del(spine.keys.heads);
    await spine.client.zadd(spine.keys.heads, NOW, 99, NOW, 'p99');
    const owned = await spine.lead();
    await spine.client.zadd(spine.keys.heads, NOW, 99, NOW, 'p99');
    const { result, changes } = await changesOf(spine, () => spine.leader.refreshHeads(owned));
    expect(result).toBe(2);
    expect(changes).toEqual({ 'heads 99': null, 'heads p99': null });
    expect(await readState(spine)).toMatchObject({
      [`heads ${bucketOf('q:a')}`]: NOW + HOUR,
      [`heads p${bucketOf('q:s')}`]: NOW,
    });
  });
});

describe('sweep-bucket', () => {
  const bucket = bucketOf('q:a');
  const sweep = (spine: Spine, owned: Awaited<ReturnType<Spine['lead']>>) =>
    spine.leader.sweepBucket(owned, bucket, '0', 100);

  test('OK: leaves what agrees alone', async ({ task }) => {
    const spine = await Spine.virtual(task);
    const owned = await spine.lead();
    await spine.submit('q', [aJob('a')]);
    const { result, changes } = await changesOf(spine, () => sweep(spine, owned));
    expect(result).toEqual({ cursor: '0', repaired: [] });
    expect(changes).toEqual({});
  });

  test.each<[string, (spine: Spine) => Promise<unknown>, object]>([
    ['a lost timer', (spine) => spine.client.zrem(spine.keys.due(bucket), 'q:a'), { 'due q:a': NOW + HOUR }],
    [
      'a timer at another time',
      (spine) => spine.client.zadd(spine.keys.due(bucket), 5, 'q:a'),
      { 'due q:a': NOW + HOUR },
    ],
    [
      'a scheduled job that is parked too',
      (spine) => spine.client.zadd(spine.keys.parked(bucket), 5, 'q:a'),
      { 'parked q:a': null },
    ],
  ])('OK: %s is repaired from the record', async (_what, damage, repair) => {
    const spine = await Spine.virtual({ name: 'sweep' });
    const owned = await spine.lead();
    await spine.submit('q', [aJob('a')]);
    await damage(spine);
    const { result, changes } = await changesOf(spine, () => sweep(spine, owned));
    expect(result.repaired).toEqual(['q:a']);
    expect(changes).toEqual(repair);
    expect((await sweep(spine, owned)).repaired).toEqual([]);
  });

  test('OK: a paused job in due is taken out', async ({ task }) => {
    const spine = await Spine.virtual(task);
    const owned = await spine.lead();
    await spine.submit('q', [aJob('a')]);
    await spine.jobs.pause('q', 'a', '', 'r');
    await spine.client.zadd(spine.keys.due(bucket), NOW, 'q:a');
    const { changes } = await changesOf(spine, () => sweep(spine, owned));
    expect(changes).toEqual({ 'due q:a': null });
  });

  test('OK: an enabled schedule without timer and plan gets back what its record says (B14)', async ({
    task,
  }) => {
    const spine = await Spine.virtual(task);
    const owned = await spine.lead();
    await spine.schedules.upsert('q', 'a', aSchedule(NOW), 'r');
    await spine.client.zrem(spine.keys.due(bucket), 'q:a');
    const { result, changes } = await changesOf(spine, () => sweep(spine, owned));
    expect(result.repaired).toEqual(['q:a']);
    expect(changes).toEqual({ 'due q:a': NOW + MINUTE });
    await spine.schedules.upsert('q', 'b', aSchedule(NOW, { cur: 0, curFire: 0, next: 0, nextFire: 0 }), 'r');
    const other = bucketOf('q:b');
    await spine.client.zrem(spine.keys.plan(other), 'q:b');
    const { changes: planned } = await changesOf(spine, () =>
      spine.leader.sweepBucket(owned, other, '0', 100),
    );
    expect(planned).toMatchObject({ 'plan q:b': NOW });
  });

  test('OK: a schedule at its last tick asks for nothing; a check of its waiting runs is a timer too', async ({
    task,
  }) => {
    const spine = await Spine.virtual(task);
    const owned = await spine.lead();
    const at = { cur: NOW + HOUR, curFire: NOW + HOUR, next: 0, nextFire: 0 };
    const waiting = [aRun(NOW - 1, { kind: 'backfill' })];
    const model = scheduleModel({ ...at, check: NOW + 250, waiting, marks: FLAGS.last });
    await spine.client.hset(spine.keys.jobs(bucket), 'q:a', packRecord(model));
    await spine.client.zadd(spine.keys.plan(bucket), NOW, 'q:a');
    const { result, changes } = await changesOf(spine, () => sweep(spine, owned));
    expect(result.repaired).toEqual(['q:a']);
    expect(changes).toMatchObject({ 'due q:a': NOW + 250, 'plan q:a': null });
    expect((await sweep(spine, owned)).repaired).toEqual([]);
  });

  test('FENCED changes nothing', async ({ task }) => {
    const spine = await Spine.virtual(task);
    const old = await spine.lead(1);
    await spine.lead(2);
    await spine.submit('q', [aJob('a')]);
    await spine.client.zrem(spine.keys.due(bucket), 'q:a');
    const { changes } = await changesOf(spine, () =>
      expect(sweep(spine, old)).rejects.toMatchObject({ code: 'FENCED' }),
    );
    expect(changes).toEqual({});
  });
});

describe('rotate-spent', () => {
  const rotate = (spine: Spine) => spine.leader.rotateSpent(HOUR, 600_000, 1000);

  test('OK: an ended id is known for one to two windows, then gone whole', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [aJob('a', { time: NOW }), aJob('g', { time: NOW, chosen: false })]);
    expect(await rotate(spine)).toBe(0);
    await spine.setClock(NOW + 600_000);
    expect(await rotate(spine)).toBe(1);
    await spine.setClock(NOW + HOUR);
    expect(await rotate(spine)).toBe(2);
    expect((await spine.jobs.get('q', 'a')).ended).toEqual({ at: NOW, how: 1 });
    expect((await spine.jobs.get('q', 'g')).ended).toBeUndefined();
    await spine.setClock(NOW + 2 * HOUR);
    await rotate(spine);
    expect((await spine.jobs.get('q', 'a')).ended).toBeUndefined();
    expect(Object.keys(await readState(spine)).filter((name) => name.startsWith('spent'))).toEqual([]);
  });

  test('I6 TIME that went back rotates nothing', async ({ task }) => {
    const spine = await Spine.virtual(task);
    await spine.submit('q', [aJob('a', { time: NOW })]);
    await spine.setClock(NOW - 10 * HOUR);
    expect(await rotate(spine)).toBe(0);
  });
});

describe('unpark-queue', () => {
  /** Two parked jobs of `q`, one of `other`, both broken. */
  async function parked(task: { name: string }) {
    const spine = await Spine.virtual(task);
    for (const queue of ['q', 'other']) await spine.client.set(spine.bull(queue, 'wait'), 'x');
    const owned = await spine.lead();
    await spine.submit('q', [aJob('a', { time: NOW }), aJob('b', { time: NOW - 5 })]);
    await spine.submit('other', [aJob('a', { time: NOW })]);
    return { spine, owned };
  }

  test('BROKEN: says why, moves nothing', async ({ task }) => {
    const { spine, owned } = await parked(task);
    await spine.setClock(NOW + 1);
    const { result, changes } = await changesOf(spine, () =>
      spine.leader.unparkQueue(owned, 'q', START, 100),
    );
    expect(result).toEqual({ broken: 'wait is a string, BullMQ needs a list' });
    expect(Object.keys(changes)).toEqual([]);
  });

  test('OK: its records go back to their timers, the other queue’s stay', async ({ task }) => {
    const { spine, owned } = await parked(task);
    await spine.client.del(spine.bull('q', 'wait'));
    const { result, changes } = await changesOf(spine, () =>
      spine.leader.unparkQueue(owned, 'q', START, 100),
    );
    expect(result).toEqual({ moved: 2, next: { bucket: 256, offset: 0 } });
    expect(changes).toEqual({
      'jobs q:a': { state: 'scheduled' },
      'jobs q:b': { state: 'scheduled' },
      'parked q:a': null,
      'parked q:b': null,
      'due q:a': NOW,
      'due q:b': NOW - 5,
      [`heads ${bucketOf('q:a')}`]: NOW,
      [`heads ${bucketOf('q:b')}`]: NOW - 5,
      'queues q:parked': '0',
      'queues q:scheduled': '2',
      'queues q:broken': null,
    });
    expect(await spine.drain(owned)).toEqual({ popped: 2, trouble: [] });
  });

  test('OK: a bounded number a call, going on where it stopped; broken until the last one is back', async ({
    task,
  }) => {
    const { spine, owned } = await parked(task);
    await spine.client.del(spine.bull('q', 'wait'));
    const first = await spine.leader.unparkQueue(owned, 'q', START, 1);
    expect(first).toMatchObject({ moved: 1 });
    expect(await readState(spine)).toHaveProperty(['queues q:broken']);
    const { next } = first as { next: ParkedPosition };
    expect(next.bucket).toBeLessThan(256);
    expect(await spine.leader.unparkQueue(owned, 'q', next, 100)).toEqual({
      moved: 1,
      next: { bucket: 256, offset: 0 },
    });
    expect(await readState(spine)).not.toHaveProperty(['queues q:broken']);
  });

  test('OK also when thousands of another broken queue stand before it in the bucket', async ({ task }) => {
    const { spine, owned } = await parked(task);
    const bucket = bucketOf('q:a');
    const crowd = Array.from({ length: 3000 }, (_, i) => [1, `other:x${i}`]).flat() as (string | number)[];
    await spine.client.zadd(spine.keys.parked(bucket), ...crowd);
    await spine.client.del(spine.bull('q', 'wait'));
    let from = START;
    let moved = 0;
    while (from.bucket < 256) {
      const reply = (await spine.leader.unparkQueue(owned, 'q', from, 100)) as {
        moved: number;
        next: ParkedPosition;
      };
      moved += reply.moved;
      from = reply.next;
    }
    expect(moved).toBe(2);
  });

  test('I5 fenced: moves nothing, and the mark stays for the one who leads', async ({ task }) => {
    const { spine, owned } = await parked(task);
    await spine.lead(2);
    await spine.client.del(spine.bull('q', 'wait'));
    const { changes } = await changesOf(spine, () => spine.leader.unparkQueue(owned, 'q', START, 100));
    expect(changes).toEqual({});
  });

  test('a schedule parked beyond its grace leaves its tick to the planner; within it, it fires', async ({
    task,
  }) => {
    const spine = await Spine.virtual(task);
    const owned = await spine.lead();
    await spine.client.set(spine.bull('q', 'wait'), 'x');
    await spine.schedules.upsert(
      'q',
      'short',
      aSchedule(NOW, { grace: 500, cur: NOW + 1, curFire: NOW + 1 }),
      'r1',
    );
    await spine.schedules.upsert(
      'q',
      'long',
      aSchedule(NOW, { grace: 30_000, cur: NOW + 1, curFire: NOW + 1 }),
      'r2',
    );
    await spine.setClock(NOW + 1);
    await spine.drain(owned);
    await spine.client.del(spine.bull('q', 'wait'));
    await spine.setClock(NOW + 10_001);
    const { changes } = await changesOf(spine, () => spine.leader.unparkQueue(owned, 'q', START, 100));
    expect(changes).toMatchObject({
      'jobs q:short': { state: 'scheduled', flags: FLAGS.overdue | FLAGS.unserved },
      'plan q:short': NOW + 10_001,
      'parked q:short': null,
      'jobs q:long': { state: 'scheduled' },
      'due q:long': NOW + 1,
      'parked q:long': null,
    });
    expect(changes).not.toHaveProperty(['due q:short']);
    expect(await spine.drain(owned)).toEqual({ popped: 1, trouble: [] });
  });
});
