import { Queue as BullQueue, FlowProducer, Worker } from 'bullmq';
import { expect, onTestFinished, test } from 'vitest';
import type { JobFilter, Queue } from '../../src/index.js';
import { DependencyWorld } from '../support/dependency-world.js';
import { eventually } from '../support/eventually.js';
import { sharedRedisUrl } from '../support/namespace.js';

const HOUR = 3_600_000;

/** What BullMQ holds of a job, by list. */
async function placesOf(queue: Queue, id: string): Promise<string[]> {
  const { client } = queue.backend.shard;
  const key = (name: string) => queue.backend.toKey(name);
  const places: string[] = [];
  for (const list of ['wait', 'active']) if ((await client.lpos(key(list), id)) !== null) places.push(list);
  for (const set of ['prioritized', 'delayed', 'completed', 'failed']) {
    if ((await client.zscore(key(set), id)) !== null) places.push(set);
  }
  return (await client.exists(key(id))) === 1 ? places : ['none', ...places];
}

/** A job that failed once and waits an hour for its second attempt. */
async function retrying(world: DependencyWorld, id: string): Promise<Queue> {
  const queue = world.queue();
  await queue.add('x', { fails: true }, { jobId: id, attempts: 2, backoff: HOUR });
  const worker = new Worker(
    'q',
    async () => {
      throw new Error('once');
    },
    { prefix: world.prefix, connection: connectionOf() },
  );
  worker.on('error', () => undefined);
  await eventually(async () => (await placesOf(queue, id))[0] === 'delayed');
  await worker.close();
  return queue;
}

function connectionOf() {
  const { hostname, port } = new URL(sharedRedisUrl());
  return { host: hostname, port: Number(port) };
}

/** A job that a stock worker runs until the test ends. */
async function running(world: DependencyWorld, id: string): Promise<Queue> {
  const queue = world.queue();
  let resolve = () => {};
  const promise = new Promise<void>((settle) => {
    resolve = settle;
  });
  const worker = new Worker('q', () => promise, { prefix: world.prefix, connection: connectionOf() });
  worker.on('error', () => undefined);
  onTestFinished(async () => {
    resolve();
    await worker.close();
  });
  await queue.add('x', {}, { jobId: id });
  await eventually(async () => (await placesOf(queue, id))[0] === 'active');
  return queue;
}

test.for([
  ['wait', {}],
  ['prioritized', { priority: 5 }],
] as const)(
  'cancel in %s: gone from BullMQ, in the history, its id free, its child told',
  async ([place, opts], { task }) => {
    const world = new DependencyWorld(task);
    await world.scheduler();
    const queue = world.queue();
    await queue.add('x', {}, { jobId: 'a', ...opts });
    await queue.add('x', {}, { jobId: 'child', after: ['a'] });
    expect(await placesOf(queue, 'a')).toEqual([place]);
    expect(await queue.cancel('a', { reason: 'not needed', requestId: 'r' })).toEqual({ where: 'queue' });
    // A repeat is answered.
    await queue.cancel('a', { requestId: 'r' });
    expect(await placesOf(queue, 'a')).toEqual(['none']);
    expect(await world.fate('a')).toBe('cancelled: not needed');
    await eventually(async () => (await world.fate('child')) === 'cancelled: parent q:a cancelled');
    expect((await queue.add('x', {}, { jobId: 'a', delay: HOUR })).answer).toBe('created');
    expect((await world.admin().doctor()).findings).toEqual([]);
  },
);

test('cancel of a retrying job, and of one in the timers', async ({ task }) => {
  const world = new DependencyWorld(task);
  const queue = await retrying(world, 'a');
  expect(await queue.cancel('a')).toEqual({ where: 'queue' });
  expect(await placesOf(queue, 'a')).toEqual(['none']);
  await queue.add('x', {}, { jobId: 'b', delay: HOUR });
  expect(await queue.cancel('b')).toEqual({ where: 'timers' });
});

test('a stock worker’s run: cancel and pause say that they cannot, update and reschedule that it is too late', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  const queue = await running(world, 'a');
  await expect(queue.cancel('a')).rejects.toMatchObject({ code: 'UNSUPPORTED', field: 'jobId' });
  await expect(queue.pauseJob('a')).rejects.toMatchObject({ code: 'UNSUPPORTED' });
  await expect(queue.updateJob('a', { data: {} })).rejects.toMatchObject({
    code: 'CONFLICT',
    retryable: false,
  });
  await expect(queue.changeDelay('a', 5)).rejects.toMatchObject({ code: 'CONFLICT' });
  await expect(queue.resumeJob('a')).rejects.toMatchObject({ code: 'CONFLICT' });
});

test('a run of our worker is asked: a field of its hash, and a hint', async ({ task }) => {
  const world = new DependencyWorld(task);
  const queue = await running(world, 'a');
  const { client, keys } = queue.backend.shard;
  // As claim-run leaves it.
  const lock = (await client.get(`${queue.backend.toKey('a')}:lock`)) ?? '';
  await client.hset(queue.backend.toKey('a'), 'carillon:worker', '{"id":"w"}', 'carillon:lock', lock);
  const subscriber = client.duplicate();
  onTestFinished(() => subscriber.disconnect());
  const hints: unknown[] = [];
  subscriber.on('message', (_channel, text) => hints.push(JSON.parse(text)));
  await subscriber.subscribe(`${keys.tag}:runs`);
  expect(await queue.cancel('a', { reason: 'enough' })).toEqual({ where: 'worker' });
  expect(JSON.parse((await client.hget(queue.backend.toKey('a'), 'carillon:asked')) ?? '')).toMatchObject({
    verb: 'cancel',
    reason: 'enough',
  });
  await eventually(() => hints.length === 1);
  expect(hints).toEqual([{ queue: 'q', runId: 'a', verb: 'cancel' }]);
});

test.for([
  ['wait', {}],
  ['prioritized', { priority: 5 }],
] as const)(
  'pause in %s takes it out of the queue, resume puts it back, with its payload',
  async ([place, opts], { task }) => {
    const world = new DependencyWorld(task);
    const queue = world.queue();
    await queue.add('x', { v: 1 }, { jobId: 'a', attempts: 3, ...opts });
    expect(await queue.pauseJob('a', { note: 'wait for the invoice' })).toEqual({ where: 'queue' });
    expect(await placesOf(queue, 'a')).toEqual([]);
    const { record } = await queue.backend.scripts.get('q', 'a');
    expect(record).toMatchObject({ state: 'paused', note: 'wait for the invoice', data: '{"v":1}' });
    expect((await world.admin().doctor()).findings.filter(({ severity }) => severity === 'error')).toEqual(
      [],
    );
    await world.worker();
    await queue.updateJob('a', { data: { v: 2 } });
    await queue.resumeJob('a');
    await eventually(async () => (await placesOf(queue, 'a'))[0] === 'completed');
    expect(await queue.getJob('a')).toMatchObject({ data: { v: 2 }, opts: { attempts: 3, ...opts } });
    expect(place).toBeDefined();
    expect(await queue.getJobCountByTypes('delayed')).toBe(0);
  },
);

test('pause of a retrying job keeps its attempts: resumed it waits for the second one', async ({ task }) => {
  const world = new DependencyWorld(task);
  const queue = await retrying(world, 'a');
  await queue.pauseJob('a');
  expect(await placesOf(queue, 'a')).toEqual([]);
  await queue.resumeJob('a');
  expect(await placesOf(queue, 'a')).toEqual(['delayed']);
  expect(await queue.getJob('a')).toMatchObject({ attemptsMade: 1, failedReason: 'once' });
  await queue.pauseJob('a');
  await (await queue.getJob('a'))?.promote();
  expect(await placesOf(queue, 'a')).toEqual(['wait']);
});

test('a job taken aside: cancelled nothing is left of it; removed by hand it is dispatched anew', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  const queue = world.queue();
  await queue.add('x', {}, { jobId: 'a' });
  await queue.pauseJob('a');
  await queue.cancel('a');
  expect(await placesOf(queue, 'a')).toEqual(['none']);
  await queue.add('x', { v: 1 }, { jobId: 'b' });
  await queue.pauseJob('b');
  await queue.backend.shard.client.del(queue.backend.toKey('b'));
  await queue.resumeJob('b');
  await eventually(async () => (await placesOf(queue, 'b'))[0] === 'wait');
});

test('reschedule of a queued job: it leaves the queue and runs at its new time; of a retrying one: now', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  const queue = await retrying(world, 'late');
  await queue.add('x', {}, { jobId: 'early' });
  const before = Date.now();
  expect(await queue.rescheduleJob('early', before + 700)).toEqual({ where: 'queue' });
  expect(await placesOf(queue, 'early')).toEqual(['delayed']);
  expect(await queue.changeDelay('late', 0)).toEqual({ where: 'queue' });
  expect(await placesOf(queue, 'late')).toEqual(['wait']);
  await world.worker();
  await eventually(() => world.started.includes('q:early'));
  expect(Date.now()).toBeGreaterThanOrEqual(before + 690);
  expect(world.started).toEqual(['q:late', 'q:early']);
});

test('update of a queued job: name, data, options and place in the queue', async ({ task }) => {
  const world = new DependencyWorld(task);
  const queue = world.queue();
  await queue.add('x', { v: 1 }, { jobId: 'a', deduplication: { id: 'd' } });
  expect(
    await queue.updateJob('a', { name: 'y', data: { v: 2 }, opts: { attempts: 4, priority: 7 } }),
  ).toEqual({
    where: 'queue',
  });
  expect(await placesOf(queue, 'a')).toEqual(['prioritized']);
  const job = await queue.getJob('a');
  expect(job).toMatchObject({
    name: 'y',
    data: { v: 2 },
    priority: 7,
    deduplicationId: 'd',
    opts: { attempts: 4 },
  });
  expect((await queue.add('x', {}, { jobId: 'b', deduplication: { id: 'd' } })).id).toBe('a');
});

test('by filter: a dry run changes nothing; then in slices, wherever they are', async ({ task }) => {
  const world = new DependencyWorld(task);
  const queue = world.queue();
  await queue.addBulk(
    Array.from({ length: 120 }, (_, i) => ({
      name: i % 2 === 0 ? 'even' : 'odd',
      data: {},
      opts: { jobId: `j${i}`, ...(i < 60 ? { delay: HOUR } : {}), ...(i >= 100 ? { priority: 1 } : {}) },
    })),
  );
  const dry = await queue.changeJobs('pause', { name: 'even' }, { dryRun: true });
  expect(dry.jobs).toHaveLength(60);
  expect(new Set(dry.jobs.map(({ state }) => state))).toEqual(new Set(['scheduled', 'dispatched']));
  expect(await queue.getJobCountByTypes('waiting', 'prioritized')).toBe(60);
  const paused = await queue.changeJobs('pause', { name: 'even' }, { note: 'quiet' });
  expect(paused.jobs.filter(({ done }) => done)).toHaveLength(60);
  expect(await queue.getJobCountByTypes('waiting', 'prioritized')).toBe(30);
  expect((await queue.changeJobs('resume', { all: true })).jobs).toHaveLength(60);
  expect(await queue.getJobCountByTypes('waiting', 'prioritized')).toBe(60);
  const some = await queue.changeJobs('cancel', { states: ['scheduled'], text: 'J1' }, { limit: 5 });
  expect(some).toMatchObject({ more: true });
  expect(some.jobs.every(({ done, id }) => done && id.startsWith('j1'))).toBe(true);
  await expect(queue.changeJobs('cancel', { states: ['nowhere' as never] })).rejects.toMatchObject({
    field: 'filter.states',
  });
  await expect(queue.changeJobs('reschedule', { all: true })).rejects.toMatchObject({ field: 'delay' });
});

test('by filter: the same update of each, with a dry run', async ({ task }) => {
  const world = new DependencyWorld(task);
  const queue = world.queue();
  for (const [jobId, delay] of [
    ['a', HOUR],
    ['b', 0],
    ['c', HOUR],
  ] as const)
    await queue.add(jobId === 'c' ? 'other' : 'x', {}, { jobId, delay, attempts: 2 });
  const options = { change: { data: { v: 2 }, opts: { priority: 4 } } };
  const dry = await queue.changeJobs('update', { name: 'x' }, { ...options, dryRun: true });
  expect(dry.jobs.map(({ id, done }) => [id, done]).sort()).toEqual([
    ['a', false],
    ['b', false],
  ]);
  expect((await queue.getJob('a'))?.data).toEqual({});
  const { jobs } = await queue.changeJobs('update', { name: 'x' }, options);
  expect(jobs.every(({ done }) => done)).toBe(true);
  for (const id of ['a', 'b'])
    expect(await queue.getJob(id)).toMatchObject({ data: { v: 2 }, opts: { priority: 4, attempts: 2 } });
  expect((await queue.getJob('c'))?.data).toEqual({});
});

test('by filter: one-time jobs of ours only, unless ids name others; ids that are not met are answered', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  const queue = world.queue();
  await queue.add('x', {}, { jobId: 'due', delay: 300 });
  await queue.add('x', {}, { jobId: 'ours' });
  await queue.schedules.upsert('s', { every: '1h', anchor: 0, missed: 'skip' }, { name: 'x' });
  const { runId = '' } = await queue.schedules.get('s').trigger();
  const plain = new BullQueue('q', { prefix: world.prefix, connection: connectionOf() });
  onTestFinished(() => plain.close());
  await plain.add('x', {}, { jobId: 'plain' });
  await eventually(async () => (await queue.getWaitingCount()) === 4);
  const meant = async (filter: JobFilter) =>
    (await queue.changeJobs('cancel', filter, { dryRun: true })).jobs.map(({ id }) => id).sort();
  expect(await meant({ name: 'x' })).toEqual(['due', 'ours']);
  expect(await meant({ all: true })).toEqual(['due', 'ours']);
  const ids = ['due', 'plain', runId];
  expect(await meant({ ids })).toEqual([...ids].sort());
  const { jobs } = await queue.changeJobs('cancel', {
    ids: ['plain', 'nobody', 'ours'],
    states: ['dispatched'],
  });
  expect(jobs).toContainEqual({
    id: 'nobody',
    name: '',
    state: 'unknown',
    done: false,
    problem: expect.stringContaining('nobody knows'),
  });
  expect(jobs.filter(({ done }) => done).map(({ id }) => id)).toEqual(
    expect.arrayContaining(['ours', 'plain']),
  );
  const [elsewhere] = (await queue.changeJobs('pause', { ids: ['due'], states: ['scheduled'] })).jobs;
  expect(elsewhere).toMatchObject({ id: 'due', done: false, problem: expect.stringContaining('waiting') });
});

test.for([
  [{ name: 5 }, 'filter.name'],
  [{ name: '' }, 'filter.name'],
  [{ text: 5 }, 'filter.text'],
  [{ ids: 'abc' }, 'filter.ids'],
  [{ ids: [5] }, 'filter.ids'],
  [{ states: 'scheduled' }, 'filter.states'],
  [{ queue: 'q' }, 'filter.queue'],
  [{ all: 'yes' }, 'filter.all'],
  [{ all: true, name: 'x' }, 'filter.all'],
  [{ all: false }, 'filter'],
  [{ name: undefined }, 'filter'],
  [{}, 'filter'],
  ['x', 'filter'],
] as const)('a filter that is none, or names nothing, is refused: %o', async ([filter, field], { task }) => {
  const queue = new DependencyWorld(task).queue();
  await queue.add('x', {}, { jobId: 'a' });
  await expect(queue.changeJobs('cancel', filter as never)).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    field,
  });
  expect(await queue.getWaitingCount()).toBe(1);
});

test.for([
  ['update', {}, 'change'],
  ['update', { change: {} }, 'change'],
  ['update', { change: { priority: 1 } }, 'change.priority'],
  ['cancel', { delay: 5 }, 'delay'],
  ['resume', { note: 'x' }, 'note'],
  ['pause', { note: 5 }, 'note'],
  ['reschedule', { delay: 'soon' }, 'delay'],
  ['cancel', { dryRun: 'yes' }, 'dryRun'],
] as const)(
  'options that mean nothing for the verb are refused: %s %o',
  async ([verb, options, field], { task }) => {
    const queue = new DependencyWorld(task).queue();
    await expect(queue.changeJobs(verb, { all: true }, options as never)).rejects.toMatchObject({ field });
  },
);

test('B56 a job that fell due while it was paused runs once when it is resumed, also after a new scheduler', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  const first = await world.scheduler();
  await world.worker();
  const queue = world.queue();
  await queue.add('x', {}, { jobId: 'due', delay: 300 });
  await queue.pauseJob('due');
  await queue.add('x', {}, { jobId: 'other', delay: 400 });
  await eventually(() => world.started.includes('q:other'));
  await first.stop();
  await world.scheduler();
  expect(world.started).toEqual(['q:other']);
  await queue.resumeJob('due');
  await eventually(() => world.started.includes('q:due'));
  expect(world.started).toEqual(['q:other', 'q:due']);
});

test('B58 rescheduled from 5 minutes to 100,000 s after a minute: once, at the new time', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  const queue = world.queue();
  const { scheduledFor: old } = await queue.add('x', {}, { jobId: 'a', delay: 300_000 });
  await queue.changeDelay('a', 100_000_000);
  const { record } = await queue.backend.scripts.get('q', 'a');
  const at = record?.kind === 'job' ? record.at : 0;
  expect(at).toBeGreaterThanOrEqual(old - 300_000 + 100_000_000);
  expect(await queue.getJobCountByTypes('delayed')).toBe(1);
});

test('B58 rescheduled and cancelled within 20 ms of the due time: one run at most, as the answer says', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  const queue = world.queue();
  const COUNT = 300;
  const at = Date.now() + 1500;
  await queue.addBulk(
    Array.from({ length: COUNT }, (_, i) => ({ name: 'x', data: {}, opts: { jobId: `r${i}`, at } })),
  );
  await queue.addBulk(
    Array.from({ length: COUNT }, (_, i) => ({ name: 'x', data: {}, opts: { jobId: `c${i}`, at } })),
  );
  await eventually(() => Date.now() >= at - 20, { every: 1 });
  const where = { rescheduled: new Map<string, string>(), cancelled: new Map<string, string>() };
  await Promise.all(
    Array.from({ length: COUNT }, async (_, i) => {
      where.rescheduled.set(`r${i}`, (await queue.changeDelay(`r${i}`, 300)).where);
      where.cancelled.set(`c${i}`, (await queue.cancel(`c${i}`)).where);
    }),
  );
  // No worker was there: each was either moved or taken back, in the timers or in the queue.
  await world.worker();
  await eventually(() => world.started.length >= COUNT);
  await eventually(async () => (await queue.getJobCountByTypes('waiting', 'active', 'delayed')) === 0);
  expect(world.started.filter((id) => id.startsWith('q:c'))).toEqual([]);
  expect(new Set(world.started).size).toBe(COUNT);
  expect(world.started).toHaveLength(COUNT);
  expect([...where.rescheduled.values(), ...where.cancelled.values()].every((w) => w !== 'worker')).toBe(
    true,
  );
});

test('a child of a BullMQ flow is left to BullMQ, whose removal tells the parent', async ({ task }) => {
  const world = new DependencyWorld(task);
  const queue = world.queue();
  const flows = new FlowProducer({ prefix: world.prefix, connection: connectionOf() });
  onTestFinished(() => flows.close());
  await flows.add({
    name: 'sum',
    queueName: 'q',
    opts: { jobId: 'sum' },
    children: [{ name: 'part', queueName: 'q', opts: { jobId: 'part' } }],
  });
  await expect(queue.cancel('part')).rejects.toMatchObject({
    code: 'UNSUPPORTED',
    message: /child of a BullMQ flow/,
  });
  expect(await queue.getJobState('sum')).toBe('waiting-children');
  // Its children would go on for nobody.
  await expect(queue.cancel('sum')).rejects.toMatchObject({ code: 'UNSUPPORTED', message: /children/ });
  await expect(queue.pauseJob('sum')).rejects.toMatchObject({ code: 'CONFLICT' });
  await expect(queue.changeDelay('sum', 5)).rejects.toMatchObject({ code: 'CONFLICT' });
  expect(await queue.updateJob('sum', { data: 1 })).toEqual({ where: 'queue' });
  expect(await queue.getJobState('sum')).toBe('waiting-children');
  await (await queue.getJob('part'))?.remove();
  expect(await queue.getJobState('sum')).toBe('waiting');
  expect(await queue.cancel('sum')).toEqual({ where: 'queue' });
});

test('an ended job cannot be changed, and the refusal says what can be done of each end', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  const queue = world.queue();
  const worker = new Worker(
    'q',
    async ({ data }) => {
      if (data.fails) throw new Error('no');
    },
    { prefix: world.prefix, connection: connectionOf() },
  );
  onTestFinished(() => worker.close());
  worker.on('error', () => undefined);
  await queue.add('x', {}, { jobId: 'done' });
  await queue.add('x', {}, { jobId: 'gone', removeOnComplete: true });
  await queue.add('x', { fails: true }, { jobId: 'dead' });
  await queue.add('x', {}, { jobId: 'cancelled', delay: HOUR });
  await queue.cancel('cancelled');
  await eventually(async () => expect(await placesOf(queue, 'done')).toEqual(['completed']));
  await eventually(async () => expect(await placesOf(queue, 'dead')).toEqual(['failed']));
  await eventually(async () => expect(await placesOf(queue, 'gone')).toEqual(['none']));
  const says = {
    done: ['it has ended (completed)', 'add a job with another id'],
    gone: ['it has ended (fired)', 'add a job with another id'],
    cancelled: ['it has ended (cancelled)', 'add a job with another id'],
    dead: ['it has ended: it is a dead letter', 'queue.dead.requeue(id)'],
  };
  for (const [id, [message, todo]] of Object.entries(says)) {
    for (const change of [
      () => queue.cancel(id),
      () => queue.pauseJob(id),
      () => queue.resumeJob(id),
      () => queue.changeDelay(id, '1h'),
      () => queue.rescheduleJob(id, Date.now() + HOUR),
      () => queue.updateJob(id, { name: 'y' }),
    ]) {
      await expect(change()).rejects.toMatchObject({
        code: 'CONFLICT',
        message,
        todo: expect.stringContaining(todo as string),
      });
    }
  }
  // What was told is true.
  await queue.dead.requeue('dead', { data: {} });
  await eventually(async () => expect(await placesOf(queue, 'dead')).toEqual(['completed']));
  expect(await queue.add('x', {}, { jobId: 'another' })).toMatchObject({ answer: 'created' });
});
