import { type Queue as BullQueue, QueueEvents, Worker } from 'bullmq';
import { expect, test } from 'vitest';
import type { Queue } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { keysWith } from '../support/own-keys.js';
import { answersOf, connection, eventsOf, twins } from './twins.js';

const HOUR = 3_600_000;
const ids = (jobs: { id?: string | undefined }[]) => jobs.map((job) => job.id);

/** `d1` to `d4` are due in so many hours, `w1` waits for a worker. */
async function fill(queue: BullQueue): Promise<void> {
  await queue.addBulk(
    [1, 2, 3, 4].map((n) => ({ name: 'later', data: { n }, opts: { jobId: `d${n}`, delay: n * HOUR } })),
  );
  await queue.add('now', {}, { jobId: 'w1' });
}

async function job(queue: BullQueue, id: string) {
  const found = await queue.getJob(id);
  if (found === undefined) throw new Error(`${id} is not there`);
  return found;
}

const calls: Record<string, (queue: BullQueue) => Promise<unknown>> = {
  changeDelay: async (queue) => {
    const first = await job(queue, 'd1');
    await first.changeDelay(2.5 * HOUR);
    return [first.delay, ids(await queue.getDelayed()), await first.getState()];
  },
  'changeDelay of a job that waits for a worker': async (queue) => (await job(queue, 'w1')).changeDelay(HOUR),
  'changeDelay of a job that is gone': async (queue) => {
    const first = await job(queue, 'd1');
    await first.remove();
    await first.changeDelay(HOUR);
  },
  getState: async (queue) => [
    await (await job(queue, 'd1')).getState(),
    await (await job(queue, 'w1')).getState(),
  ],
  isInState: async (queue) => {
    const first = await job(queue, 'd1');
    return [
      await first.isDelayed(),
      await first.isWaiting(),
      await first.isActive(),
      await first.isCompleted(),
      await first.isFailed(),
      await first.isWaitingChildren(),
      await (await job(queue, 'w1')).isDelayed(),
    ];
  },
  'job.remove': async (queue) => {
    await (await job(queue, 'd2')).remove();
    await (await job(queue, 'w1')).remove();
    return queue.getJobCounts();
  },
  'queue.remove': async (queue) => [
    await queue.remove('d2'),
    await queue.remove('d2'),
    await queue.remove('none'),
    await queue.getJobCounts(),
  ],
  promote: async (queue) => {
    const second = await job(queue, 'd2');
    await second.promote();
    return [
      second.delay,
      await second.getState(),
      ids(await queue.getWaiting()),
      (await job(queue, 'd2')).delay,
    ];
  },
  'promote twice': async (queue) => {
    const second = await job(queue, 'd2');
    await second.promote();
    await second.promote();
  },
  updateData: async (queue) => {
    await (await job(queue, 'd1')).updateData({ n: 'new', list: [] });
    await (await job(queue, 'w1')).updateData('text');
    return [(await job(queue, 'd1')).data, (await job(queue, 'w1')).data];
  },
  'updateData of a job that is gone': async (queue) => {
    const first = await job(queue, 'd1');
    await first.remove();
    await first.updateData({});
  },
  'changePriority before it is due': async (queue) => {
    const first = await job(queue, 'd1');
    await first.changePriority({ priority: 5 });
    const waiting = (await job(queue, 'd1')).priority;
    await first.promote();
    return [waiting, ids(await queue.getPrioritized()), await first.getState()];
  },
  'changePriority of a waiting job': async (queue) => {
    await (await job(queue, 'w1')).changePriority({ priority: 5 });
    return queue.getCountsPerPriority([5]);
  },
  promoteJobs: async (queue) => {
    await queue.promoteJobs();
    return [ids(await queue.getWaiting()), await queue.getDelayedCount()];
  },
  'promoteJobs, a few at a time': async (queue) => {
    await queue.promoteJobs({ count: 3 });
    return [ids(await queue.getWaiting()), await queue.getDelayedCount()];
  },
  drain: async (queue) => {
    await queue.drain();
    return queue.getJobCounts();
  },
  'drain with delayed': async (queue) => {
    await queue.drain(true);
    return queue.getJobCounts();
  },
  'clean delayed': async (queue) => [
    (await queue.clean(0, 100, 'delayed')).sort(),
    await queue.getJobCounts(),
  ],
  'clean delayed, younger than the grace': async (queue) => [
    await queue.clean(HOUR, 100, 'delayed'),
    await queue.getDelayedCount(),
  ],
  'clean delayed, some': async (queue) => [
    (await queue.clean(0, 3, 'delayed')).length,
    await queue.getDelayedCount(),
  ],
  'clean delayed, without a limit': async (queue) => [
    (await queue.clean(0, 0, 'delayed')).length,
    await queue.getDelayedCount(),
  ],
  'clean what waits': async (queue) => [await queue.clean(0, 100, 'wait'), await queue.getJobCounts()],
  obliterate: async (queue) => {
    await queue.obliterate();
    return [await queue.getJobCounts(), await queue.getJobState('d1'), await queue.isPaused()];
  },
  'obliterate, a few at a time': async (queue) => {
    await queue.obliterate({ count: 2 });
    return queue.getJobCounts();
  },
  'logs and children of a waiting job': async (queue) => {
    const first = await job(queue, 'd1');
    await first.clearLogs();
    return [
      await first.getDependencies(),
      await first.getDependenciesCount(),
      await first.getChildrenValues(),
    ];
  },
  'retry of a job that has not failed': async (queue) => (await job(queue, 'd1')).retry(),
  'pause and resume': async (queue) => {
    await queue.pause();
    await queue.add('now', {}, { jobId: 'w2' });
    const paused = [await queue.isPaused(), await queue.getJobCounts()];
    await queue.resume();
    return [paused, await queue.isPaused(), await queue.getJobCounts()];
  },
};

test.each(Object.entries(calls))('as BullMQ: %s', async (name, call) => {
  const pair = await twins({ name });
  await fill(pair.stock);
  await fill(pair.ours);
  const { stock, ours } = await answersOf(pair, call);
  expect(ours).toEqual(stock);
  expect(stock).not.toEqual(expect.stringContaining('not there'));
});

test('obliterate refuses a queue with active jobs, and has touched nothing', async ({ task }) => {
  const pair = await twins(task);
  const { stock, ours } = await answersOf(pair, async (queue) => {
    await fill(queue);
    const worker = new Worker('q', null, { connection: connection(), prefix: queue.opts.prefix });
    onCleanup('worker', () => worker.close());
    await worker.getNextJob('token');
    return queue.obliterate();
  });
  expect(ours).toEqual(stock);
  expect(ours).toBe('threw Cannot obliterate queue with active jobs');
  expect(await pair.ours.getDelayedCount()).toBe(4);
  await pair.ours.obliterate({ force: true });
  expect(await pair.ours.getJobCounts()).toMatchObject({ delayed: 0, active: 0, waiting: 0 });
});

test('obliterate and drain leave no key of ours but what remembers ended ids', async ({ task }) => {
  const { ours } = await twins(task);
  await fill(ours);
  await ours.add('later', {}, { delay: HOUR, deduplication: { id: 'd' } });
  await ours.schedules.upsert('s', { cron: '0 0 1 1 *', missed: 'skip' });
  await ours.drain(true);
  expect(await ours.getJobSchedulersCount()).toBe(1);
  await ours.obliterate();
  expect(await ours.getJobSchedulersCount()).toBe(0);
  const { client, keys } = ours.backend.shard;
  const left = await keysWith(client, keys.namespace);
  const kinds = left.map((key) => key.slice(keys.tag.length + 1).replace(/^\d+:/, ''));
  const expected = /^(spent|spent-short):\d+$|^(meta|queues|heads|history)$/;
  expect(kinds.filter((kind, i) => left[i] !== keys.layout && !expected.test(kind))).toEqual([]);
});

test('a removed, drained or cancelled id is free again at once', async ({ task }) => {
  const { ours } = await twins(task);
  for (const end of [
    () => ours.remove('a'),
    () => ours.drain(true),
    () => ours.clean(0, 0, 'delayed'),
    () => ours.cancel('a', { reason: 'test' }),
    () => ours.obliterate(),
  ]) {
    expect((await ours.add('x', {}, { jobId: 'a', delay: HOUR })).answer).toBe('created');
    await end();
    expect(await ours.getJob('a')).toBeUndefined();
  }
});

test('progress and logs of a job that has not fired are refused, and say so', async ({ task }) => {
  const { ours } = await twins(task);
  const added = await ours.add('x', {}, { delay: HOUR });
  await expect(added.updateProgress(5)).rejects.toMatchObject({ code: 'UNSUPPORTED', field: 'jobId' });
  await expect(added.log('row')).rejects.toMatchObject({ code: 'UNSUPPORTED', field: 'jobId' });
  await added.promote();
  await added.updateProgress(5);
  expect(await added.log('row')).toBe(1);
  expect((await ours.getJob(added.id ?? ''))?.progress).toBe(5);
});

test('methods that take a job never touch a schedule of that id', async ({ task }) => {
  const { ours } = await twins(task);
  await ours.schedules.upsert('s', { cron: '0 0 1 1 *', missed: 'skip' }, { data: { of: 'schedule' } });
  expect(await ours.remove('s')).toBe(1);
  await ours.drain(true);
  await ours.clean(0, 0, 'delayed');
  await ours.promoteJobs();
  for (const act of [
    () => ours.cancel('s'),
    () => ours.pauseJob('s'),
    () => ours.resumeJob('s'),
    () => ours.updateJob('s', { data: 1 }),
    () => ours.changeDelay('s', 5),
  ]) {
    await expect(act()).rejects.toMatchObject({ code: 'UNSUPPORTED' });
  }
  const info = await ours.schedules.get('s').describe();
  expect(info).toMatchObject({ state: 'scheduled', template: { data: { of: 'schedule' } } });
});

test('waitUntilFinished waits through the timers', async ({ task }) => {
  const { ours } = await twins(task);
  const events = new QueueEvents('q', { connection: connection(), prefix: ours.opts.prefix });
  onCleanup('queue events', () => events.close());
  const added = await ours.add('x', { n: 20 }, { delay: HOUR, jobId: 'a' });
  const finished = added.waitUntilFinished(events, 20_000);
  await events.waitUntilReady();
  const worker = new Worker('q', async ({ data }) => data.n + 1, {
    connection: connection(),
    prefix: ours.opts.prefix,
  });
  onCleanup('worker', () => worker.close());
  await (await job(ours, 'a')).promote();
  expect(await finished).toBe(21);
  expect(await added.waitUntilFinished(events)).toBe(21);
});

test('removed and waiting are told to QueueEvents', async ({ task }) => {
  const { ours } = await twins(task);
  const log = await eventsOf(ours);
  await fill(ours);
  await (await job(ours, 'd1')).remove();
  await (await job(ours, 'd2')).promote();
  await log.waitFor('waiting', 'd2');
  expect(log.seen.filter(({ jobId }) => jobId === 'd1')).toEqual([
    { event: 'removed', jobId: 'd1', prev: 'delayed' },
  ]);
  expect(log.names('d2')).toEqual(['added', 'waiting']);
  expect(log.names('d3')).toEqual([]);
});

test('the local events of a queue: waiting, removed, cleaned, paused, resumed', async ({ task }) => {
  const pair = await twins(task);
  const heard = async (queue: BullQueue) => {
    const names: string[] = [];
    for (const name of ['waiting', 'removed', 'cleaned', 'paused', 'resumed'] as const) {
      queue.on(name, (...args: unknown[]) => {
        const [first] = args as [{ id?: string } | undefined];
        names.push(`${name} ${typeof first === 'object' ? (first?.id ?? first) : first}`);
      });
    }
    await queue.add('x', {}, { jobId: 'a', delay: HOUR });
    await queue.remove('a');
    await queue.add('x', {}, { jobId: 'b', delay: HOUR });
    await (await job(queue, 'b')).remove();
    await queue.add('x', {}, { jobId: 'c', delay: HOUR });
    await queue.clean(0, 10, 'delayed');
    await queue.pause();
    await queue.resume();
    return names;
  };
  const { stock, ours } = await answersOf(pair, heard);
  expect(ours).toEqual(stock);
  expect(ours).toHaveLength(8);
});

test('a job that is cancelled while it is popped ends in one place', async ({ task }) => {
  const { ours } = await twins(task);
  const outcomes = await raceCancel(ours, 200);
  expect(outcomes).toEqual([]);
});

/** Cancels and promotes each of `count` jobs at once; the ids whose end does not fit the answers. */
async function raceCancel(queue: Queue, count: number): Promise<string[]> {
  const wrong: string[] = [];
  await Promise.all(
    Array.from({ length: count }, async (_, n) => {
      const id = `race-${n}`;
      await queue.add('x', {}, { jobId: id, delay: HOUR });
      const calls = [queue.cancel(id), queue.getJob(id).then((found) => found?.promote())];
      if (n % 2 === 0) calls.reverse();
      await Promise.allSettled(calls);
      const state = await queue.getJobState(id);
      const cancelled = (await Promise.allSettled(calls))[n % 2 === 0 ? 1 : 0]?.status === 'fulfilled';
      if (state !== (cancelled ? 'unknown' : 'waiting')) wrong.push(`${id} ${state} ${cancelled}`);
    }),
  );
  await eventually(async () => (await queue.getDelayedCount()) === 0);
  return wrong;
}
