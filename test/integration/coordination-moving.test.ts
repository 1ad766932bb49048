import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { adoptFences } from '../../src/coordination/adopt-fences.js';
import { EtcdEpoch, newEpochId } from '../../src/coordination/etcd/epoch.js';
import { FenceStore, StandaloneEpoch } from '../../src/redis/fence-store.js';
import { Scheduler } from '../../src/scheduler/scheduler.js';
import type { EtcdCluster } from '../../src/support/etcd-process.js';
import { aJob } from '../support/builders.js';
import { EtcdState, startMember } from '../support/etcd-cluster.js';
import { startTestEtcd } from '../support/etcd-server.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { Spine } from '../support/spine.js';
import { startScheduler } from '../support/spine-scheduler.js';

let etcd: EtcdCluster;

beforeAll(async () => {
  etcd = await startTestEtcd();
});

async function setup(task: { name: string }) {
  const spine = await Spine.open({ url: sharedRedisUrl(), namespace: namespaceFor(task) });
  const state = new EtcdState(etcd.hosts, spine.namespace);
  let sent = 0;
  return {
    spine,
    state,
    adopt: () =>
      adoptFences(new EtcdEpoch(state.client, state.keys), new FenceStore(spine.shard), newEpochId()),
    adoptStandalone: () =>
      adoptFences(new StandaloneEpoch(spine.shard), new FenceStore(spine.shard), newEpochId()),
    fences: async () => new Set(Object.values(await spine.client.hgetall(spine.keys.fence))),
    /** Sixty jobs, over many buckets, all of which are dispatched. */
    async dispatches(timeout = 10_000) {
      const from = sent;
      sent += 60;
      await spine.submit(
        'q',
        Array.from({ length: 60 }, (_, i) => aJob(`j${from + i}`, { time: 20, relative: true })),
      );
      await eventually(async () => expect(await spine.client.llen(spine.bull('q', 'wait'))).toBe(sent), {
        timeout,
      });
    },
  };
}

const number = (fences: Set<string>) => new Set([...fences].map((fence) => Number.parseInt(fence, 10)));

test('from standalone to etcd and back: each time an adopt, nothing dispatched without it, nothing lost', async ({
  task,
}) => {
  const { spine, state, adopt, adoptStandalone, dispatches, fences } = await setup(task);
  const alone = await startScheduler(spine);
  await dispatches();
  await alone.stop();

  const { scheduler, logger } = await startMember(spine, etcd.hosts, 'a');
  await eventually(() => expect(scheduler.readiness().reason).toMatch(/^FENCED: 256 buckets.*fence adopt/));
  await spine.submit('q', [aJob('waits', { time: 1, relative: true })]);
  expect(logger.lines.join('\n')).toContain('fence adopt');
  expect(number(await fences())).toEqual(new Set([1]));
  expect(await spine.client.llen(spine.bull('q', 'wait'))).toBe(60);
  // Instances of the new epoch may have raised some by themselves meanwhile.
  expect(await adopt()).toMatchObject({ isNew: true, epoch: { number: 2 } });
  await eventually(() => expect(scheduler.readiness()).toMatchObject({ ready: true, leading: true }));
  await eventually(async () => expect(await spine.client.llen(spine.bull('q', 'wait'))).toBe(61));
  expect(number(await fences())).toEqual(new Set([2]));
  expect((await state.read()).epoch?.number).toBe(2);
  expect((await adopt()).epoch).toBeUndefined();
  await scheduler.stop();

  const back = new Scheduler({
    redis: spine.url,
    namespace: spine.namespace,
    prefix: spine.prefix,
    ttl: '5s',
  });
  onTestFinished(() => back.stop());
  await back.start();
  await spine.submit('q', [aJob('waits too', { time: 1, relative: true })]);
  expect(back.readiness().leading).toBe(false);
  expect(await adoptStandalone()).toMatchObject({ isNew: true, epoch: { number: 3 } });
  await eventually(async () => expect(await spine.client.llen(spine.bull('q', 'wait'))).toBe(62), {
    timeout: 15_000,
  });
  expect(number(await fences())).toEqual(new Set([3]));
  expect((await adoptStandalone()).epoch).toBeUndefined();
}, 60_000);

test('an adopt that looks while partitions are handed over finds nothing in the way', async ({ task }) => {
  const { spine, state } = await setup(task);
  await startMember(spine, etcd.hosts, 'a', { partitions: 1 });
  const store = new FenceStore(spine.shard);
  const holders = async () => new Set([...(await store.read()).values()].map((fence) => fence.split('|')[3]));
  await eventually(async () => expect(await holders()).toEqual(new Set(['a'])));
  await startMember(spine, etcd.hosts, 'b', { partitions: 1 });
  const handingOver = {
    async read() {
      await state.put(state.keys.drain('a'), { at: 'T' });
      await eventually(async () => expect(await holders()).toEqual(new Set(['b'])), { timeout: 15_000 });
      return store.read();
    },
    raise: () => Promise.reject(new Error('nothing is to be raised')),
  };
  const source = new EtcdEpoch(state.client, state.keys);
  expect((await adoptFences(source, handingOver, newEpochId())).epoch).toBeUndefined();
  expect((await state.read()).epoch?.number).toBe(1);
}, 30_000);

test('an adopt that is cut off after any call is finished by the next, under one number', async ({
  task,
}) => {
  const { spine, state } = await setup(task);
  const source = new EtcdEpoch(state.client, state.keys);
  const store = new FenceStore(spine.shard);
  for (let calls = 0, epoch = 2; calls < 16; calls += 5, epoch += 1) {
    const foreign = Array.from({ length: 256 }, (_, bucket) => [bucket, `${epoch - 1}|foreign|9|h`]).flat();
    await spine.client.hset(spine.keys.fence, ...(foreign as [number, string]));
    let left = calls;
    const cutOff = {
      read: () => store.read(),
      raise: async (first: number, last: number, fence: string) => {
        if (left-- <= 0) throw new Error('cut off');
        return store.raise(first, last, fence);
      },
    };
    await expect(adoptFences(source, cutOff, newEpochId())).rejects.toThrow('cut off');
    const begun = (await state.read()).epoch;
    expect(begun?.number).toBe(epoch);
    expect(await adoptFences(source, store, newEpochId())).toMatchObject({ isNew: false });
    const fences = new Set(Object.values(await spine.client.hgetall(spine.keys.fence)));
    expect(fences).toEqual(new Set([`${epoch}|${begun?.id}|0|fence-adopt`]));
  }
});

test('an epoch that somebody else writes at the same time is read again, and given up after a while', async ({
  task,
}) => {
  const { spine, state } = await setup(task);
  await spine.client.hset(spine.keys.fence, 1, '1|foreign|9|h');
  const store = new FenceStore(spine.shard);
  const source = new EtcdEpoch(state.client, state.keys);
  let writers = 2;
  const busy = {
    read: () => source.read(),
    raise: async (to: { number: number; id: string }) => {
      if (writers-- > 0) await state.put(state.keys.epoch, { number: 1, id: `other${writers}` });
      return source.raise(to);
    },
  };
  expect(await adoptFences(busy, store, 'abcd0123')).toMatchObject({ epoch: { number: 2, id: 'abcd0123' } });
  expect((await state.read()).epoch).toMatchObject({ number: 2, id: 'abcd0123' });
  await spine.client.hset(spine.keys.fence, 1, '7|foreign|9|h');
  writers = Number.POSITIVE_INFINITY;
  await expect(adoptFences(busy, store, 'abcd0124')).rejects.toThrow('somebody else');
});

describe('an etcd that is not the one that it was', () => {
  test('wiped under running instances: dispatch stops with a clear reason until it is adopted', async ({
    task,
  }) => {
    const { spine, state, adopt, dispatches } = await setup(task);
    const members = [await startMember(spine, etcd.hosts, 'a'), await startMember(spine, etcd.hosts, 'b')];
    await dispatches();
    for (const { key } of (await state.client.range(state.keys.prefix)).keys) await state.delete(key);
    const reasons = () => members.map(({ scheduler }) => scheduler.readiness().reason);
    await eventually(() => {
      for (const reason of reasons()) expect(reason).toMatch(/^FENCED: 128 buckets/);
    });
    const waiting = spine.submit('q', [aJob('waits', { time: 1, relative: true })]);
    await waiting;
    expect(await adopt()).toMatchObject({ isNew: true, epoch: { number: 2 } });
    await eventually(() => expect(reasons()).toEqual([undefined, undefined]));
    await eventually(async () => expect(await spine.client.llen(spine.bull('q', 'wait'))).toBe(61));
  }, 60_000);

  test('restored to an older state: only the buckets whose fences are ahead stop; an adopt heals them', async ({
    task,
  }) => {
    const { spine, state, adopt, dispatches } = await setup(task);
    const { scheduler } = await startMember(spine, etcd.hosts, 'a');
    await dispatches();
    const { epoch } = await state.read();
    const ahead = `1|${epoch?.id}|900000000|somebody`;
    await spine.client.hset(spine.keys.fence, 7, ahead, 8, ahead);
    await eventually(() => expect(scheduler.readiness().reason).toMatch(/^FENCED: 2 buckets/));
    // The others of the same partition go on.
    expect(scheduler.readiness().leading).toBe(true);
    expect(await spine.client.hget(spine.keys.fence, '7')).toBe(ahead);
    expect(await spine.client.hget(spine.keys.fence, '9')).toMatch(/\|a$/);
    expect(await adopt()).toMatchObject({ isNew: true, inTheWay: [7, 8] });
    await dispatches();
    await eventually(() => expect(scheduler.readiness().ready).toBe(true));
  }, 60_000);

  test('fences that were put right without an adopt are found within seconds', async ({ task }) => {
    const { spine, state } = await setup(task);
    const { scheduler } = await startMember(spine, etcd.hosts, 'a');
    await eventually(() => expect(scheduler.readiness().leading).toBe(true));
    const { epoch } = await state.read();
    await spine.client.hset(spine.keys.fence, 7, `1|${epoch?.id}|900000000|somebody`);
    await eventually(() => expect(scheduler.readiness().reason).toMatch(/^FENCED: 1 bucket has/));
    await spine.client.hdel(spine.keys.fence, '7');
    await eventually(() => expect(scheduler.readiness().ready).toBe(true), { timeout: 15_000 });
    expect(await spine.client.hget(spine.keys.fence, '7')).toMatch(/\|a$/);
  }, 30_000);
});

describe('etcd is gone', () => {
  const TTL = 5000;

  test('B27 stop: submits go on, dispatch ends by the deadline, and goes on within TTL + 2 s of its return', async ({
    task,
  }) => {
    const own = await startTestEtcd();
    const { spine, dispatches } = await setup(task);
    const { scheduler } = await startMember(spine, own.hosts, 'a');
    await dispatches();
    await own.members[0]?.kill9();
    await eventually(() => expect(scheduler.readiness()).toMatchObject({ ready: false, leading: false }), {
      timeout: 2 * TTL,
    });
    await spine.submit('q', [aJob('waits', { time: 1, relative: true })]);
    await own.members[0]?.restart();
    const back = performance.now();
    await eventually(async () => expect(await spine.client.llen(spine.bull('q', 'wait'))).toBe(61), {
      timeout: 3 * TTL,
      every: 20,
    });
    expect(performance.now() - back).toBeLessThan(TTL + 2000);
  }, 60_000);

  test('continue: dispatch goes on as long as nobody fences it, and under the same terms after the return', async ({
    task,
  }) => {
    const own = await startTestEtcd();
    const { spine, dispatches, fences } = await setup(task);
    const { scheduler } = await startMember(spine, own.hosts, 'a', { onEtcdLoss: 'continue' });
    await dispatches();
    const before = await fences();
    await own.members[0]?.kill9();
    await eventually(() => expect(scheduler.readiness().reason).toMatch(/^NOT_JOINED: etcd/), {
      timeout: 2 * TTL,
    });
    const gone = performance.now();
    await eventually(() => performance.now() - gone > TTL + 1000, { timeout: 2 * TTL });
    await dispatches();
    await own.members[0]?.restart();
    await eventually(() => expect(scheduler.readiness().ready).toBe(true), { timeout: 2 * TTL });
    await dispatches();
    // A restart re-arms every lease.
    expect(await fences()).toEqual(before);
  }, 60_000);
});
