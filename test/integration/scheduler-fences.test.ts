import { expect, test } from 'vitest';
import { ServedTerms } from '../../src/scheduler/served-terms.js';
import { aJob } from '../support/builders.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { startRedis } from '../support/redis-server.js';
import { Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { LineLogger, startScheduler } from '../support/spine-scheduler.js';

const open = (task: { name: string }, url = sharedRedisUrl()) =>
  Spine.open({ url, namespace: namespaceFor(task) });

async function fires(spine: Spine, id: string, timeout = 10_000): Promise<void> {
  await spine.submit('q', [aJob(id, { time: 100, relative: true })]);
  await eventually(
    async () => expect(await spine.client.lrange(spine.bull('q', 'wait'), 0, -1)).toContain(id),
    {
      timeout,
    },
  );
}

async function fencesOf(spine: Spine): Promise<Set<string>> {
  return new Set(Object.values(await spine.client.hgetall(spine.keys.fence)));
}

test('I5 fences that a failover put back are raised again, without a new term', async ({ task }) => {
  const spine = await open(task);
  await startScheduler(spine);
  await fires(spine, 'a');
  const [mine] = await fencesOf(spine);
  const older = mine?.replace(/\|1\|/, '|0|') ?? '';
  await spine.client.hset(spine.keys.fence, 3, older, 200, older);
  await spine.client.hdel(spine.keys.fence, '77');
  await eventually(async () => {
    expect(await fencesOf(spine)).toEqual(new Set([mine]));
    expect(await spine.client.hlen(spine.keys.fence)).toBe(256);
  });
  await fires(spine, 'b');
  expect(await spine.client.hget(spine.keys.leader, 'token')).toBe('1');
  await expectHealthy(spine);
});

test('I5 a fence above its own ends its term; the next one has a token above that fence', async ({
  task,
}) => {
  const spine = await open(task);
  const scheduler = await startScheduler(spine, { ttl: '5s' });
  await fires(spine, 'a');
  const [mine] = await fencesOf(spine);
  await spine.client.hset(spine.keys.fence, 9, mine?.replace(/\|1\|.*/, '|41|stranger') ?? '');
  await eventually(() => expect(scheduler.readiness().leading).toBe(false));
  await eventually(async () => expect(await spine.client.hget(spine.keys.leader, 'token')).toBe('42'), {
    timeout: 25_000,
  });
  await fires(spine, 'b');
  await expectHealthy(spine);
}, 60_000);

test('a script that was under way when its term was handed over: no alarm about a rebuilt store', async ({
  task,
}) => {
  const spine = await open(task);
  const logger = new LineLogger();
  const told: string[] = [];
  const served = new ServedTerms(
    spine.leader,
    logger,
    () => performance.now(),
    (_term, reason) => {
      told.push(reason);
      return true;
    },
  );
  let trusted = true;
  const isValid = () => trusted;
  const term = { first: 0, last: 255, epoch: '1|e', token: 3, holder: 'a', isValid };
  await served.follow([term]);
  trusted = false;
  served.fenced([7]);
  expect([told, logger.lines.filter((line) => line.startsWith('error'))]).toEqual([[], []]);
  trusted = true;
  served.fenced([7]);
  expect(told).toEqual(['the fence of bucket 7 is above its token']);
  expect(logger.lines.at(-1)).toContain('the fences are above this term');
});

test('another epoch in the fences stops dispatch with a clear reason, instead of raising over it', async ({
  task,
}) => {
  const spine = await open(task);
  await spine.client.hset(spine.keys.fence, 9, '1|of-another-store|7|stranger');
  await spine.submit('q', [aJob('a', { time: 100, relative: true })]);
  const started = startScheduler(spine, { ttl: '5s' });
  started.catch(() => undefined);
  await eventually(async () => expect(await spine.client.hexists(spine.keys.leader, 'token')).toBe(1));
  await eventually(async () => expect(Number(await spine.client.hget(spine.keys.leader, 'token'))).toBe(8));
  expect(await spine.client.hget(spine.keys.fence, '9')).toBe('1|of-another-store|7|stranger');
  expect(await spine.client.exists(spine.bull('q', 'wait'))).toBe(0);
  // Gone, it serves.
  await spine.client.hdel(spine.keys.fence, '9');
  await started;
  await eventually(async () => expect(await spine.client.llen(spine.bull('q', 'wait'))).toBe(1), {
    timeout: 25_000,
  });
}, 60_000);

test('a Redis that was emptied under running clients is laid out again', async ({ task }) => {
  const server = await startRedis();
  const spine = await open(task, server.url);
  await startScheduler(spine);
  await fires(spine, 'a');
  await spine.client.flushall();
  await fires(spine, 'b', 25_000);
  await expectHealthy(spine);
}, 60_000);
