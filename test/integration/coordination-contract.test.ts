import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { type Coordinator, fenceOf, type Term } from '../../src/coordination/coordinator.js';
import { StandaloneCoordinator } from '../../src/coordination/standalone.js';
import { HeartbeatScripts } from '../../src/redis/heartbeat-scripts.js';
import { startCoordinator, TTL } from '../support/etcd-coordinator.js';
import { startTestEtcd } from '../support/etcd-server.js';
import { eventually } from '../support/eventually.js';
import { ManualClock } from '../support/manual-clock.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { Spine } from '../support/spine.js';
import { LineLogger } from '../support/spine-scheduler.js';

/** One instance under test; its loop makes progress until it hangs. */
interface Instance {
  coordinator: Coordinator;
  clock: ManualClock;
  changes(): number;
  hang(): void;
}

type Start = (instanceId: string) => Promise<Instance>;

/** Each opens a namespace of its own, and starts instances in it. */
const IMPLEMENTATIONS: Record<string, (task: { name: string }) => Promise<Start>> = {
  standalone: async (task) => {
    const spine = await Spine.open({ url: sharedRedisUrl(), namespace: namespaceFor(task) });
    return (instanceId) => startStandalone(spine, instanceId);
  },
  etcd: async (task) => {
    const namespace = namespaceFor(task);
    return (instanceId) => startCoordinator(instanceId, { hosts, namespace });
  },
};

let hosts: string[];

beforeAll(async () => {
  hosts = (await startTestEtcd()).hosts;
});

async function startStandalone(spine: Spine, holder: string): Promise<Instance> {
  const clock = new ManualClock();
  const monotonic = () => clock.monotonic() + performance.now();
  const coordinator = new StandaloneCoordinator(new HeartbeatScripts(spine.shard), {
    holder,
    ttl: TTL,
    takeOver: false,
    monotonic,
    logger: new LineLogger(),
  });
  let changes = 0;
  coordinator.onChange(() => {
    changes += 1;
  });
  const feeding = setInterval(() => coordinator.fed(monotonic()), 50);
  onTestFinished(async () => {
    clearInterval(feeding);
    await coordinator.stop();
  });
  await coordinator.start();
  return { coordinator, clock, changes: () => changes, hang: () => clearInterval(feeding) };
}

function buckets(terms: readonly Term[]): number[] {
  return terms
    .flatMap(({ first, last }) => Array.from({ length: last - first + 1 }, (_, i) => first + i))
    .sort((a, b) => a - b);
}

const ALL = Array.from({ length: 256 }, (_, bucket) => bucket);
const leadsAll = ({ coordinator }: Instance, timeout = 10_000) =>
  eventually(() => expect(buckets(coordinator.terms())).toEqual(ALL), { timeout });

describe.each(Object.entries(IMPLEMENTATIONS))('%s', (_, open) => {
  test('one instance leads every bucket once, and says so', async ({ task }) => {
    const start = await open(task);
    const one = await start('a');
    await leadsAll(one);
    expect(one.changes()).toBeGreaterThan(0);
    expect(one.coordinator.trouble()).toBeUndefined();
    for (const term of one.coordinator.terms()) {
      expect(fenceOf(term)).toMatch(/^[1-9]\d*\|[^|]+\|[1-9]\d*\|a$/);
      expect(Number.isSafeInteger(term.token)).toBe(true);
    }
  });

  test('two instances never lead a bucket at once, and together lead all', async ({ task }) => {
    const start = await open(task);
    const [one, other] = [await start('a'), await start('b')];
    const all = () => buckets([...one.coordinator.terms(), ...other.coordinator.terms()]);
    const twice: number[][] = [];
    const until = performance.now() + 2500;
    await eventually(
      () => {
        const led = all();
        if (new Set(led).size !== led.length) twice.push(led);
        return performance.now() > until;
      },
      { every: 1 },
    );
    expect(twice).toEqual([]);
    expect(all()).toEqual(ALL);
  });

  test('stop gives everything back at once: another leads it, under higher tokens of the same epoch', async ({
    task,
  }) => {
    const start = await open(task);
    const [one, other] = [await start('a'), await start('b')];
    await eventually(() =>
      expect(buckets([...one.coordinator.terms(), ...other.coordinator.terms()])).toEqual(ALL),
    );
    const before = one.coordinator.terms();
    expect(before.length).toBeGreaterThan(0);
    const changes = one.changes();
    await one.coordinator.stop();
    expect(one.coordinator.terms()).toEqual([]);
    expect(before.some((term) => term.isValid())).toBe(false);
    expect(one.changes()).toBeGreaterThan(changes);
    await leadsAll(other, 2500);
    for (const old of before) {
      const next = other.coordinator.terms().find(({ first }) => first === old.first);
      expect(next?.token).toBeGreaterThan(old.token);
      expect(next?.epoch).toBe(old.epoch);
    }
    await one.coordinator.stop();
    await one.coordinator.start();
    await one.coordinator.stop();
  });

  test('trust ends by the local clock alone, in the same turn; what comes after are other terms', async ({
    task,
  }) => {
    const start = await open(task);
    const one = await start('a');
    await leadsAll(one);
    const before = one.coordinator.terms();
    one.clock.advance(TTL - 700);
    const early = before.map((term) => term.isValid());
    one.clock.advance(700);
    const late = before.map((term) => term.isValid());
    expect(new Set(late)).toEqual(new Set([false]));
    // A renewal may have come a moment before: only then was it still trusted.
    expect(new Set(early).size).toBe(1);
    await leadsAll(one, 4 * TTL);
    const after = one.coordinator.terms();
    expect(before.some((term) => term.isValid() || after.includes(term))).toBe(false);
    expect(Math.min(...after.map(({ token }) => token))).toBeGreaterThan(
      Math.max(...before.map(({ token }) => token)),
    );
  }, 60_000);

  test('an instance whose loop makes no progress gives up; another leads within 2 TTL', async ({ task }) => {
    const start = await open(task);
    const [one, other] = [await start('a'), await start('b')];
    await eventually(() =>
      expect(buckets([...one.coordinator.terms(), ...other.coordinator.terms()])).toEqual(ALL),
    );
    const hung = performance.now();
    one.hang();
    await leadsAll(other, 2 * TTL);
    expect(performance.now() - hung).toBeLessThan(2 * TTL);
    expect(one.coordinator.terms()).toEqual([]);
  }, 60_000);

  test('a refused fence ends the term, or leaves it for its other buckets; never a term beside it', async ({
    task,
  }) => {
    const start = await open(task);
    const one = await start('a');
    await leadsAll(one);
    const [refused, ...others] = one.coordinator.terms();
    if (refused === undefined) throw new Error('it should lead');
    const goesOn = one.coordinator.refused(refused, 'the fence of bucket 0 is above its token');
    expect(refused.isValid()).toBe(goesOn);
    expect(others.every((term) => term.isValid())).toBe(true);
  });
});
