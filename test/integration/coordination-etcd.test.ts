import { beforeAll, expect, test } from 'vitest';
import { aJob } from '../support/builders.js';
import { EtcdState, startMember } from '../support/etcd-cluster.js';
import { startTestEtcd } from '../support/etcd-server.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
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
  // Counted when the reply is read, which may be after the runs can be seen.
  await eventually(() => expect(popped().reduce((sum, count) => sum + count, 0)).toBe(200));
  expect(Math.min(...popped())).toBeGreaterThan(0);

  const started = performance.now();
  await members[0]?.scheduler.stop();
  const stopped = performance.now();
  await eventually(async () => {
    const shares = await etcd.shares();
    expect(shares.a).toBeUndefined();
    expect(shares).toEqual({ b: 8, c: 8 });
  });
  console.log('stop', stopped - started, 'hand over', performance.now() - started);
  const more = names('k', 100);
  await spine.submit('q', due(more));
  await dispatched(spine, [...first, ...more]);
  await expectHealthy(spine, 'fence', 'leader');
}, 60_000);
