import { beforeAll, describe, expect, test } from 'vitest';
import type { EtcdClient } from '../../src/coordination/etcd/etcd-client.js';
import { claimPartition } from '../../src/coordination/etcd/partition-claims.js';
import type { EtcdCluster } from '../../src/support/etcd-process.js';
import { EtcdState } from '../support/etcd-cluster.js';
import { startCoordinator, TTL } from '../support/etcd-coordinator.js';
import { startTestEtcd } from '../support/etcd-server.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { namespaceFor } from '../support/namespace.js';

const ALL = [0, 64, 128, 192];
let etcd: EtcdCluster;

beforeAll(async () => {
  etcd = await startTestEtcd();
});

function setup(task: { name: string }) {
  const namespace = namespaceFor(task);
  const state = new EtcdState(etcd.hosts, namespace);
  const start = (id: string, over: Partial<Parameters<typeof startCoordinator>[1]> = {}) =>
    startCoordinator(id, { hosts: etcd.hosts, namespace, ...over });
  return { state, start, namespace };
}

describe('leading', () => {
  test('one instance leads every partition; its tokens are the keys’ create revisions', async ({ task }) => {
    const { state, start } = setup(task);
    const { coordinator, led } = await start('a');
    await eventually(() => expect(led()).toEqual(ALL));
    const { partitions, epoch, layout, members } = await state.read();
    expect(epoch).toMatchObject({ number: 1, id: expect.stringMatching(/^[0-9a-f]{8}$/) });
    expect(layout).toMatchObject({ partitions: 4, pinned: false });
    expect(members).toMatchObject([{ instanceId: 'a', partitions: 4, fit: true, draining: false }]);
    for (const { first, last, token, holder, epoch: text } of coordinator.terms()) {
      expect(partitions.find(({ n }) => n * 64 === first)?.token).toBe(token);
      expect([last - first, holder, text]).toEqual([63, 'a', `1|${epoch?.id}`]);
    }
    expect(coordinator.trouble()).toBeUndefined();
  });

  test('a second one gets its share once it has settled, each partition after what was under way', async ({
    task,
  }) => {
    const { state, start } = setup(task);
    const first = await start('a');
    await eventually(() => expect(first.led()).toEqual(ALL));
    let release: () => void = () => undefined;
    const busy = new Promise<void>((resolve) => {
      release = resolve;
    });
    first.coordinator.onHandOver(() => busy);
    const second = await start('b', { settle: 1000 });
    await eventually(() => expect(first.led()).toHaveLength(2));
    // Ended here, and not yet free for the other: its key stands as long as the loop is at work.
    expect((await state.read()).partitions.every(({ instanceId }) => instanceId === 'a')).toBe(true);
    release();
    await eventually(() => expect([...first.led(), ...second.led()].sort((a, b) => a - b)).toEqual(ALL));
    const { handOvers } = await state.read();
    expect(handOvers.map(({ instanceId, reason }) => [instanceId, reason])).toEqual(
      Array.from({ length: 2 }, () => ['a', 'another instance should lead it']),
    );
  });

  test('a hand-over that etcd did not answer is gone through with: its term never begins again', async ({
    task,
  }) => {
    const { state, start } = setup(task);
    let refuses = false;
    let refused = 0;
    const wrap = (client: EtcdClient): EtcdClient => ({
      ...bound(client),
      txn: async (transaction) => {
        const [first] = transaction.success;
        if (refuses && first && 'delete' in first && first.delete.includes('/partitions/')) {
          refused += 1;
          throw new Error('no answer');
        }
        return client.txn(transaction);
      },
    });
    const first = await start('a', { wrap });
    await eventually(() => expect(first.led()).toEqual(ALL));
    const before = new Map(first.coordinator.terms().map(({ first: bucket, token }) => [bucket, token]));
    refuses = true;
    const second = await start('b');
    await eventually(() => expect(first.led()).toHaveLength(2));
    const kept = first.led();
    await eventually(() => expect(refused).toBeGreaterThan(0));
    await second.coordinator.stop();
    await eventually(async () => expect((await state.read()).members).toHaveLength(1));
    // All are its own to lead again; those it must first have given back.
    const seen = refused;
    await eventually(() => expect(refused).toBeGreaterThan(seen + 1));
    expect(first.led()).toEqual(kept);
    refuses = false;
    await eventually(() => expect(first.led()).toEqual(ALL));
    for (const { first: bucket, token } of first.coordinator.terms())
      expect(token > (before.get(bucket) ?? 0)).toBe(!kept.includes(bucket));
  });

  test('a loop that never rests delays a hand-over by a second, no longer', async ({ task }) => {
    const { start } = setup(task);
    const first = await start('a');
    await eventually(() => expect(first.led()).toEqual(ALL));
    first.coordinator.onHandOver(() => new Promise(() => undefined));
    const second = await start('b');
    await eventually(() => expect(second.led()).toHaveLength(2), { timeout: 5000 });
  });

  test('stop gives everything back at once; the next holder’s tokens are higher', async ({ task }) => {
    const { state, start } = setup(task);
    const first = await start('a');
    const second = await start('b');
    await eventually(() => expect(first.led()).toHaveLength(2));
    await eventually(() => expect(second.led()).toHaveLength(2));
    const before = new Map((await state.read()).partitions.map(({ n, token }) => [n, token]));
    const stopped = performance.now();
    await first.coordinator.stop();
    expect(first.led()).toEqual([]);
    await eventually(() => expect(second.led()).toEqual(ALL), { every: 5 });
    expect(performance.now() - stopped).toBeLessThan(500);
    const { partitions, members, handOvers } = await state.read();
    expect(members.map(({ instanceId }) => instanceId)).toEqual(['b']);
    const moved = partitions.filter(({ n, token }) => token !== before.get(n));
    expect(moved).toHaveLength(2);
    for (const { n, token } of moved) expect(token).toBeGreaterThan(before.get(n) ?? Number.NaN);
    expect(handOvers.filter(({ reason }) => reason === 'it stopped').map(({ n }) => n)).toEqual(
      moved.map(({ n }) => n),
    );
  });
});

describe('trust', () => {
  test('ends by the local clock alone, a margin before the TTL, in the same turn', async ({ task }) => {
    const { start } = setup(task);
    const { coordinator, clock, led } = await start('a');
    await eventually(() => expect(led()).toEqual(ALL));
    const terms = coordinator.terms();
    clock.advance(TTL + 1);
    expect(terms.map((term) => term.isValid())).toEqual([false, false, false, false]);
    expect(coordinator.terms()).toEqual([]);
    // It finds out, joins with another lease, and leads under higher tokens.
    await eventually(() => expect(led()).toEqual(ALL), { timeout: 15_000 });
    const highest = Math.max(...terms.map(({ token }) => token));
    for (const { token } of coordinator.terms()) expect(token).toBeGreaterThan(highest);
    expect(terms.some((term) => term.isValid())).toBe(false);
  }, 30_000);

  test('counts from before the renewal was sent: a slow line does not lengthen it', async ({ task }) => {
    const { start } = setup(task);
    const port = Number(new URL(etcd.hosts[0] ?? '').port);
    const proxy = await FaultProxy.start({ port, protocol: 'raw' });
    const { clock, led } = await start('a', { hosts: [`http://127.0.0.1:${proxy.port}`] });
    await eventually(() => expect(led()).toEqual(ALL));
    proxy.pause();
    const cut = performance.now();
    await eventually(() => expect(led()).toEqual([]), { timeout: 2 * TTL, every: 20 });
    expect(performance.now() - cut + clock.monotonic()).toBeLessThan(TTL - 400);
    await proxy.resume();
  }, 30_000);

  test('a lease that was ended from outside is lost with the next renewal, at the latest', async ({
    task,
  }) => {
    const { state, start } = setup(task);
    const { led, logger, coordinator } = await start('a');
    await eventually(() => expect(led()).toEqual(ALL));
    const before = coordinator.terms().map(({ token }) => token);
    const [member] = (await state.read()).members;
    await state.client.revoke(member?.lease ?? '');
    await eventually(() => expect(led()).toEqual([]), { timeout: TTL / 5 + 500, every: 2 });
    expect(logger.lines.join('\n')).toMatch(/lost the lease.*(key is gone|has ended its lease)/);
    await eventually(() => expect(led()).toEqual(ALL));
    expect(Math.min(...coordinator.terms().map(({ token }) => token))).toBeGreaterThan(Math.max(...before));
  });

  test('a partition key that vanishes ends that term, no other; it is led again under a higher token', async ({
    task,
  }) => {
    const { state, start } = setup(task);
    const { led, coordinator } = await start('a');
    await eventually(() => expect(led()).toEqual(ALL));
    const kept = coordinator.terms().filter(({ first }) => first !== 64);
    const lost = coordinator.terms().find(({ first }) => first === 64);
    await state.delete(state.keys.partition(4, 1));
    await eventually(() => expect(lost?.isValid()).toBe(false), { every: 5 });
    await eventually(() => expect(led()).toEqual(ALL));
    expect(coordinator.terms()).toEqual(expect.arrayContaining(kept));
    expect(coordinator.terms().find(({ first }) => first === 64)?.token).toBeGreaterThan(
      lost?.token ?? Number.NaN,
    );
    const end = (await state.read()).handOvers.find(({ n }) => n === 1);
    expect(end).toMatchObject({ instanceId: 'a', token: lost?.token, reason: 'lost its lease' });
  });

  test('a member key that vanishes ends everything; it joins anew', async ({ task }) => {
    const { state, start } = setup(task);
    const { led, coordinator } = await start('a');
    await eventually(() => expect(led()).toEqual(ALL));
    const [before] = (await state.read()).members;
    const terms = coordinator.terms();
    await state.delete(state.keys.member('a'));
    await eventually(() => expect(terms.some((term) => term.isValid())).toBe(false), { every: 5 });
    await eventually(() => expect(led()).toEqual(ALL));
    const [after] = (await state.read()).members;
    expect(after?.lease).not.toBe(before?.lease);
    expect(after?.startedAt).toBe(before?.startedAt);
  });
});

test('a member of etcd that dies, then another that freezes, cost no term', async ({ task }) => {
  const cluster = await startTestEtcd({ members: 3 });
  const ttl = 10_000;
  const { led, coordinator } = await startCoordinator('a', {
    hosts: cluster.hosts,
    namespace: namespaceFor(task),
    ttl,
  });
  await eventually(() => expect(led()).toEqual(ALL));
  const terms = coordinator.terms();
  const untouched = async (ms: number) => {
    const until = performance.now() + ms;
    await eventually(
      () => {
        if (terms.some((term) => !term.isValid())) throw new Error('a term ended');
        return performance.now() > until;
      },
      { timeout: ms + 5000, every: 20 },
    );
    expect(coordinator.terms()).toEqual(terms);
  };
  // The one in use comes first.
  await cluster.members[0]?.kill9();
  await untouched(3000);
  await cluster.members[0]?.restart();
  // Not thawed again: etcd may then end leases that are alive.
  cluster.members[1]?.signal('SIGSTOP');
  await untouched(ttl + 1000);
}, 60_000);

describe('acquiring', () => {
  test('an answer that was lost on the way is recognised by the lease', async ({ task }) => {
    const { state, start } = setup(task);
    let lost = 0;
    const wrap = (client: EtcdClient): EtcdClient => ({
      ...bound(client),
      txn: async (transaction) => {
        const result = await client.txn(transaction);
        const [first] = transaction.success;
        if (first && 'put' in first && first.put.includes('/partitions/') && lost < 4) {
          lost += 1;
          throw new Error('the answer is lost');
        }
        return result;
      },
    });
    const { led, coordinator } = await start('a', { wrap });
    await eventually(() => expect(led()).toEqual(ALL));
    expect(lost).toBe(4);
    const { partitions } = await state.read();
    for (const { first, token } of coordinator.terms())
      expect(partitions.find(({ n }) => n * 64 === first)?.token).toBe(token);
  });

  test('nothing is acquired under a layout or an epoch that changed meanwhile, nor what another has', async ({
    task,
  }) => {
    const { state } = setup(task);
    const { client, keys } = state;
    await state.put(keys.layout, { partitions: 4, pinned: false });
    await state.put(keys.epoch, { number: 1, id: 'e' });
    const view = await state.read();
    const grant = await client.grant(60);
    const claimant = { instanceId: 'a', lease: grant.id, at: 'T' };
    const claim = (n: number, over = {}) =>
      claimPartition(client, keys, { count: 4, n }, claimant, { ...view, ...over }, undefined);
    const token = await claim(0);
    expect(token).toBe((await state.read()).partitions[0]?.token);
    // Asked again, it is the same.
    expect(await claim(0)).toBe(token);
    const other = { ...claimant, instanceId: 'b', lease: (await client.grant(60)).id };
    expect(await claimPartition(client, keys, { count: 4, n: 0 }, other, view, undefined)).toBeUndefined();
    await state.put(keys.layout, { partitions: 8, pinned: false });
    expect(await claim(1)).toBeUndefined();
    const { layout } = await state.read();
    await state.put(keys.epoch, { number: 2, id: 'f' });
    expect(await claim(2, { layout })).toBeUndefined();
    expect((await state.read()).partitions).toHaveLength(1);
  });

  test('B31 an etcd that resets, hangs or is not there is no leadership; it retries and says so', async ({
    task,
  }) => {
    const { start } = setup(task);
    const port = Number(new URL(etcd.hosts[0] ?? '').port);
    const proxy = await FaultProxy.start({ port, protocol: 'raw' });
    const leader = await start('a');
    await eventually(() => expect(leader.led()).toEqual(ALL));
    for (const fault of ['suspend', 'pause'] as const) {
      await proxy[fault]();
      const other = await start(`b-${fault}`, { hosts: [`http://127.0.0.1:${proxy.port}`] });
      expect(other.led()).toEqual([]);
      expect(other.coordinator.trouble()).toMatch(/^etcd: /);
      expect(leader.led()).toEqual(ALL);
      await proxy.resume();
      await eventually(() => expect(other.led()).toHaveLength(2), { timeout: 15_000 });
      expect(other.coordinator.trouble()).toBeUndefined();
      await other.coordinator.stop();
      await eventually(() => expect(leader.led()).toEqual(ALL));
    }
  }, 60_000);

  test.each([
    ['epoch', 'no JSON'],
    ['epoch', '{"number":0,"id":"x"}'],
    ['layout', '{"partitions":257}'],
  ] as const)(
    '%s that cannot be read (%s): nothing is led, and it is said which key',
    async (name, value) => {
      const { state, start } = setup({ name: `unreadable ${name}` });
      const key = state.keys[name];
      await state.client.txn({ if: [], success: [{ put: key, value }] });
      const { led, coordinator } = await start('a');
      expect(coordinator.trouble()).toBe(`the key ${key} in etcd cannot be read`);
      expect(led()).toEqual([]);
      await state.delete(key);
      await eventually(() => expect(led()).toEqual(ALL));
      expect(coordinator.trouble()).toBeUndefined();
    },
  );

  test('its own member key that no instance wrote: it takes no part, and says which key', async ({
    task,
  }) => {
    const { state, start } = setup(task);
    const key = state.keys.member('a');
    await state.client.txn({ if: [], success: [{ put: key, value: '{"host":1}' }] });
    const { led, coordinator } = await start('a');
    expect(coordinator.trouble()).toBe(`the key ${key} in etcd cannot be read`);
    await state.delete(key);
    await eventually(() => expect(led()).toEqual(ALL));
  });

  test('two processes of one id: the second takes no part, and says why', async ({ task }) => {
    const { state, start } = setup(task);
    const first = await start('a');
    await eventually(() => expect(first.led()).toEqual(ALL));
    const second = await start('a', { wall: () => Date.now() - 1000 });
    expect(second.coordinator.trouble()).toContain('takes part as a');
    expect(second.led()).toEqual([]);
    await first.coordinator.stop();
    await eventually(() => expect(second.led()).toEqual(ALL));
    expect((await state.read()).members).toHaveLength(1);
  });
});

describe('fitness', () => {
  test('an instance whose loop hangs while its lease is kept loses its partitions within 2 TTL', async ({
    task,
  }) => {
    const { state, start } = setup(task);
    const sick = await start('a');
    const fit = await start('b');
    await eventually(() => expect([sick.led().length, fit.led().length]).toEqual([2, 2]));
    const hung = performance.now();
    sick.hang();
    await eventually(() => expect(fit.led()).toEqual(ALL), { timeout: 3 * TTL });
    expect(performance.now() - hung).toBeLessThan(2 * TTL);
    const { members } = await state.read();
    expect(members.find(({ instanceId }) => instanceId === 'a')).toMatchObject({
      fit: false,
      unfitReason: expect.stringContaining('no script'),
    });
    sick.hang(false);
    await eventually(() => expect([sick.led().length, fit.led().length]).toEqual([2, 2]), {
      timeout: 15_000,
    });
  }, 60_000);

  test('a Redis that nobody reaches moves nothing', async ({ task }) => {
    const { state, start } = setup(task);
    const members = [await start('a'), await start('b')];
    await eventually(() => expect(members.map(({ led }) => led().length)).toEqual([2, 2]));
    const before = (await state.read()).partitions;
    for (const { hang } of members) hang();
    await eventually(async () =>
      expect((await state.read()).members.map(({ fit }) => fit)).toEqual([false, false]),
    );
    // For as long as one that is cut off alone would have taken to lose its own.
    const until = performance.now() + 2 * TTL;
    await eventually(
      async () => {
        expect((await state.read()).partitions).toEqual(before);
        expect(performance.now()).toBeGreaterThan(until);
      },
      { timeout: 3 * TTL, every: 100 },
    );
    for (const { hang } of members) hang(false);
    await eventually(async () =>
      expect((await state.read()).members.map(({ fit }) => fit)).toEqual([true, true]),
    );
    expect((await state.read()).partitions).toEqual(before);
  }, 60_000);
});

describe('an operator', () => {
  test('drains an instance: it hands over, takes nothing, and forgets it when it ends', async ({ task }) => {
    const { state, start } = setup(task);
    const first = await start('a');
    const second = await start('b');
    await eventually(() => expect([first.led().length, second.led().length]).toEqual([2, 2]));
    await state.put(state.keys.drain('a'), { at: 'T' });
    await eventually(() => expect(second.led()).toEqual(ALL), { timeout: 1000, every: 5 });
    expect(first.led()).toEqual([]);
    await eventually(async () =>
      expect((await state.read()).members.map(({ draining }) => draining)).toEqual([true, false]),
    );
    await second.coordinator.stop();
    // Even when nobody else is there.
    await eventually(async () => expect((await state.read()).members).toHaveLength(1));
    expect((await state.read()).partitions).toEqual([]);
    await first.coordinator.stop();
    expect((await state.read()).drains).toEqual([]);
  });

  test('drained one that was killed: the next process of its id takes part; a drain outlives a lost lease', async ({
    task,
  }) => {
    const { state, start } = setup(task);
    await state.put(state.keys.drain('a'), { at: 'T' });
    const { led, coordinator } = await start('a');
    await eventually(() => expect(led()).toEqual(ALL));
    expect((await state.read()).drains).toEqual([]);
    await state.put(state.keys.drain('a'), { at: 'T' });
    await eventually(() => expect(led()).toEqual([]));
    const [member] = (await state.read()).members;
    await state.client.revoke(member?.lease ?? '');
    await eventually(async () => {
      const [again] = (await state.read()).members;
      expect([again?.draining, again?.lease === member?.lease]).toEqual([true, false]);
    });
    expect(coordinator.terms()).toEqual([]);
  });

  test('takes the drain back: it takes part again', async ({ task }) => {
    const { state, start } = setup(task);
    const { led } = await start('a');
    await eventually(() => expect(led()).toEqual(ALL));
    await state.put(state.keys.drain('a'), { at: 'T' });
    await eventually(() => expect(led()).toEqual([]));
    await state.delete(state.keys.drain('a'));
    await eventually(() => expect(led()).toEqual(ALL));
  });

  test('changes the number of partitions; a pinned one is kept whatever the configuration says', async ({
    task,
  }) => {
    const { state, start } = setup(task);
    const first = await start('a');
    const second = await start('b');
    await eventually(() => expect([first.led().length, second.led().length]).toEqual([2, 2]));
    await state.put(state.keys.layout, { partitions: 8, pinned: true });
    await eventually(() => expect([first.led().length, second.led().length]).toEqual([4, 4]));
    expect((await state.read()).partitions.every(({ count }) => count === 8)).toBe(true);
    await state.put(state.keys.layout, { partitions: 8, pinned: false });
    await eventually(() => expect([first.led().length, second.led().length]).toEqual([2, 2]));
    expect((await state.read()).layout).toMatchObject({ partitions: 4, pinned: false });
  });

  test('raises the epoch: every term begins anew under it, with the same key', async ({ task }) => {
    const { state, start } = setup(task);
    const { led, coordinator } = await start('a');
    await eventually(() => expect(led()).toEqual(ALL));
    const before = coordinator.terms();
    await state.put(state.keys.epoch, { number: 7, id: 'abcd0123' });
    await eventually(() => {
      expect(coordinator.terms().map(({ epoch }) => epoch)).toEqual(Array(4).fill('7|abcd0123'));
    });
    expect(before.some((term) => term.isValid())).toBe(false);
    const tokens = (terms: readonly { token: number }[]) => terms.map(({ token }) => token).sort();
    expect(tokens(coordinator.terms())).toEqual(tokens(before));
  });
});

test('a rollout of another number: nothing moves until all agree, then all at once', async ({ task }) => {
  const { state, start } = setup(task);
  const old = [await start('a'), await start('b')];
  await eventually(() => expect(old.map(({ led }) => led().length)).toEqual([2, 2]));
  const { layout } = await state.read();
  await old[0]?.coordinator.stop();
  const first = await start('c', { partitions: 8 });
  await eventually(() => expect(first.led()).toHaveLength(2));
  expect((await state.read()).layout).toEqual(layout);
  await old[1]?.coordinator.stop();
  const second = await start('d', { partitions: 8 });
  await eventually(() => expect([first.led().length, second.led().length]).toEqual([4, 4]));
  expect((await state.read()).layout).toMatchObject({ partitions: 8, pinned: false });
});

/** A client's methods as own properties, so that some of them can be replaced. */
function bound(client: EtcdClient): EtcdClient {
  return {
    get: (key) => client.get(key),
    range: (prefix) => client.range(prefix),
    txn: (transaction) => client.txn(transaction),
    grant: (ttl) => client.grant(ttl),
    keepAlive: (id, timeout) => client.keepAlive(id, timeout),
    revoke: (id) => client.revoke(id),
    watch: (prefix, onChange) => client.watch(prefix, onChange),
    close: () => client.close(),
  };
}
