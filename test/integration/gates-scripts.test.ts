import { describe, expect, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import type { GateLimits } from '../../src/domain/gate.js';
import { GateScripts } from '../../src/redis/gate-scripts.js';
import type { OwnedRange } from '../../src/redis/leader-scripts.js';
import type { ScriptChoices } from '../../src/redis/script-source.js';
import { seededRandom } from '../property/seeded-random.js';
import { aJob } from '../support/builders.js';
import { INC, NOW, Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { changesOf } from '../support/spine-state.js';

const BUCKET = bucketOf('q');
const many = <T>(count: number, make: (i: number) => T) => Array.from({ length: count }, (_, i) => make(i));

async function gated(test: { name: string }, limits: GateLimits, choices: ScriptChoices = {}) {
  const spine = await Spine.virtual(test, choices);
  const gates = new GateScripts(spine.shard);
  await gates.set('q', limits, true);
  const owned = await spine.lead();
  return { spine, gates, owned, drain: (limit = 200) => drainOnce(gates, owned, limit) };
}

async function drainOnce(gates: GateScripts, owned: OwnedRange[], limit: number) {
  const drained = await gates.drain(owned, 'q', BUCKET, { limit, bytes: 1_000_000 });
  if (drained === undefined) throw new Error('fenced');
  return drained;
}

const waiting = (spine: Spine) => spine.client.llen(spine.bull('q', 'wait'));
const held = async (spine: Spine) => Number(await spine.client.hget(spine.keys.queues, 'q:held'));

describe('a due run of a gated queue', () => {
  test('is held: the state of its record, its index and counts change in one step, and nothing else', async ({
    task,
  }) => {
    const { spine, owned } = await gated(task, { max: 10, duration: 1000, burst: 10 });
    await spine.submit('q', [aJob('a', { time: NOW + 1000, opts: '{"attempts":3}' })]);
    await spine.setClock(NOW + 1000);
    const { changes } = await changesOf(spine, () => spine.pop(owned));
    expect(changes).toEqual({
      'jobs q:a': { state: 'held' },
      'due q:a': null,
      [`heads ${bucketOf('q:a')}`]: null,
      'queues q:scheduled': '0',
      'queues q:held': '1',
      [`gate:q: ${Buffer.concat([Buffer.from([bucketOf('q:a')]), Buffer.from('q:a')]).toString()}`]:
        NOW + 1000 + 10 * 60_000,
      'gate-ring:q ': NOW + 1000,
      'gate-heads q': NOW + 1000,
    });
    await expectHealthy(spine);
  });

  test('goes into its queue as a dispatched one does, and leaves nothing behind', async ({ task }) => {
    const { spine, owned, drain } = await gated(task, { max: 10, duration: 1000, burst: 10 });
    await spine.submit('q', [aJob('a', { time: NOW + 1000, opts: '{"attempts":3}' })]);
    await spine.setClock(NOW + 1000);
    await spine.pop(owned);
    await spine.setClock(NOW + 1500);
    const { result, changes } = await changesOf(spine, () => drain());
    expect(result).toMatchObject({ moved: 1, next: 0, trouble: [] });
    expect(changes).toMatchObject({
      'jobs q:a': null,
      'queues q:held': '0',
      'gate-ring:q ': null,
      'gate-heads q': null,
      'q:wait': ['a'],
      'q:a': {
        opts: `{"attempts":3,"carillon":"${spine.namespace} ${NOW + 1000} ${INC}"}`,
        timestamp: String(NOW),
      },
      'spent:1 q:a': { at: NOW + 1500, how: 'run', answers: [1] },
    });
    await expectHealthy(spine);
  });

  test('submitted when it is due already is held as well, and counts against maxPending', async ({
    task,
  }) => {
    const { spine } = await gated(task, { hold: true });
    await spine.submit(
      'q',
      many(3, (i) => aJob(`j${i}`, { time: NOW })),
      { maxPending: 3 },
    );
    expect([await waiting(spine), await held(spine)]).toEqual([0, 3]);
    await expect(spine.submit('q', [aJob('more', { time: NOW })], { maxPending: 3 })).rejects.toThrow(
      /maxPending/,
    );
    await expectHealthy(spine);
  });
});

test('nothing of a paused queue is let go, and a release does not resume it', async ({ task }) => {
  const { spine, gates, drain } = await gated(task, { max: 10, duration: 1000, burst: 10 });
  await gates.set('q', { paused: true, hold: true }, false);
  await spine.submit('q', [aJob('a', { time: NOW })]);
  await gates.set('q', { hold: null }, false);
  expect(await drain()).toMatchObject({ moved: 0, next: 0 });
  await gates.set('q', { hold: true, paused: null }, false);
  expect(await drain()).toMatchObject({ moved: 0, next: 0 });
  await gates.set('q', { hold: null }, false);
  expect((await drain()).moved).toBe(1);
});

describe('rate and burst', () => {
  test('no more than the burst at once, then the rate, and a burst after a quiet time or a hold', async ({
    task,
  }) => {
    const { spine, gates, drain } = await gated(task, { max: 100, duration: 1000, burst: 20 });
    await spine.submit(
      'q',
      many(200, (i) => aJob(`j${i}`, { time: NOW })),
    );
    expect((await drain()).moved).toBe(20);
    expect(await drain()).toMatchObject({ moved: 0, next: NOW + 20 });
    await spine.setClock(NOW + 100);
    expect((await drain()).moved).toBe(10);
    await gates.set('q', { hold: true }, false);
    await spine.setClock(NOW + 60_000);
    expect(await drain()).toMatchObject({ moved: 0, next: 0 });
    await gates.set('q', { hold: null }, false);
    expect((await drain()).moved).toBe(20);
    await expectHealthy(spine);
  });

  test.each([
    [0.8, { max: 100, duration: 1000, burst: 1 }],
    [0.75, { max: 200, duration: 1000, burst: 2 }],
    [0.9, { max: 500, duration: 1000, burst: 6 }],
    [0.99, { max: 500, duration: 1000, burst: 100 }],
    [0.8, { groupMax: 100, groupDuration: 1000, groupBurst: 1 }],
    [0.95, { groupMax: 100, groupDuration: 1000, groupBurst: 3 }],
    [0.95, { groupMax: 20, groupDuration: 1000, groupBurst: 1 }],
  ] as [number, GateLimits][])(
    'a small burst does not keep the rate away, looked at a ms late: %d of %o',
    async (share, limits) => {
      const { spine, drain } = await gated({ name: `share ${JSON.stringify(limits)}` }, limits);
      const rate = limits.max ?? limits.groupMax ?? 0;
      const burst = limits.burst ?? limits.groupBurst ?? 0;
      for (let from = 0; from < 3 * rate; from += 200) {
        await spine.submit(
          'q',
          many(200, (i) => aJob(`j${from + i}`, { time: NOW })),
        );
      }
      let moved = 0;
      let looks = 0;
      for (let at = NOW; at < NOW + 2000; looks++) {
        await spine.setClock(at);
        const drained = await drain();
        moved += drained.moved;
        at = Math.max(at, drained.next) + 1;
      }
      expect(moved).toBeGreaterThanOrEqual(2 * rate * share);
      expect(moved).toBeLessThanOrEqual(2 * rate + burst);
      // No more often than its tokens come, or than every 20 ms.
      expect(looks).toBeLessThanOrEqual(Math.max(110, 2 * rate));
    },
  );

  test('what waits for room or is on hold is not looked at more often for a small burst', async ({
    task,
  }) => {
    const { spine, gates, drain } = await gated(task, { max: 500, duration: 1000, burst: 5, maxWaiting: 1 });
    await spine.submit(
      'q',
      many(5, (i) => aJob(`j${i}`, { time: NOW })),
    );
    await drain();
    expect(await drain()).toMatchObject({ moved: 0, next: NOW + 50 });
    await gates.set('q', { hold: true }, false);
    expect(await drain()).toMatchObject({ moved: 0, next: 0 });
  });

  test('a clock that goes back gives no tokens, and takes none', async ({ task }) => {
    const { spine, drain } = await gated(task, { max: 100, duration: 1000, burst: 20 });
    await spine.submit(
      'q',
      many(50, (i) => aJob(`j${i}`, { time: NOW })),
    );
    expect((await drain()).moved).toBe(20);
    await spine.setClock(NOW - 5000);
    expect((await drain()).moved).toBe(0);
    await spine.setClock(NOW - 4950);
    expect((await drain()).moved).toBe(5);
  });

  test('two leaders that both drain, the fence check off, keep the rate and double nothing', async ({
    task,
  }) => {
    const { spine, gates, drain } = await gated(
      task,
      { max: 100, duration: 1000, burst: 20 },
      { fence: 'off' },
    );
    await spine.submit(
      'q',
      many(60, (i) => aJob(`j${i}`, { time: NOW })),
    );
    const other = await spine.lead(2);
    const moved = await Promise.all([drain(), drainOnce(gates, other, 200), drain()]);
    expect(moved.reduce((sum, reply) => sum + reply.moved, 0)).toBe(20);
    const ids = await spine.client.lrange(spine.bull('q', 'wait'), 0, -1);
    expect(new Set(ids).size).toBe(20);
    await expectHealthy(spine);
  });

  test('a stale leader drains nothing', async ({ task }) => {
    const { spine, gates, owned } = await gated(task, {});
    await gates.set('q', { max: 100, duration: 1000, burst: 20 }, true);
    await spine.submit('q', [aJob('a', { time: NOW })]);
    await spine.lead(2);
    expect(await gates.drain(owned, 'q', BUCKET, { limit: 10, bytes: 1000 })).toBeUndefined();
    expect(await held(spine)).toBe(1);
  });

  test('a gate that is cleared lets all go at once', async ({ task }) => {
    const { spine, gates, drain } = await gated(task, { max: 1, duration: 3_600_000, burst: 1 });
    await spine.submit(
      'q',
      many(30, (i) => aJob(`j${i}`, { time: NOW })),
    );
    expect((await drain()).moved).toBe(1);
    await gates.set('q', {}, true);
    expect((await gates.due(10)).due).toEqual(['q']);
    expect((await drain()).moved).toBe(29);
    await expectHealthy(spine);
  });
});

describe('turns of tenants', () => {
  const job = (group: string, i: number) =>
    aJob(`${group}-${i}`, { time: NOW, opts: JSON.stringify({ attempts: 0, group }) });
  const submit = (spine: Spine, groups: string[], count = 30) =>
    spine.submit(
      'q',
      groups.flatMap((group) => many(count, (i) => job(group, i))),
    );
  const tenants = async (spine: Spine) =>
    (await spine.client.lrange(spine.bull('q', 'wait'), 0, -1))
      .reverse()
      .map((id) => id.split('-')[0] as string);
  const tenThousand: GateLimits = { maxWaiting: 10_000 };

  test.each([
    ['one place a batch', tenThousand],
    ['a rate and a burst of 1', { max: 50, duration: 1000, burst: 1 }],
    [
      'a rate of each tenant as well',
      { max: 50, duration: 1000, burst: 1, groupMax: 50, groupDuration: 1000, groupBurst: 1 },
    ],
    ['maxWaiting 1', { maxWaiting: 1 }],
  ] as [string, GateLimits][])(
    'one after the other, whatever few places there are: %s',
    async (_what, limits) => {
      const { spine, drain } = await gated({ name: `turns ${_what}` }, limits);
      await submit(spine, ['a', 'b', 'c', 'd']);
      let order: string[] = [];
      for (let i = 1; i <= 12; i++) {
        expect((await drain(limits === tenThousand ? 1 : 20)).moved).toBe(1);
        if (limits.maxWaiting === 1)
          order.push((await spine.client.rpop(spine.bull('q', 'wait')))?.[0] as string);
        await spine.setClock(NOW + i * 20);
      }
      if (limits.maxWaiting !== 1) order = await tenants(spine);
      expect(order.join('')).toBe('abcdabcdabcd');
      await expectHealthy(spine);
    },
  );

  test('in batches of any size no tenant is ahead of another by more than one run', async ({ task }) => {
    const { spine, drain } = await gated(task, tenThousand);
    await submit(spine, ['a', 'b', 'c', 'd', 'e'], 45);
    const random = seededRandom(7);
    for (let i = 0; i < 25; i++) {
      await drain(1 + random.below(12));
      const counts = await countsOf(spine, ['a', 'b', 'c', 'd', 'e']);
      expect(Math.max(...counts) - Math.min(...counts)).toBeLessThanOrEqual(1);
    }
    await expectHealthy(spine);
  });

  test('a new one, whatever its name, waits for one round at most, and displaces nobody', async ({
    task,
  }) => {
    const { spine, drain } = await gated(task, tenThousand);
    await submit(spine, ['b', 'c', 'd']);
    await drain(1);
    await submit(spine, ['a', 'e']);
    for (let i = 0; i < 10; i++) await drain(1);
    expect((await tenants(spine)).join('')).toBe('bcdbaecdbae');
  });

  test('one that has no token does not stand in the way of more tenants than a batch reads', async ({
    task,
  }) => {
    const { spine, drain } = await gated(task, { groupMax: 1, groupDuration: 1000, groupBurst: 1 });
    await submit(spine, ['a', 'b', 'c', 'd', 'e'], 3);
    for (let i = 0; i < 5; i++) await drain(2);
    expect((await tenants(spine)).join('')).toBe('abcde');
    await spine.setClock(NOW + 1000);
    for (let i = 0; i < 5; i++) await drain(2);
    expect(await countsOf(spine, ['a', 'b', 'c', 'd', 'e'])).toEqual([2, 2, 2, 2, 2]);
    await expectHealthy(spine);
  });

  async function countsOf(spine: Spine, groups: string[]): Promise<number[]> {
    const all = await tenants(spine);
    return groups.map((group) => all.filter((name) => name === group).length);
  }
});

describe('order', () => {
  const at = (id: string, priority: number, group?: string) =>
    aJob(id, {
      time: NOW,
      priority,
      opts: JSON.stringify({
        attempts: 0,
        ...(priority > 0 ? { priority } : {}),
        ...(group === undefined ? {} : { group }),
      }),
    });
  async function order(spine: Spine, drain: (limit: number) => Promise<{ moved: number }>, count: number) {
    const ids: string[] = [];
    for (let i = 0; i < count; i++) {
      await drain(1);
      const [now, prioritized] = [
        await spine.client.lrange(spine.bull('q', 'wait'), 0, -1),
        await spine.client.zrange(spine.bull('q', 'prioritized'), '0', '-1'),
      ];
      for (const id of [...now, ...prioritized]) if (!ids.includes(id)) ids.push(id);
    }
    return ids;
  }

  test('by priority, lower first, unmarked as 10, and one that is old enough before one of better priority', async ({
    task,
  }) => {
    const { spine, drain } = await gated(task, { maxWaiting: 1000, ageing: 60_000 });
    await spine.submit('q', [at('bulk', 12), at('none', 0), at('nine', 9), at('urgent', 1)]);
    await spine.setClock(NOW + 12 * 60_000);
    await spine.submit('q', [
      aJob('late', { time: NOW + 12 * 60_000, priority: 1, opts: '{"attempts":0,"priority":1}' }),
    ]);
    expect(await order(spine, drain, 5)).toEqual(['urgent', 'nine', 'none', 'bulk', 'late']);
  });

  test('tenants have their turns one after the other, and a rate of their own', async ({ task }) => {
    const { spine, drain } = await gated(task, {
      maxWaiting: 1000,
      groupMax: 1,
      groupDuration: 1000,
      groupBurst: 3,
    });
    await spine.submit('q', [...many(10, (i) => at(`a${i}`, 0, 'a')), at('b', 0, 'b'), at('c', 0, 'c')]);
    const { moved } = await drain();
    expect(moved).toBe(5);
    expect((await spine.client.lrange(spine.bull('q', 'wait'), 0, -1)).map((id) => id[0]).sort()).toEqual([
      'a',
      'a',
      'a',
      'b',
      'c',
    ]);
    await spine.setClock(NOW + 2000);
    expect((await drain()).moved).toBe(2);
    await expectHealthy(spine);
  });

  test('one tenant’s herd does not stand before another’s single run', async ({ task }) => {
    const { spine, drain } = await gated(task, { maxWaiting: 1000 });
    await spine.submit(
      'q',
      many(100, (i) => at(`a${i}`, 10, 'a')),
    );
    await drain(10);
    await spine.submit('q', [at('b', 10, 'b')]);
    await drain(2);
    expect(await spine.client.zscore(spine.bull('q', 'prioritized'), 'b')).not.toBeNull();
  });

  test('maxWaiting counts wait and prioritized', async ({ task }) => {
    const { spine, drain } = await gated(task, { maxWaiting: 5 });
    await spine.submit('q', [...many(4, (i) => at(`w${i}`, 0)), ...many(4, (i) => at(`p${i}`, 3))]);
    expect(await drain()).toMatchObject({ moved: 5, next: NOW + 50 });
    expect((await drain()).moved).toBe(0);
    await spine.client.zpopmin(spine.bull('q', 'prioritized'), 2);
    expect((await drain()).moved).toBe(2);
  });
});
