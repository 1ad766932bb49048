import { expect, onTestFinished, test } from 'vitest';
import { Worker } from '../../src/index.js';
import { DependencyWorld } from '../support/dependency-world.js';
import { eventually } from '../support/eventually.js';
import { sharedRedisUrl } from '../support/namespace.js';

const HOUR = 3_600_000;

test('fan-in and fan-out over queues: each runs after all its parents, removeOnComplete or not', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  const [a, b] = [world.queue('a'), world.queue('b')];
  await a.add('x', {}, { jobId: 'root', delay: 300, removeOnComplete: true });
  await b.add('x', {}, { jobId: 'left', after: [{ queue: 'a', jobId: 'root' }], removeOnComplete: 1 });
  await a.add('x', {}, { jobId: 'right', after: ['root'], removeOnComplete: true });
  await b.add('x', {}, { jobId: 'end', after: ['left', { queue: 'a', jobId: 'right' }] });
  expect(await world.stateOf('end', 'b')).toBe('waiting');
  expect(await b.getJobState('end')).toBe('delayed');
  await world.worker('a', 'b');
  await eventually(() => world.started.length === 4);
  expect(world.started[0]).toBe('a:root');
  expect(world.started.slice(1, 3).sort()).toEqual(['a:right', 'b:left']);
  expect(world.started[3]).toBe('b:end');
});

test('a child with a time of its own fires when both are met', async ({ task }) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  await world.worker();
  const queue = world.queue();
  await queue.add('x', {}, { jobId: 'now', delay: 100 });
  const far = await queue.add('x', {}, { jobId: 'far', delay: HOUR, after: ['now'] });
  await queue.add('x', {}, { jobId: 'slow', delay: 1200 });
  await queue.add('x', {}, { jobId: 'soon', delay: 100, after: ['slow'] });
  await eventually(() => world.started.includes('q:soon'));
  expect(world.started).toEqual(['q:now', 'q:slow', 'q:soon']);
  expect(await world.stateOf('far')).toBe('scheduled');
  expect(far.scheduledFor).toBeGreaterThan(Date.now() + HOUR / 2);
});

test('on failure and on completion; a failure that does not come skips its child', async ({ task }) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  await world.worker();
  const queue = world.queue();
  await queue.add('x', { fails: true }, { jobId: 'bad', delay: 200, removeOnFail: true });
  await queue.add('x', {}, { jobId: 'good', delay: 200 });
  await queue.add('x', {}, { jobId: 'alarm', after: [{ jobId: 'bad', on: 'failure' }] });
  await queue.add('x', {}, { jobId: 'clean', after: [{ jobId: 'bad', on: 'completion' }] });
  await queue.add('x', {}, { jobId: 'never', after: [{ jobId: 'good', on: 'failure' }] });
  await eventually(async () => (await world.fate('never')) === 'skipped: parent q:good succeeded');
  await eventually(() => world.started.includes('q:alarm') && world.started.includes('q:clean'));
  expect(world.started).not.toContain('q:never');
});

test('a dead parent: cancel, hold and run, and the cancelled child’s own children', async ({ task }) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  await world.worker();
  const queue = world.queue();
  await queue.add('x', { fails: true }, { jobId: 'bad', delay: 200 });
  await queue.add('x', {}, { jobId: 'cancels', after: ['bad'] });
  await queue.add('x', {}, { jobId: 'holds', after: ['bad'], onParentFailed: 'hold' });
  await queue.add('x', {}, { jobId: 'runs', after: ['bad'], onParentFailed: 'run' });
  await queue.add('x', {}, { jobId: 'grandchild', after: ['cancels'] });
  await queue.add('x', {}, { jobId: 'mourner', after: [{ jobId: 'cancels', on: 'completion' }] });
  await eventually(() => world.started.includes('q:runs') && world.started.includes('q:mourner'));
  expect(await world.fate('cancels')).toBe('cancelled: parent q:bad dead');
  expect(await world.fate('grandchild')).toBe('cancelled: parent q:cancels cancelled');
  expect(await world.fate('runs')).toBe('released: parent q:bad dead');
  const { record } = await queue.backend.scripts.get('q', 'holds');
  expect(record).toMatchObject({ state: 'paused', note: 'parent q:bad dead' });
  await queue.resumeJob('holds');
  await eventually(() => world.started.includes('q:holds'));
});

test('cancelled, expired and removed parents are told by policy', async ({ task }) => {
  const world = new DependencyWorld(task);
  const queue = world.queue();
  for (const id of ['cancelled', 'removed']) {
    await queue.add('x', {}, { jobId: id, delay: HOUR });
    await queue.add('x', {}, { jobId: `after-${id}`, after: [id] });
  }
  await queue.add('x', {}, { jobId: 'expired', delay: 50, deadline: Date.now() + 100 });
  await queue.add('x', {}, { jobId: 'after-expired', after: ['expired'] });
  await eventually(
    () =>
      Date.now() > 0 &&
      queue.getJob('expired').then((job) => job !== undefined && job.scheduledFor + 100 < Date.now()),
  );
  await world.scheduler();
  await queue.cancel('cancelled', { reason: 'not needed' });
  const removed = await queue.getJob('removed');
  await removed?.promote();
  await eventually(async () => (await queue.getJobState('removed')) === 'waiting');
  await (await queue.getJob('removed'))?.remove();
  await eventually(
    async () => (await world.fate('after-cancelled')) === 'cancelled: parent q:cancelled cancelled',
  );
  await eventually(async () => (await world.fate('after-expired')) === 'cancelled: parent q:expired skipped');
  await eventually(async () => (await world.fate('after-removed')) === 'cancelled: parent q:removed removed');
});

test('a parent that has ended already is judged when its child is added', async ({ task }) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  await world.worker();
  const queue = world.queue();
  await queue.add('x', {}, { jobId: 'kept' });
  await queue.add('x', { fails: true }, { jobId: 'dead' });
  await queue.add('x', {}, { jobId: 'gone', removeOnComplete: true });
  await eventually(
    async () =>
      (await queue.getJobCountByTypes('completed', 'failed')) === 2 &&
      (await queue.getJob('gone')) === undefined,
  );
  await queue.add('x', {}, { jobId: 'after-kept', after: ['kept'] });
  await queue.add('x', {}, { jobId: 'after-dead', after: ['dead'] });
  await queue.add('x', {}, { jobId: 'after-gone', after: ['gone'] });
  await eventually(() => world.started.includes('q:after-kept'));
  expect(await world.fate('after-dead')).toBe('cancelled: parent q:dead dead');
  const { record } = await queue.backend.scripts.get('q', 'after-gone');
  expect(record).toMatchObject({ state: 'paused', note: 'parent q:gone lost' });
});

test('a parent under way when its child is added, and a plain BullMQ job as a parent', async ({ task }) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  const queue = world.queue();
  await queue.add('x', {}, { jobId: 'queued', removeOnComplete: true });
  const stock = await world.stock().add('x', {}, { removeOnComplete: true });
  await queue.add('x', {}, { jobId: 'child', after: ['queued', stock.id ?? ''] });
  expect(await world.stateOf('child')).toBe('waiting');
  await world.worker();
  await eventually(() => world.started.includes('q:child'));
  expect(world.started).toEqual(['q:queued', `q:${stock.id}`, 'q:child']);
});

test('an unknown parent, a schedule, itself: refused, and nothing is stored', async ({ task }) => {
  const world = new DependencyWorld(task);
  const queue = world.queue();
  await queue.schedules.upsert('nightly', { every: '1h', missed: 'skip' });
  await expect(queue.add('x', {}, { jobId: 'a', after: ['nobody'] })).rejects.toMatchObject({
    code: 'UNKNOWN_PARENT',
    field: 'after',
  });
  await expect(queue.add('x', {}, { jobId: 'a', after: ['nightly'] })).rejects.toMatchObject({
    code: 'UNSUPPORTED',
  });
  await expect(queue.add('x', {}, { jobId: 'a', after: ['a'] })).rejects.toMatchObject({ code: 'CYCLE' });
  await expect(
    queue.addBulk([
      { name: 'x', data: {}, opts: { jobId: 'b' } },
      { name: 'x', data: {}, opts: { jobId: 'c', after: ['nobody'] } },
    ]),
  ).rejects.toMatchObject({ code: 'UNKNOWN_PARENT' });
  expect(await queue.getJobCountByTypes('delayed', 'waiting')).toBe(0);
});

test('a repeat of a submit is answered, whatever became of the parent since', async ({ task }) => {
  const world = new DependencyWorld(task);
  const queue = world.queue();
  await queue.add('x', {}, { jobId: 'parent', delay: HOUR });
  const opts = { jobId: 'child', requestId: 'r', after: ['parent'] };
  expect((await queue.add('x', {}, opts)).answer).toBe('created');
  expect((await queue.add('x', {}, opts)).answer).toBe('created');
  await queue.cancel('child');
  expect((await queue.add('x', {}, opts)).answer).toBe('created');
  expect(await world.stateOf('child')).toBeUndefined();
});

test('a waiting child: paused and resumed it waits on, promoted it runs, cancelled it is forgotten', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  const queue = world.queue();
  await queue.add('x', {}, { jobId: 'parent', delay: HOUR });
  for (const id of ['stopped', 'promoted', 'cancelled'])
    await queue.add('x', {}, { jobId: id, after: ['parent'] });
  await queue.pauseJob('stopped');
  await queue.resumeJob('stopped');
  expect(await world.stateOf('stopped')).toBe('waiting');
  await (await queue.getJob('promoted'))?.promote();
  expect(await queue.getJobState('promoted')).toBe('waiting');
  await queue.cancel('cancelled');
  await queue.pauseJob('stopped');
  await (await queue.getJob('parent'))?.promote();
  await world.worker();
  await eventually(() => world.started.length === 2);
  await queue.resumeJob('stopped');
  await eventually(() => world.started.includes('q:stopped'));
  expect(world.started).not.toContain('q:cancelled');
});

test('a child of a BullMQ flow as a parent: its end is read from its hash, and its own parent is told too', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  const queue = world.queue();
  const { node, children = [] } = await world.flow({
    name: 'top',
    queueName: 'q',
    children: [{ name: 'leaf', queueName: 'q' }],
  });
  const leaf = children[0]?.job.id ?? '';
  await queue.add('x', {}, { jobId: 'child', after: [leaf] });
  await world.worker();
  await eventually(() => world.started.includes('q:child') && world.started.includes(`q:${node}`));
  expect(world.started[0]).toBe(`q:${leaf}`);
});

test('the outcome is decided once: a dead parent that is retried and succeeds changes nothing for those told', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  await world.worker();
  const queue = world.queue();
  await queue.add('x', { fails: true }, { jobId: 'parent', delay: 200 });
  await queue.add('x', {}, { jobId: 'child', after: ['parent'] });
  await eventually(async () => (await world.fate('child')) === 'cancelled: parent q:parent dead');
  const dead = await queue.getJob('parent');
  expect(dead?.parent).toBeUndefined();
  await dead?.updateData({});
  await dead?.retry();
  await eventually(async () => (await queue.getJobState('parent')) === 'completed');
  await queue.add('x', {}, { jobId: 'late', after: ['parent'] });
  await eventually(async () => (await world.fate('late')) === 'cancelled: parent q:parent dead');
});

test('a run that our worker gives up because it was cancelled is told as cancelled', async ({ task }) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  const queue = world.queue();
  await queue.add('x', {}, { jobId: 'parent' });
  await queue.add('x', {}, { jobId: 'child', after: ['parent'] });
  let running = false;
  const worker = new Worker(
    'q',
    {
      x: (run) =>
        new Promise((_, reject) => {
          running = true;
          run.signal.addEventListener('abort', () => reject(run.signal.reason));
        }),
    },
    { prefix: world.prefix, connection: sharedRedisUrl() },
  );
  onTestFinished(() => worker.close());
  await eventually(() => running);
  expect(await queue.cancel('parent', { reason: 'enough' })).toEqual({ where: 'worker' });
  await eventually(async () => (await world.fate('child')) === 'cancelled: parent q:parent cancelled');
});

test.for([
  ['before its child', false],
  ['after its child', true],
] as const)(
  'a parent that is set aside, because a stranger took its id %s: the policy for lost parents',
  async ([, childFirst], { task }) => {
    const world = new DependencyWorld(task);
    const queue = world.queue();
    await queue.add('x', {}, { jobId: 'p', delay: 700 });
    if (!childFirst) await world.stock().add('x', {}, { jobId: 'p' });
    await queue.add('x', {}, { jobId: 'held', after: ['p'] });
    await queue.add('x', {}, { jobId: 'cancelled', after: ['p'], onParentLost: 'cancel' });
    if (childFirst) await world.stock().add('x', {}, { jobId: 'p' });
    // The stranger's job ends before ours is due.
    await world.worker();
    await eventually(() => world.started.includes('q:p'));
    await world.scheduler();
    await eventually(async () => (await world.fate('p'))?.startsWith('quarantined: ID_TAKEN'));
    await eventually(async () => (await world.fate('cancelled')) === 'cancelled: parent q:p lost');
    await eventually(async () => (await world.stateOf('held')) === 'paused');
    expect((await queue.backend.scripts.get('q', 'held')).record?.note).toBe('parent q:p lost');
    expect((await queue.getGraph('p')).get('q:p')).toMatchObject({
      state: 'lost',
      note: /quarantined: ID_TAKEN/,
    });
    // One that comes later is judged likewise, whatever the stranger's job did.
    await queue.add('x', {}, { jobId: 'late', after: ['p'] });
    expect(await world.stateOf('late')).toBe('paused');
    // Released it runs; who was told stays as it is until somebody says otherwise.
    await world.stock().remove('p');
    await world.admin().releaseQuarantine('q', 'p');
    await eventually(() => world.started.filter((id) => id === 'q:p').length === 2);
    await queue.add('x', {}, { jobId: 'then', after: ['p'] });
    await eventually(() => world.started.includes('q:then'));
    expect(await world.stateOf('held')).toBe('paused');
    await queue.resumeJob('held');
    await eventually(() => world.started.includes('q:held'));
    expect((await world.admin().doctor()).findings.filter(({ check }) => check === 'parents')).toEqual([]);
  },
);

test('a parent that was set aside before anybody waited for it is lost for those who come', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  const queue = world.queue();
  await queue.add('x', {}, { jobId: 'p', delay: 300 });
  await world.stock().add('x', {}, { jobId: 'p' });
  await eventually(async () => (await world.fate('p'))?.startsWith('quarantined: ID_TAKEN'));
  await queue.add('x', {}, { jobId: 'child', after: ['p'] });
  await world.worker();
  await eventually(() => world.started.includes('q:p'));
  await eventually(async () => (await world.stateOf('child')) === 'paused');
  expect(world.started).toEqual(['q:p']);
});

test('hold by policy of a child that a person paused: the reason is its note, and the person resumes it', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  const queue = world.queue();
  await queue.add('x', { fails: true }, { jobId: 'bad', delay: 500 });
  await queue.add('x', {}, { jobId: 'child', after: ['bad'], onParentFailed: 'hold' });
  await queue.pauseJob('child', { note: 'not today' });
  await world.worker();
  await eventually(async () => (await world.fate('child')) === 'held: parent q:bad dead');
  expect((await queue.backend.scripts.get('q', 'child')).record).toMatchObject({
    state: 'paused',
    note: 'parent q:bad dead; before: not today',
  });
  await queue.resumeJob('child');
  await eventually(() => world.started.includes('q:child'));
});
