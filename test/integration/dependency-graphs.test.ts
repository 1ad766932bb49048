import { expect, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import type { GraphJob, JobOptions } from '../../src/index.js';
import { DependencyWorld } from '../support/dependency-world.js';
import { eventually } from '../support/eventually.js';

const HOUR = 3_600_000;

test('a graph over three queues, nodes in any order, one of them delayed, roots gone at once', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  await world.worker('a', 'b', 'c');
  const nodes: GraphJob[] = [
    {
      queue: 'c',
      name: 'x',
      opts: {
        jobId: 'end',
        after: [
          { queue: 'a', jobId: 'left' },
          { queue: 'b', jobId: 'right' },
        ],
      },
    },
    { queue: 'b', name: 'x', opts: { jobId: 'right', delay: 700, after: [{ queue: 'a', jobId: 'root' }] } },
    { name: 'x', opts: { jobId: 'left', after: ['root'], removeOnComplete: true } },
    { name: 'x', opts: { jobId: 'root', removeOnComplete: true } },
  ];
  const added = await world.queue('a').addGraph(nodes);
  expect(added.map(({ queue, jobId, answer }) => `${queue}:${jobId} ${answer}`)).toEqual([
    'c:end created',
    'b:right created',
    'a:left created',
    'a:root created',
  ]);
  await eventually(() => world.started.length === 4);
  expect(world.started[0]).toBe('a:root');
  expect(world.started[3]).toBe('c:end');
});

test('refused whole: a cycle, an unknown parent, a bad option in the last node', async ({ task }) => {
  const world = new DependencyWorld(task);
  const queue = world.queue();
  const ok: GraphJob = { name: 'x', opts: { jobId: 'ok' } };
  const cycle: GraphJob[] = [
    { name: 'x', opts: { jobId: 'a', after: ['b'] } },
    { queue: 'q', name: 'x', opts: { jobId: 'b', after: ['a'] } },
  ];
  await expect(queue.addGraph([ok, ...cycle])).rejects.toMatchObject({ code: 'CYCLE' });
  await expect(
    queue.addGraph([ok, { name: 'x', opts: { jobId: 'c', after: ['nobody'] } }]),
  ).rejects.toMatchObject({
    code: 'UNKNOWN_PARENT',
  });
  await expect(queue.addGraph([ok, { name: 'x', opts: { jobId: 'c', attempts: -1 } }])).rejects.toMatchObject(
    {
      code: 'INVALID_OPTION',
    },
  );
  await expect(queue.addGraph([ok, ok])).rejects.toMatchObject({ code: 'ID_IN_USE' });
  expect(await queue.getJobCountByTypes('delayed', 'waiting')).toBe(0);
});

test('a graph that hangs on a job that is there, and a repeat that adds only what is missing', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  const queue = world.queue();
  await queue.add('x', {}, { jobId: 'there', delay: HOUR });
  const nodes: GraphJob[] = [
    { name: 'x', opts: { after: ['there'] } },
    { name: 'x', opts: { jobId: 'b', after: ['there'] } },
  ];
  const first = await queue.addGraph(nodes, { requestId: 'r' });
  const again = await queue.addGraph(nodes, { requestId: 'r' });
  expect(again).toEqual(first);
  expect(await queue.getJobCountByTypes('delayed')).toBe(3);
});

test('a fan-out of 300 and a fan-in of 300', async ({ task }) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  await world.worker();
  const middle = Array.from({ length: 300 }, (_, i) => `m${i}`);
  await world
    .queue()
    .addGraph([
      { name: 'x', opts: { jobId: 'root', removeOnComplete: true } },
      ...middle.map((jobId) => ({ name: 'x', opts: { jobId, after: ['root'], removeOnComplete: true } })),
      { name: 'x', opts: { jobId: 'end', after: middle } },
    ]);
  await eventually(() => world.started.length === 302, { timeout: 20_000 });
  expect(world.started[0]).toBe('q:root');
  expect(world.started.at(-1)).toBe('q:end');
});

test('an id that waits for others than asked is refused, alone, and stays as it is; the same ones are a repeat', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  const queue = world.queue();
  const edges = async (id: string) =>
    (await queue.getGraph(id)).get(`q:${id}`)?.after.map(({ jobId }) => jobId);
  await queue.addGraph([
    { name: 'x', opts: { jobId: 'one', delay: HOUR } },
    { name: 'x', opts: { jobId: 'two', delay: HOUR } },
    { name: 'x', opts: { jobId: 'plain', delay: HOUR } },
    { name: 'x', opts: { jobId: 'child', after: ['one', 'two'] } },
  ]);
  const add = (jobId: string, opts: JobOptions) => queue.add('x', {}, { jobId, ...opts });
  const refused = { code: 'CONFLICT', field: 'after', retryable: false, message: /child/ };
  await expect(add('child', { after: ['one'] })).rejects.toMatchObject(refused);
  await expect(add('child', { after: ['one', { jobId: 'two', on: 'completion' }] })).rejects.toMatchObject(
    refused,
  );
  await expect(add('child', { after: ['one', 'two'], onParentFailed: 'run' })).rejects.toMatchObject(refused);
  await expect(add('plain', { after: ['one'] })).rejects.toMatchObject({ ...refused, message: /plain/ });
  expect((await add('child', { after: ['two', 'one'] })).answer).toBe('existing');
  // Who asks for nothing is told that it is there, as with all other options.
  expect((await add('child', {})).answer).toBe('existing');
  await expect(
    queue.addGraph([
      { name: 'x', opts: { jobId: 'new', delay: HOUR } },
      { name: 'x', opts: { jobId: 'fine', after: ['new'] } },
      { name: 'x', opts: { jobId: 'plain', after: ['new'] } },
    ]),
  ).rejects.toMatchObject({
    code: 'CONFLICT',
    items: [
      { jobId: 'fine', answer: 'created' },
      { jobId: 'plain', error: { code: 'CONFLICT' } },
    ],
  });
  expect(await edges('child')).toEqual(['one', 'two']);
  expect(await edges('plain')).toEqual([]);
});

test('a circle by way of a job that is there: refused, whoever closes it', async ({ task }) => {
  const world = new DependencyWorld(task);
  const queue = world.queue();
  await queue.add('x', {}, { jobId: 'k', delay: HOUR });
  await queue.add('x', {}, { jobId: 'm', after: ['k'] });
  await expect(queue.addGraph([{ name: 'x', opts: { jobId: 'k', after: ['m'] } }])).rejects.toMatchObject({
    code: 'CONFLICT',
  });
  await expect(queue.add('x', {}, { jobId: 'k', after: ['m'] })).rejects.toMatchObject({ code: 'CONFLICT' });
});

test('a repeat after the parents ended is a repeat: the job waits for its time, or has it', async ({
  task,
}) => {
  const world = new DependencyWorld(task);
  await world.scheduler();
  await world.worker();
  const queue = world.queue();
  const later: GraphJob = { name: 'x', opts: { jobId: 'later', delay: HOUR, after: ['root'] } };
  const nodes: GraphJob[] = [
    { name: 'x', opts: { jobId: 'root', removeOnComplete: true } },
    { name: 'x', opts: { jobId: 'now', after: ['root'] } },
    later,
  ];
  await queue.addGraph(nodes);
  await eventually(async () => (await world.stateOf('later')) === 'scheduled');
  await eventually(() => world.started.includes('q:now'));
  const again = async () => (await queue.addGraph(nodes.slice(1))).map(({ answer }) => answer);
  expect(await again()).toEqual(['fired', 'existing']);
  // What it waited for is forgotten with the parent's outcome.
  const { client, keys } = queue.backend.shard;
  await client.hdel(`${keys.tag}:${bucketOf('q:later')}:after`, 'q:later');
  expect(await again()).toEqual(['fired', 'existing']);
  // A parent that failed would not have let it be.
  await queue.add('x', { fails: true }, { jobId: 'dead' });
  await eventually(async () => (await queue.getJobState('dead')) === 'failed');
  await expect(queue.add('x', {}, { jobId: 'later', after: ['dead'] })).rejects.toMatchObject({
    code: 'CONFLICT',
  });
});
