import { fileURLToPath } from 'node:url';
import { beforeAll, describe, expect, test } from 'vitest';
import { aJob } from '../support/builders.js';
import { EtcdState, startMember } from '../support/etcd-cluster.js';
import { startTestEtcd } from '../support/etcd-server.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { spawnNode } from '../support/node-process.js';
import { Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';

let hosts: string[];

beforeAll(async () => {
  hosts = (await startTestEtcd()).hosts;
});

async function setup(task: { name: string }) {
  const spine = await Spine.open({ url: sharedRedisUrl(), namespace: namespaceFor(task) });
  return { spine, etcd: new EtcdState(hosts, spine.namespace) };
}

async function dispatched(spine: Spine, ids: readonly string[], timeout = 10_000): Promise<void> {
  await eventually(
    async () =>
      expect([...(await spine.client.lrange(spine.bull('q', 'wait'), 0, -1))].sort()).toEqual(
        [...ids].sort(),
      ),
    { timeout },
  );
}

const names = (prefix: string, count: number) => Array.from({ length: count }, (_, i) => `${prefix}${i}`);
const due = (ids: readonly string[]) => ids.map((id) => aJob(id, { time: 50, relative: true }));

test('three instances share 16 partitions, dispatch everything once, and hand over when they stop', async ({
  task,
}) => {
  const { spine, etcd } = await setup(task);
  const members = await Promise.all(['a', 'b', 'c'].map((id) => startMember(spine, hosts, id)));
  await eventually(async () => {
    const shares = await etcd.shares();
    expect(Object.keys(shares).sort()).toEqual(['a', 'b', 'c']);
    expect(Object.values(shares).reduce((sum, share) => sum + share, 0)).toBe(16);
    expect(Math.max(...Object.values(shares))).toBeLessThanOrEqual(6);
  });
  await eventually(() => members.every(({ scheduler }) => scheduler.readiness().leading));
  const first = names('j', 200);
  await spine.submit('q', due(first));
  await dispatched(spine, first);
  const popped = () => members.map(({ scheduler }) => scheduler.readiness().popped);
  expect(popped().reduce((sum, count) => sum + count, 0)).toBe(200);
  expect(Math.min(...popped())).toBeGreaterThan(0);

  const started = performance.now();
  await members[0]?.scheduler.stop();
  await eventually(async () => {
    const shares = await etcd.shares();
    expect(shares.a).toBeUndefined();
    expect(shares).toEqual({ b: 8, c: 8 });
  });
  // By themselves some 70 ms, on a machine that does other things too.
  expect(performance.now() - started).toBeLessThan(1500);
  const more = names('k', 100);
  await spine.submit('q', due(more));
  await dispatched(spine, [...first, ...more]);
  await expectHealthy(spine, 'fence', 'leader');
}, 60_000);

test('started and stopped again and again it leaves nothing open: its process ends by itself', async ({
  task,
}) => {
  const prefix = namespaceFor(task);
  const options = { redis: sharedRedisUrl(), prefix, namespace: prefix, etcd: { hosts }, settle: 0 };
  const script = fileURLToPath(new URL('../fixtures/start-and-stop.ts', import.meta.url));
  const child = spawnNode(script, [JSON.stringify(options), '20']);
  await child.waitForLine('stopped', 60_000);
  const stopped = performance.now();
  expect((await child.exited).code).toBe(0);
  expect(performance.now() - stopped).toBeLessThan(5000);
  const { members, partitions } = await new EtcdState(hosts, prefix).read();
  expect([members, partitions]).toEqual([[], []]);
}, 60_000);

describe('an instance whose way to Redis is a black hole', () => {
  const TTL = 5000;

  test('alone: the others have its partitions within 2 TTL, and give its share back', async ({ task }) => {
    const { spine, etcd } = await setup(task);
    const proxy = await FaultProxy.start({ port: Number(new URL(spine.url).port) });
    await startMember(spine, hosts, 'a', { redis: proxy.url });
    await startMember(spine, hosts, 'b');
    await eventually(async () => expect(await etcd.shares()).toEqual({ a: 8, b: 8 }));
    proxy.pause();
    const cut = performance.now();
    await eventually(async () => expect(await etcd.shares()).toEqual({ b: 16 }), { timeout: 3 * TTL });
    expect(performance.now() - cut).toBeLessThan(2 * TTL);
    const ids = names('j', 100);
    await spine.submit('q', due(ids));
    await dispatched(spine, ids);
    await proxy.resume();
    await eventually(async () => expect(await etcd.shares()).toEqual({ a: 8, b: 8 }), { timeout: 3 * TTL });
  }, 60_000);

  test('all of them: nothing moves, and dispatch goes on by itself', async ({ task }) => {
    const { spine, etcd } = await setup(task);
    const proxy = await FaultProxy.start({ port: Number(new URL(spine.url).port) });
    const members = [
      await startMember(spine, hosts, 'a', { redis: proxy.url }),
      await startMember(spine, hosts, 'b', { redis: proxy.url }),
    ];
    await eventually(async () => expect(await etcd.shares()).toEqual({ a: 8, b: 8 }));
    await eventually(() => members.every(({ scheduler }) => scheduler.readiness().leading));
    const before = (await etcd.read()).partitions;
    proxy.pause();
    await eventually(async () => expect((await etcd.read()).members.some(({ fit }) => fit)).toBe(false));
    const until = performance.now() + 2 * TTL;
    await eventually(() => performance.now() > until, { timeout: 3 * TTL });
    expect((await etcd.read()).partitions).toEqual(before);
    const ids = names('j', 100);
    await spine.submit('q', due(ids));
    await proxy.resume();
    await dispatched(spine, ids, 15_000);
    await eventually(async () => expect((await etcd.read()).members.every(({ fit }) => fit)).toBe(true));
    expect((await etcd.read()).partitions).toEqual(before);
  }, 60_000);
});
