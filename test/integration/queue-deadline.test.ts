import { describe, expect, onTestFinished, test } from 'vitest';
import { Admin, Queue, Scheduler } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { InProcessCli } from './cli-in-process.js';

const HOUR = 3_600_000;

function open(task: { name: string }) {
  const prefix = namespaceFor(task);
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  const admin = new Admin({ connection: sharedRedisUrl(), prefix });
  onTestFinished(() => admin.close());
  return { prefix, queue, admin };
}

async function schedule(prefix: string): Promise<void> {
  const scheduler = new Scheduler({ redis: sharedRedisUrl(), prefix });
  onTestFinished(() => scheduler.stop());
  await scheduler.start();
}

describe('deadline', () => {
  test('a job that no scheduler served until then does not run; the history says so', async ({ task }) => {
    const { prefix, queue, admin } = open(task);
    const deadline = Date.now() + 300;
    await queue.add('x', {}, { jobId: 'late', delay: 20, deadline });
    await queue.add('x', {}, { jobId: 'any', delay: 20 });
    await eventually(() => Date.now() > deadline + 50);
    await schedule(prefix);
    await eventually(async () => (await queue.getJobState('any')) === 'waiting');
    await eventually(async () => (await queue.getJobState('late')) === 'unknown');
    expect(await queue.getWaitingCount()).toBe(1);
    expect(await admin.history()).toMatchObject([{ job: 'q:late', what: 'skipped', reason: 'expired' }]);
    const cli = new InProcessCli(prefix);
    expect(await cli.text('jobs', 'get', 'q', 'late')).toMatch(/where +ended\nstate +expired\n/);
    expect(await cli.json('jobs', 'history', 'q', 'late')).toMatchObject({
      history: [{ job: 'q:late', what: 'skipped', reason: 'expired' }],
    });
    expect(await cli.text('jobs', 'history')).toMatch(/\n(now|\S+ ago) +q:late +skipped +expired +2\S+Z$/m);
    const { findings } = await admin.doctor({ pause: 300 });
    expect(findings.filter(({ severity }) => severity === 'error')).toEqual([]);
  });

  test('it stands in the options, in the timers and in BullMQ, and may be given again with them', async ({
    task,
  }) => {
    const { prefix, queue } = open(task);
    const deadline = Date.now() + HOUR;
    await queue.add('x', {}, { jobId: 'a', delay: HOUR / 2, deadline: new Date(deadline) });
    const waiting = await queue.getJob('a');
    expect(waiting?.opts).toMatchObject({ deadline });
    await waiting?.changeDelay(HOUR / 4);
    await waiting?.updateData({ n: 1 });
    expect((await queue.getJob('a'))?.opts).toMatchObject({ deadline });
    await queue.changeDelay('a', 1);
    await schedule(prefix);
    await eventually(async () => (await queue.getJobState('a')) === 'waiting');
    const run = await queue.getJob('a');
    expect(run?.opts).toMatchObject({ deadline });
    await queue.add('y', {}, { ...run?.opts, delay: 60_000, jobId: 'b' });
    expect((await queue.getJob('b'))?.opts).toMatchObject({ deadline });
  });

  test('jobs add --deadline', async ({ task }) => {
    const { prefix, queue } = open(task);
    const cli = new InProcessCli(prefix);
    const deadline = '2031-01-31T10:00:00Z';
    await cli.text(
      'jobs',
      'add',
      'q',
      'x',
      '--id',
      'a',
      '--at',
      '2031-01-31T09:00:00Z',
      '--deadline',
      deadline,
    );
    expect((await queue.getJob('a'))?.opts).toMatchObject({ deadline: Date.parse(deadline) });
    const { code, stderr } = await cli.run('jobs', 'add', 'q', 'x', '--at', deadline, '--deadline', deadline);
    expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining('must lie after the time') });
  });

  test('due now, with time left: it goes into the queue in the same call', async ({ task }) => {
    const { queue } = open(task);
    await queue.add('x', {}, { jobId: 'a', deadline: Date.now() + HOUR });
    expect(await queue.getJobState('a')).toBe('waiting');
  });

  test.for([
    [{ at: 2000, deadline: 2000 }, 'deadline'],
    [{ deadline: 'tomorrow' }, 'deadline'],
    [{ deadline: '2031-01-01T00:00:00' }, 'deadline'],
    [{ deadline: Number.NaN }, 'deadline'],
  ] as const)('refused: %j', async ([opts, field]) => {
    const { queue } = open({ name: `refused ${JSON.stringify(opts)}` });
    await expect(queue.add('x', {}, opts)).rejects.toMatchObject({ code: 'INVALID_OPTION', field });
  });

  test('belongs to one job: no default, and none for the runs of a schedule', async ({ task }) => {
    const { queue } = open(task);
    const deadline = Date.now() + HOUR;
    expect(() => new Queue('q', { defaultJobOptions: { deadline } })).toThrow(/deadline belongs to one job/);
    const template = { opts: { deadline } };
    await expect(
      queue.schedules.upsert('s', { every: '1h', missed: 'skip' }, template),
    ).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      field: 'template.opts.deadline',
    });
  });
});
