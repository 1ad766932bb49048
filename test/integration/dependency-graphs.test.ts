import { expect, test } from 'vitest';
import type { GraphJob } from '../../src/index.js';
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
