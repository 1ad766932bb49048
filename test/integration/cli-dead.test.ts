import { expect, onTestFinished, test } from 'vitest';
import { Queue, Worker } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { InProcessCli } from './cli-in-process.js';

/** B38: what JSON.parse rewrites. */
const TEXT = '{"n":9007199254740993,"f":1.0,"big":1e400}';

function open(task: { name: string }) {
  const prefix = namespaceFor(task);
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  const { client, base } = queue.backend.shard;
  const work = () => {
    const worker = new Worker(
      'q',
      {
        a: async (run) => {
          await run.checkpoint({ row: 7 });
          throw new Error('no');
        },
        safe: { effects: 'idempotent', handle: () => 1 },
      },
      { connection: sharedRedisUrl(), prefix },
    );
    worker.on('error', () => undefined);
    onTestFinished(() => worker.close(true));
    return worker;
  };
  const die = async (id: string) => {
    const worker = work();
    await eventually(async () => expect(await queue.getJobState(id)).toBe('failed'));
    await worker.close();
  };
  const stored = (id: string) => client.hget(`${base}q:${id}`, 'data');
  return { queue, die, work, stored, cli: new InProcessCli(prefix) };
}

test('B38 a payload stays as it is written, by whichever command it comes, as an argument or from a file', async ({
  task,
}) => {
  const { queue, cli, die, stored } = open(task);
  const path = cli.file('data.json', `${TEXT}\n`);
  for (const [id, ...flags] of [
    ['one', '--data', TEXT],
    ['two', '--data-file', path],
  ] as const) {
    await cli.text('jobs', 'add', 'q', 'a', '--id', id, ...flags);
    expect(await stored(id)).toBe(TEXT);
    await cli.text('jobs', 'add', 'q', 'a', '--id', `${id}-later`, '--delay', '1h', '--data', '1');
    await cli.text('jobs', 'update', 'q', `${id}-later`, ...flags);
    const { record } = await queue.backend.scripts.get('q', `${id}-later`);
    expect(record?.data).toBe(TEXT);
    await queue.add('a', {}, { jobId: `dead-${id}` });
    await die(`dead-${id}`);
    await cli.text('dead', 'requeue', 'q', `dead-${id}`, ...flags);
    expect(await stored(`dead-${id}`)).toBe(TEXT);
  }
  // A schedule's payload goes through files and comparisons: of numbers it takes those that stay what they are.
  const plain = '{"n":"9007199254740993","f":1.0, "e":1E2}';
  const plainPath = cli.file('plain.json', `${plain}\n`);
  for (const flags of [
    ['--data', plain],
    ['--data-file', plainPath],
  ]) {
    await cli.text('schedules', 'upsert', 'q', 's', '--every', '1h', '--missed', 'skip', ...flags);
    expect((await queue.backend.scripts.get('q', 's')).record?.data).toBe(plain);
  }
  const large = cli.file('large.json', JSON.stringify('x'.repeat(2_000_000)));
  expect(await cli.run('jobs', 'add', 'q', 'a', '--data-file', large)).toMatchObject({ code: 2 });
});

test('requeue and discard of one: a dry run shows what would be done, and changes nothing', async ({
  task,
}) => {
  const { queue, cli, die } = open(task);
  await queue.add('a', { v: 1 }, { jobId: 'd' });
  await die('d');
  const kept = await cli.text('dead', 'requeue', 'q', 'd', '--dry-run');
  expect(kept).toMatch(/d +a +attempts +no/);
  expect(kept).toContain('payload as it is, checkpoint kept');
  expect(kept).toContain('would have requeued 1 in q');
  const edited = await cli.text('dead', 'requeue', 'q', 'd', '--dry-run', '--data', '{"v":2}');
  expect(edited).toContain('payload {"v":2}, checkpoint dropped');
  const flags = ['--data', '{"v":2}', '--keep-checkpoint'];
  expect(await cli.text('dead', 'requeue', 'q', 'd', '--dry-run', ...flags)).toContain('checkpoint kept');
  expect(await cli.text('dead', 'discard', 'q', 'd', '--dry-run')).toContain('would have discarded 1 in q');
  expect(await cli.json('dead', 'requeue', 'q', 'd', '--dry-run')).toEqual({
    queue: 'q',
    applied: false,
    requeued: ['d'],
    skipped: [],
  });
  expect(await queue.getJobState('d')).toBe('failed');
  expect(await cli.run('dead', 'requeue', 'q', 'nobody', '--dry-run')).toMatchObject({ code: 1 });
  expect(await cli.json('dead', 'requeue', 'q', 'd', ...flags)).toMatchObject({ applied: true });
  expect(await queue.dead.get('d').catch((error) => error.code)).toBe('NOT_FOUND');
});

test('show tells the whole story of a letter, as text and as one document', async ({ task }) => {
  const { queue, cli, die } = open(task);
  await queue.add('a', {}, { jobId: 'd' });
  await die('d');
  await queue.dead.requeue('d');
  await die('d');
  const text = await cli.text('dead', 'show', 'q', 'd');
  expect(text).toMatch(/^repeats +may run twice$/m);
  expect(text).toMatch(/^starts +1, stalls 0, requeued 1$/m);
  expect(text).toMatch(/^worker +\S+ on \S+, pid \d+, token \d{16}$/m);
  expect(text).toMatch(/^checkpoint +\{"row":7\}$/m);
  expect(text).toMatch(/^died before +\S+ of attempts \(1\): no$/m);
  expect(await cli.json('dead', 'show', 'q', 'd')).toMatchObject({
    repeats: 'may run twice',
    starts: 1,
    stalls: 0,
    requeued: 1,
    worker: { pid: process.pid },
    token: expect.stringMatching(/^\d{16}$/),
    checkpoint: { row: 7 },
    earlier: [{ reason: 'attempts', attempts: 1, error: 'no' }],
  });
});

test('whether it may run twice is said wherever a job is shown', async ({ task }) => {
  const { queue, cli, die, work } = open(task);
  await queue.add('a', {}, { jobId: 'd' });
  await die('d');
  work();
  await eventually(async () => expect(await cli.text('workers', 'list')).toContain('safe'));
  await queue.schedules.upsert('s', { every: '1h', missed: 'skip' }, { name: 'a' });
  await queue.add('safe', {}, { jobId: 'p', delay: 3_600_000 });
  await queue.add('a', {}, { jobId: 'c', after: ['p'] });
  await queue.pause();
  await queue.add('a', {}, { jobId: 'sent' });
  await queue.add('a', {}, { jobId: 'e', after: ['sent'] });
  const said = { repeats: 'may run twice' };
  expect(await cli.json('dead', 'list', 'q')).toMatchObject({ dead: [said] });
  expect(await cli.text('dead', 'list', 'q')).toContain('may run twice');
  expect(await queue.dead.get('d')).toMatchObject(said);
  expect(await cli.json('schedules', 'list', 'q')).toMatchObject({ schedules: [said] });
  expect(await cli.text('schedules', 'list', 'q')).toContain('may run twice');
  expect(await queue.schedules.get('s').describe()).toMatchObject(said);
  expect(await cli.json('schedules', 'describe', 'q', 's')).toMatchObject(said);
  const { nodes } = await cli.json<{ nodes: { jobId: string }[] }>('jobs', 'graph', 'q', 'c');
  expect(nodes.find(({ jobId }) => jobId === 'c')).toMatchObject({ name: 'a', ...said });
  const tree = await cli.text('jobs', 'graph', 'q', 'c');
  expect(tree).toMatch(/q:p \[scheduled, due in .*, repeats do nothing new \(idempotent\)\]/);
  expect(tree).toContain('q:c [waiting for 1 of 1, may run twice]');
  // What BullMQ has is known by its hash.
  expect(await cli.text('jobs', 'graph', 'q', 'e')).toMatch(/q:sent \[dispatched, may run twice\]/);
});

test('workers drain takes the beginning of an id, and refuses one that several have', async ({ task }) => {
  const { cli, work } = open(task);
  const worker = work();
  const own = ({ id }: Worker) => id.replace('carillon-', '');
  const list = async () => (await cli.json<{ workers: { draining: boolean }[] }>('workers', 'list')).workers;
  await eventually(async () => expect(await list()).toHaveLength(1));
  expect(await cli.text('workers', 'drain', own(worker).slice(0, 6))).toContain(worker.id);
  expect(await list()).toMatchObject([{ draining: true }]);
  expect(await cli.json('workers', 'drain', worker.id.slice(0, 17), '--undo')).toEqual({
    id: worker.id,
    draining: false,
  });
  await eventually(async () => expect(await list()).toMatchObject([{ draining: false }]));
  const twin = work();
  await eventually(async () => expect(await list()).toHaveLength(2));
  const { code, stderr } = await cli.run('workers', 'drain', 'carillon-');
  expect(code).toBe(2);
  expect(stderr).toContain(worker.id);
  expect(stderr).toContain(twin.id);
  expect(await cli.run('workers', 'drain', '')).toMatchObject({ code: 1 });
  expect(await cli.run('workers', 'drain', 'nobody')).toMatchObject({ code: 1 });
  expect(await list()).not.toContainEqual(expect.objectContaining({ draining: true }));
});

test('a filter that means no dead letter is told as that, not as a dry run', async ({ task }) => {
  const { cli, queue, die } = open(task);
  await queue.add('a', {}, { jobId: 'd' });
  await die('d');
  for (const verb of ['requeue', 'discard']) {
    expect(await cli.run('dead', verb, 'q', '--name', 'ok', '--yes')).toEqual({
      code: 0,
      stdout: '',
      stderr: 'the filter means no dead letter\n',
    });
  }
  expect(await cli.text('dead', 'discard', 'q', '--all', '--yes')).toContain('discarded 1 in q');
});

test('what does not wait cannot be promoted: CONFLICT, which for a dead letter names dead requeue', async ({
  task,
}) => {
  const { cli, queue, die } = open(task);
  await queue.add('a', {}, { jobId: 'd' });
  await die('d');
  for (const verb of ['promote', 'cancel', 'pause']) {
    expect(await cli.run('jobs', verb, 'q', 'd')).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/\(CONFLICT\)\..*`carillon dead requeue`/),
    });
  }
  await queue.add('a', {}, { jobId: 'c', delay: 3_600_000 });
  await queue.cancel('c');
  expect(await cli.run('jobs', 'promote', 'q', 'c')).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('it has ended (cancelled) (CONFLICT)'),
  });
  await queue.add('a', {}, { jobId: 'w' });
  expect(await cli.run('jobs', 'promote', 'q', 'w')).toMatchObject({
    code: 1,
    stderr:
      'error: the job does not wait for its time: it is waiting (CONFLICT). Nothing needs to be done.\n',
  });
});
