import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { DispatchReport } from '../../src/scheduler/dispatch-report.js';
import { IndexSweeper } from '../../src/scheduler/index-sweeper.js';
import { aJob } from '../support/builders.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor } from '../support/namespace.js';
import { startRedis } from '../support/redis-server.js';
import { NOW, Spine } from '../support/spine.js';
import { LineLogger } from '../support/spine-scheduler.js';

/** Takes a range over as a leader of its own does. */
async function lead(spine: Spine, first: number, last: number, token: number) {
  const range = { first, last, servedFrom: 0, fence: `1|e|${token}|h${token}` };
  await spine.leader.takeOver([range]);
  await spine.leader.refreshHeads([range]);
  return [{ ...range, servedFrom: NOW }];
}

test('the next head is found behind any number of heads that others lead', async ({ task }) => {
  const spine = await Spine.virtual(task);
  const others = Array.from({ length: 200 }, (_, bucket) => [NOW + 1000 + bucket, String(bucket)]).flat();
  const plans = Array.from({ length: 200 }, (_, bucket) => [NOW + 1500 + bucket, `p${bucket}`]).flat();
  await spine.client.zadd(spine.keys.heads, ...others, ...plans, NOW + 5000, '255');
  const owned = await (async () => {
    const range = { first: 250, last: 255, servedFrom: 0, fence: '1|e|1|h' };
    const { now } = await spine.leader.takeOver([range]);
    return [{ ...range, servedFrom: now }];
  })();
  expect((await spine.pop(owned)).nextHead).toBe(NOW + 5000);
});

test('two leaders empty the timers together, each its own ranges; what the other leads is FENCED or left alone', async ({
  task,
}) => {
  const spine = await Spine.virtual(task);
  const left = [...(await lead(spine, 0, 63, 1)), ...(await lead(spine, 128, 191, 2))];
  const right = [...(await lead(spine, 64, 127, 3)), ...(await lead(spine, 192, 255, 4))];
  const ids = Array.from({ length: 300 }, (_, i) => `j${i}`);
  await spine.submit(
    'q',
    ids.map((id) => aJob(id, { time: NOW + 1000 })),
  );
  await spine.setClock(NOW + 1000);
  const first = await spine.drain(left);
  expect(first.popped).toBeGreaterThan(100);
  expect(first.popped).toBeLessThan(200);
  const second = await spine.drain(right);
  expect(first.popped + second.popped).toBe(300);
  // A range of the other's, claimed under a lower token.
  const stale = left.map((range) => ({ ...range, first: range.first + 64, last: range.last + 64 }));
  const reply = await spine.pop(stale);
  expect(reply.popped).toBe(0);
  expect(reply.fenced).toHaveLength(128);
});

test('the sweeper goes through the buckets that are led here, and wastes no round on others', async ({
  task,
}) => {
  const spine = await Spine.virtual(task);
  const owned = await lead(spine, 200, 203, 1);
  const logger = new LineLogger();
  const swept: number[] = [];
  const scripts = Object.create(spine.leader, {
    sweepBucket: {
      value: (...args: Parameters<typeof spine.leader.sweepBucket>) => {
        swept.push(args[1]);
        return spine.leader.sweepBucket(...args);
      },
    },
  });
  const report = new DispatchReport(logger, () => performance.now());
  const sweeper = new IndexSweeper(scripts, () => owned, report, logger);
  await sweeper.start();
  await eventually(() => expect(swept.slice(0, 2)).toEqual([200, 201]));
  await sweeper.stop();
});

test('a take-over waits until a replica has the fences, and goes on without one that is silent', async ({
  task,
}) => {
  const main = await startRedis();
  const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(main.port)] });
  const spine = await Spine.open({ url: main.url, namespace: namespaceFor(task) });
  expect(await (await Spine.virtual(task)).leader.awaitReplica(1), 'without a replica').toBe(true);
  await eventually(async () => expect(await spine.client.info('replication')).toContain('state=online'));
  await lead(spine, 0, 255, 1);
  expect(await spine.leader.awaitReplica(5000)).toBe(true);
  const copy = new Redis(replica.url);
  onTestFinished(() => copy.disconnect());
  expect(await copy.hlen(spine.keys.fence)).toBe(256);
  replica.sigstop();
  await lead(spine, 0, 255, 2);
  const asked = performance.now();
  expect(await spine.leader.awaitReplica(200)).toBe(false);
  expect(performance.now() - asked).toBeGreaterThan(150);
}, 60_000);
