import { expect, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import { DependencyWorld } from '../support/dependency-world.js';
import { eventually } from '../support/eventually.js';

const EVERY = { every: '1s', anchor: 0, missed: 'skip', overlap: 'bufferAll' } as const;

/** The ticks of a schedule in the order in which they started. */
function ticksOf(world: DependencyWorld, id: string): number[] {
  return world.started.flatMap((run) => (run.startsWith(`q:${id}@`) ? Number(run.split('@')[1]) : []));
}

test('a tick follows the run of the same scheduled time, over its own ticks only', async ({ task }) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  const queue = world.queue();
  await queue.schedules.upsert('a', EVERY, { opts: { removeOnComplete: true } });
  await queue.schedules.upsert('b', { ...EVERY, after: ['a'] });
  await queue.schedules.upsert('c', { ...EVERY, every: '500ms', after: [{ queue: 'q', scheduleId: 'b' }] });
  await world.worker();
  await eventually(() => ticksOf(world, 'c').length >= 5);
  const order = world.started;
  const common = ticksOf(world, 'b').slice(0, 2);
  for (const tick of common) {
    expect(order.indexOf(`q:a@${tick}`)).toBeGreaterThanOrEqual(0);
    expect(order.indexOf(`q:a@${tick}`)).toBeLessThan(order.indexOf(`q:b@${tick}`));
    if (order.includes(`q:c@${tick}`)) {
      expect(order.indexOf(`q:b@${tick}`)).toBeLessThan(order.indexOf(`q:c@${tick}`));
    }
  }
  // At half seconds there is nothing to follow.
  expect(ticksOf(world, 'c').some((tick) => tick % 1000 === 500)).toBe(true);
  expect(queue.schedules.get('b')).toBeDefined();
  expect((await queue.schedules.get('b').describe())?.words.join(' ')).toContain(
    'waits for the run of the same time of a',
  );
  await eventually(async () =>
    (await world.admin().doctor()).findings.every(({ check }) => check !== 'parents'),
  );
});

test.for([
  ['skip', 'skipped'],
  ['run', 'dispatched'],
] as const)('when the run failed: %s', async ([onParentFailed, what], { task }) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  await world.worker();
  const queue = world.queue();
  await queue.schedules.upsert('a', EVERY, { data: { fails: true }, opts: { removeOnFail: true } });
  await queue.schedules.upsert('b', { ...EVERY, after: ['a'], onParentFailed });
  await eventually(async () => {
    const rows = await queue.schedules.get('b').runs();
    return rows.some((row) => row.what === what && (what !== 'skipped' || row.reason === 'parent q:a dead'));
  });
});

test('when the schedule that it follows skipped that tick: skipped, or run', async ({ task }) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  const queue = world.queue();
  // Without a worker the second tick of `a` is skipped: its first run is open.
  await queue.schedules.upsert('a', { ...EVERY, overlap: 'skip' });
  await queue.schedules.upsert('skips', { ...EVERY, overlap: 'allow', after: ['a'] });
  await queue.schedules.upsert('runs', { ...EVERY, overlap: 'allow', after: ['a'], onParentSkipped: 'run' });
  await eventually(async () =>
    (await queue.schedules.get('a').runs()).some(({ what }) => what === 'skipped'),
  );
  await world.worker();
  await eventually(async () =>
    (await queue.schedules.get('skips').runs()).some(({ reason }) => reason === 'parent q:a skipped'),
  );
  const [skipped] = (await queue.schedules.get('a').runs()).filter(({ what }) => what === 'skipped');
  await eventually(() => world.started.includes(`q:runs@${skipped?.scheduledFor}`));
});

test('refused: a schedule that is not there, a job, itself, a circle; deleted, it is followed no more', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  const queue = world.queue();
  await queue.add('x', {}, { jobId: 'job', delay: 3_600_000 });
  for (const after of [['nobody'], ['job']]) {
    await expect(queue.schedules.upsert('s', { ...EVERY, after })).rejects.toMatchObject({
      code: 'UNKNOWN_PARENT',
      field: 'after',
    });
  }
  await queue.schedules.upsert('a', EVERY);
  await queue.schedules.upsert('b', { ...EVERY, after: ['a'] });
  await queue.schedules.upsert('c', { ...EVERY, after: ['b'] });
  for (const [id, after] of [
    ['a', ['c']],
    ['a', ['a']],
  ] as const) {
    await expect(queue.schedules.upsert(id, { ...EVERY, after })).rejects.toMatchObject({ code: 'CYCLE' });
  }
  await expect(queue.schedules.upsert('d', { ...EVERY, after: 'a' as never })).rejects.toMatchObject({
    field: 'after',
  });
  const { client, keys } = queue.backend.shard;
  expect(await client.smembers(keys.watched)).toEqual(expect.arrayContaining(['q:a', 'q:b']));
  await queue.schedules.get('c').delete();
  await queue.schedules.upsert('b', EVERY);
  expect(await client.smembers(keys.watched)).toEqual([]);
  expect(await client.exists(keys.followers('q:a'), keys.followers('q:b'))).toBe(0);
  expect(await client.hexists(keys.jobs(bucketOf('q:b')), 'q:b')).toBe(1);
});
