import { expect, test } from 'vitest';
import { DependencyWorld } from '../support/dependency-world.js';
import { eventually } from '../support/eventually.js';

/** Ticks of a schedule that wait for their turn behind its open run, which no worker takes: their ids, oldest first. */
async function waitingTicks(world: DependencyWorld, least: number): Promise<string[]> {
  const info = await world.queue().schedules.get('s').describe();
  const waiting = (info?.waiting ?? []).map(({ scheduledFor }) => `s@${scheduledFor}`);
  return waiting.length >= least ? waiting : [];
}

async function buffered(world: DependencyWorld): Promise<[first: string, second: string]> {
  await world.scheduler();
  const queue = world.queue();
  await queue.schedules.upsert(
    's',
    { every: '1s', anchor: 0, missed: 'skip', overlap: 'bufferAll' },
    { name: 'x' },
  );
  await queue.schedules.upsert(
    'f',
    { every: '1s', anchor: 0, missed: 'skip', overlap: 'bufferAll', after: ['s'] },
    { name: 'x' },
  );
  await eventually(async () => (await waitingTicks(world, 2)).length >= 2, { timeout: 10_000 });
  // It stays as it is.
  await queue.schedules.get('s').pause();
  await queue.schedules.get('f').pause();
  return (await waitingTicks(world, 2)) as [string, string];
}

test('a tick that waits for its turn is cancelled: a row of the ledger, its follower told, the others run', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  const queue = world.queue();
  const [first, second] = await buffered(world);
  const before = (await queue.schedules.get('s').describe())?.count ?? 0;
  expect(await queue.cancel(second, { reason: 'not needed', requestId: 'r' })).toEqual({ where: 'timers' });
  expect(await queue.cancel(second, { requestId: 'r' })).toEqual({ where: 'timers' });
  await expect(queue.cancel(second)).rejects.toMatchObject({ code: 'NOT_FOUND' });
  expect(await waitingTicks(world, 1)).not.toContain(second);
  expect((await queue.schedules.get('s').describe())?.count).toBe(before - 1);
  const rows = await queue.schedules.get('s').runs();
  expect(rows.filter(({ scheduledFor }) => `s@${scheduledFor}` === second)).toMatchObject([
    { what: 'cancelled', reason: 'not needed' },
  ]);
  expect(await world.fate(second)).toBe('cancelled: not needed');
  await queue.schedules.get('s').resume();
  await queue.schedules.get('f').resume();
  await world.worker();
  await eventually(() => world.started.includes(`q:${first}`), { timeout: 10_000 });
  const follower = async () =>
    (await queue.schedules.get('f').runs()).find(({ scheduledFor }) => `s@${scheduledFor}` === second);
  await eventually(async () => (await follower()) !== undefined, { timeout: 10_000 });
  expect(await follower()).toMatchObject({ what: 'skipped', reason: 'parent q:s cancelled' });
  expect(world.started).not.toContain(`q:${second}`);
  expect((await world.admin().doctor()).findings).toEqual([]);
});

test('the last tick that waits is cancelled: nothing is left to look at', async ({ task }) => {
  const world = new DependencyWorld(task);
  const queue = world.queue();
  await buffered(world);
  for (const id of await waitingTicks(world, 1)) await queue.cancel(id);
  const { record } = await queue.backend.scripts.get('q', 's');
  expect(record).toMatchObject({ waiting: [], check: 0 });
});

test('a tick that waits for its turn cannot be changed otherwise, and the answer says why', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  const queue = world.queue();
  const [first] = await buffered(world);
  const changes = [
    () => queue.pauseJob(first),
    () => queue.changeDelay(first, 5000),
    () => queue.updateJob(first, { data: 1 }),
  ];
  for (const change of changes) {
    await expect(change()).rejects.toMatchObject({ code: 'UNSUPPORTED', message: /waits for its turn/ });
  }
  await expect(queue.resumeJob(first)).rejects.toMatchObject({ code: 'CONFLICT' });
  expect(await waitingTicks(world, 1)).toContain(first);
});
