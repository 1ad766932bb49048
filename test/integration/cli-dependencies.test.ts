import { expect, onTestFinished, test } from 'vitest';
import { treeOf } from '../../src/cli/jobs-graph.js';
import type { GraphNodeInfo } from '../../src/client/job-graph.js';
import { Worker } from '../../src/index.js';
import { DependencyWorld } from '../support/dependency-world.js';
import { eventually } from '../support/eventually.js';
import { sharedRedisUrl } from '../support/namespace.js';
import { InProcessCli } from './cli-in-process.js';

const HOUR = 3_600_000;

function setup(task: { name: string }) {
  const world = new DependencyWorld(task);
  return { world, queue: world.queue(), cli: new InProcessCli(world.prefix) };
}

test('jobs graph: a tree from any of its jobs, and one document; jobs get says what it waits for', async ({
  task,
}) => {
  const { queue, cli } = setup(task);
  await queue.addGraph([
    { name: 'x', opts: { jobId: 'root', delay: HOUR } },
    { name: 'x', opts: { jobId: 'left', after: ['root'] } },
    { name: 'x', opts: { jobId: 'right', after: ['root'] } },
    { name: 'x', opts: { jobId: 'end', after: ['left', { jobId: 'right', on: 'completion' }] } },
  ]);
  const tree = (await cli.text('jobs', 'graph', 'q', 'end')).trimEnd().split('\n');
  expect(tree[0]).toMatch(/^q:root \[scheduled, due in /);
  expect(tree.slice(1)).toEqual([
    '├─ q:left [waiting for 1 of 1, may run twice]',
    '│  └─ q:end [waiting for 2 of 2, may run twice] ◀',
    '└─ q:right [waiting for 1 of 1, may run twice]',
    '   └─ q:end (above) ◀',
  ]);
  const { nodes } = await cli.json<{ nodes: GraphNodeInfo[] }>('jobs', 'graph', 'q', 'root');
  expect(nodes.map(({ jobId }) => jobId).sort()).toEqual(['end', 'left', 'right', 'root']);
  expect(nodes[0]).toMatchObject({
    jobId: 'root',
    state: 'scheduled',
    children: ['q:left', 'q:right'],
    after: [],
  });
  expect(await cli.json('jobs', 'get', 'q', 'end')).toMatchObject({
    state: 'waiting',
    after: ['q:left (on success)', 'q:right (on completion)'],
  });
  expect(await cli.run('jobs', 'graph', 'q', 'nobody')).toMatchObject({ code: 1 });
});

test('jobs graph and jobs get after an end by policy: the edges stay, and say why', async ({ task }) => {
  const { world, queue, cli } = setup(task);
  await world.scheduler();
  await queue.addGraph([
    { name: 'x', data: { fails: true }, opts: { jobId: 'a' } },
    { name: 'x', opts: { jobId: 'later', delay: HOUR } },
    { name: 'x', opts: { jobId: 'b', after: ['a', 'later'] } },
    { name: 'x', opts: { jobId: 'c', after: ['b'] } },
    { name: 'x', opts: { jobId: 'alarm', after: [{ jobId: 'later', on: 'failure' }, 'c'] } },
  ]);
  await world.worker();
  await eventually(async () => (await world.fate('alarm')) !== undefined);
  await queue.add('x', {}, { jobId: 'late', after: ['c'] });
  const why = { b: 'q:a dead', c: 'q:b cancelled', alarm: 'q:c cancelled', late: 'q:c cancelled' };
  for (const id of ['a', 'b', 'c', 'alarm', 'late']) {
    const tree = (await cli.text('jobs', 'graph', 'q', id)).trimEnd().split('\n');
    expect(tree.join('\n')).toContain('q:a [dead, as told, may run twice]');
    for (const [child, parent] of Object.entries(why)) {
      expect(tree.join('\n')).toContain(`─ q:${child} [cancelled, parent ${parent}]`);
    }
  }
  expect((await queue.getGraph('b')).get('q:b')?.after).toMatchObject([
    { jobId: 'a', outcome: 'dead' },
    { jobId: 'later', outcome: '' },
  ]);
  expect(await cli.json('jobs', 'get', 'q', 'b')).toMatchObject({
    where: 'ended',
    state: 'cancelled',
    note: 'parent q:a dead',
    after: ['q:a (dead)', 'q:later (on success)'],
  });
  await queue.cancel('later', { reason: 'not needed' });
  expect(await cli.json('jobs', 'get', 'q', 'later')).toMatchObject({ note: 'not needed' });
  // Their ids are free: what stands there now has nothing to do with it.
  await queue.add('x', {}, { jobId: 'b', delay: HOUR });
  await queue.pauseJob('b');
  await queue.resumeJob('b');
  expect(await world.stateOf('b')).toBe('scheduled');
  expect(await cli.json('jobs', 'get', 'q', 'b')).not.toHaveProperty('after');
  expect((await queue.getGraph('b')).get('q:b')).toMatchObject({ state: 'scheduled', after: [] });
  await queue.add('x', {}, { jobId: 'c', after: ['b'] });
  expect((await queue.getGraph('c')).get('q:c')?.after).toMatchObject([{ jobId: 'b', outcome: '' }]);
  expect((await world.admin().doctor()).findings.filter(({ check }) => check === 'parents')).toEqual([]);
});

test('jobs graph after the end: outcomes, and what a cut-off fan-out hides', () => {
  const node = (jobId: string, over: Partial<GraphNodeInfo>): [string, GraphNodeInfo] => [
    `q:${jobId}`,
    { queue: 'q', jobId, state: 'succeeded', after: [], children: [], more: 0, ...over },
  ];
  const nodes = new Map([
    node('root', { children: ['q:a'], more: 7 }),
    node('a', { state: 'cancelled', note: 'parent q:root dead' }),
  ]);
  expect(treeOf(nodes, 'q:root')).toEqual([
    'q:root [succeeded] ◀',
    '├─ q:a [cancelled, parent q:root dead]',
    '└─ and 7 more',
  ]);
});

test('jobs cancel, pause and reschedule by filter: shown, asked for, and told', async ({ task }) => {
  const { queue, cli } = setup(task);
  for (const id of ['a', 'b']) await queue.add('mail', {}, { jobId: id, delay: HOUR });
  await queue.add('other', {}, { jobId: 'c' });
  const dry = await cli.json('jobs', 'cancel', 'q', '--name', 'mail', '--dry-run');
  expect(dry).toMatchObject({
    applied: false,
    jobs: [
      { id: 'a', done: false },
      { id: 'b', done: false },
    ],
    more: false,
  });
  expect(await cli.text('jobs', 'pause', 'q', '--state', 'dispatched,scheduled', '--yes')).toContain(
    'paused 3 jobs of q',
  );
  expect(await cli.text('jobs', 'resume', 'q', '--text', 'B', '--yes')).toContain('resumed 1 jobs of q');
  expect(await cli.text('jobs', 'cancel', 'q', '--name', 'mail', '--yes')).toContain('cancelled 2 jobs of q');
  expect(await queue.getJobCountByTypes('delayed')).toBe(1);
  for (const args of [
    ['cancel', 'q'],
    ['cancel', 'q', 'c', '--name', 'other'],
    ['reschedule', 'q', 'c'],
    ['update', 'q', 'c'],
  ]) {
    expect((await cli.run('jobs', ...args)).code).toBe(2);
  }
});

test('jobs update: name, payload and options of a job in its queue', async ({ task }) => {
  const { queue, cli } = setup(task);
  await queue.add('x', { v: 1 }, { jobId: 'a' });
  const text = await cli.text(
    'jobs',
    'update',
    'q',
    'a',
    '--name',
    'y',
    '--data',
    '{"v":2}',
    '--opts',
    '{"attempts":4}',
  );
  expect(text).toContain('updated a in q');
  expect(await queue.getJob('a')).toMatchObject({ name: 'y', data: { v: 2 }, opts: { attempts: 4 } });
});

test('jobs update by filter: shown, then the same change to each', async ({ task }) => {
  const { queue, cli } = setup(task);
  for (const [id, name] of [
    ['a', 'old'],
    ['b', 'old'],
    ['c', 'other'],
  ] as const)
    await queue.add(name, {}, { jobId: id, delay: HOUR, attempts: 2 });
  const args = ['jobs', 'update', 'q', '--of-name', 'old', '--name', 'new', '--opts', '{"priority":3}'];
  const dry = await cli.json(...args, '--dry-run');
  expect(dry).toMatchObject({ applied: false, jobs: [{ id: 'a' }, { id: 'b' }] });
  expect((await queue.getJob('a'))?.name).toBe('old');
  expect(await cli.text(...args, '--yes')).toContain('updated 2 jobs of q');
  for (const id of ['a', 'b'])
    expect(await queue.getJob(id)).toMatchObject({ name: 'new', opts: { priority: 3, attempts: 2 } });
  expect((await queue.getJob('c'))?.name).toBe('other');
  expect((await cli.run('jobs', 'update', 'q', '--name', 'new')).code).toBe(2);
  expect((await cli.run('jobs', 'update', 'q', 'a', '--of-name', 'x', '--name', 'y')).code).toBe(2);
});

test('a worker that runs a job is asked: the command line says no more than that', async ({ task }) => {
  const { world, queue, cli } = setup(task);
  let end = () => {};
  const ended = new Promise<void>((resolve) => {
    end = resolve;
  });
  const handlers = { x: { effects: 'idempotent' as const, handle: () => ended } };
  const worker = new Worker('q', handlers, {
    connection: sharedRedisUrl(),
    prefix: world.prefix,
    concurrency: 2,
  });
  worker.on('error', () => undefined);
  onTestFinished(async () => {
    end();
    await worker.close();
  });
  for (const jobId of ['a', 'b']) await queue.add('x', {}, { jobId });
  await eventually(async () => (await queue.getActiveCount()) === 2);
  // A run can be asked once its worker has claimed it.
  await eventually(async () => (await cli.run('jobs', 'cancel', 'q', 'a')).code === 0);
  expect(await cli.text('jobs', 'cancel', 'q', 'a')).toMatch(/^asked the worker to cancel a in q/);
  expect(await cli.json('jobs', 'cancel', 'q', 'a')).toMatchObject({ done: 'asked', where: 'worker' });
  const some = await cli.text('jobs', 'cancel', 'q', '--state', 'running', '--yes');
  expect(some).toContain('asked the workers to cancel 2 jobs of q');
  expect(some).not.toContain('cancelled');
  end();
  await eventually(async () => (await queue.getCompletedCount()) === 2);
  await queue.add('x', {}, { jobId: 'later', delay: HOUR });
  expect(await cli.json('jobs', 'pause', 'q', 'later')).toMatchObject({ done: 'paused', where: 'timers' });
});
