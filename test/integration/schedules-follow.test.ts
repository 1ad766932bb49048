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
      todo: 'Store the schedule that it follows first; check its id.',
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

/** A schedule of queue `q`, and two of queue `r` that follow it, by either policy. No worker. */
async function acrossQueues(world: DependencyWorld) {
  await world.scheduler();
  const [q, r] = [world.queue('q'), world.queue('r')];
  const every = { ...EVERY, overlap: 'allow' } as const;
  const after = [{ queue: 'q', scheduleId: 'a' }];
  await q.schedules.upsert('a', every);
  await r.schedules.upsert('skips', { ...every, after });
  await r.schedules.upsert('runs', {
    ...every,
    after,
    onParentFailed: 'run',
    onParentSkipped: 'run',
  });
  /** What became of a tick of a follower: what and why. */
  const fate = async (id: string, tick: number): Promise<string | undefined> => {
    const row = (await r.schedules.get(id).runs()).find(({ scheduledFor }) => scheduledFor === tick);
    return row && `${row.what} ${row.reason ?? ''}`.trim();
  };
  const skipped = async (tick: number, outcome: string): Promise<void> => {
    await eventually(async () => (await fate('skips', tick)) === `skipped parent q:a ${outcome}`);
    await eventually(async () => (await fate('runs', tick)) === 'dispatched');
  };
  return { q, r, fate, skipped };
}

/** The oldest run of `a` that stands in its queue. */
async function queuedTick(world: DependencyWorld): Promise<number> {
  let tick = 0;
  await eventually(async () => {
    const runs = (await world.queue('q').getWaiting()).map(({ id }) => Number(id?.split('@')[1]));
    tick = Math.min(...runs);
    return runs.length > 0;
  });
  return tick;
}

test('over queues: the run of another queue succeeds, is cancelled, or is removed by hand', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  const { q, fate, skipped } = await acrossQueues(world);
  const cancelled = await queuedTick(world);
  // Nobody has run it: those that follow wait.
  expect(await fate('skips', cancelled)).toBeUndefined();
  await q.cancel(`a@${cancelled}`);
  await skipped(cancelled, 'cancelled');
  const removed = await queuedTick(world);
  await (await q.getJob(`a@${removed}`))?.remove();
  await skipped(removed, 'removed');
  const ran = await queuedTick(world);
  await world.worker('q', 'r');
  await eventually(() => world.started.includes(`r:skips@${ran}`));
  expect(world.started.indexOf(`q:a@${ran}`)).toBeLessThan(world.started.indexOf(`r:skips@${ran}`));
});

test('over queues: a schedule that is paused is waited for, one that is deleted is not', async ({ task }) => {
  const world = new DependencyWorld(task);
  const { q, r, skipped } = await acrossQueues(world);
  await world.worker('q', 'r');
  await eventually(() => world.started.some((run) => run.startsWith('r:skips@')));
  const paused = (await q.schedules.get('a').describe())?.next ?? 0;
  await q.schedules.get('a').pause();
  const waiting = async () => (await r.schedules.get('skips').describe())?.waiting ?? [];
  await eventually(
    async () => (await waiting()).filter(({ scheduledFor }) => scheduledFor > paused).length >= 2,
  );
  const after = (await waiting()).at(-1)?.scheduledFor ?? 0;
  expect(world.started).not.toContain(`r:skips@${after}`);
  await q.schedules.get('a').resume();
  await eventually(() =>
    world.started.some((run) => run.startsWith('r:skips@') && Number(run.split('@')[1]) > after),
  );
  await q.schedules.get('a').delete();
  const next = (await r.schedules.get('skips').describe())?.next ?? 0;
  await skipped(next + 1000, 'cancelled');
});

test('a tick that was set aside is no run: what a stranger’s job of its id does counts for nothing', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  const { q, skipped } = await acrossQueues(world);
  const tick = Math.ceil((Date.now() + 1500) / 1000) * 1000;
  await world.stock('q').add('x', {}, { jobId: `a@${tick}` });
  await world.worker('q', 'r');
  await eventually(async () =>
    (await q.schedules.get('a').runs()).some(
      (row) => row.what === 'quarantined' && row.scheduledFor === tick,
    ),
  );
  await skipped(tick, 'skipped');
});
