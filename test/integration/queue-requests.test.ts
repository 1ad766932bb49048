import { expect, test } from 'vitest';
import { Queue, type QueueOptions } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';

const HOUR = 3_600_000;

/** A queue behind a proxy that can swallow replies, so that the library sends its call again. */
async function behindProxy(task: { name: string }, options: QueueOptions = {}) {
  const { hostname: host, port } = new URL(sharedRedisUrl());
  const proxy = await FaultProxy.start({ host, port: Number(port) });
  const connection = { url: proxy.url, retryStrategy: () => 20 };
  const queue = new Queue('q', { ...options, connection, prefix: namespaceFor(task) });
  // The connection is reset on purpose.
  queue.on('error', () => undefined);
  onCleanup('queue', () => queue.close());
  await queue.add('warm-up', {}, { jobId: 'warm-up', delay: HOUR });
  return { queue, proxy };
}

test.each([
  ['into the timers', { jobId: 'lost-reply', delay: HOUR }, 'delayed'],
  ['into the queue', { jobId: 'lost-reply' }, 'waiting'],
])('a call sent again by the library adds once and answers as the first: %s', async (name, opts, state) => {
  const { queue, proxy } = await behindProxy({ name });
  const order = proxy.dropReplies(1, 'lost-reply');
  const job = await queue.add('x', { n: 1 }, opts);
  expect(order.dropped).toBe(1);
  expect(job.answer).toBe('created');
  expect(await queue.getJobState('lost-reply')).toBe(state);
  expect(await queue.getJobCounts('delayed', 'waiting')).toEqual(
    state === 'delayed' ? { delayed: 2, waiting: 0 } : { delayed: 1, waiting: 1 },
  );
});

test('a generated id is the same when the call is sent again', async ({ task }) => {
  const { queue, proxy } = await behindProxy(task);
  proxy.dropReplies(2, 'marked-payload');
  const later = await queue.add('x', { text: 'marked-payload' }, { delay: HOUR });
  const now = await queue.add('x', { text: 'marked-payload' });
  expect([later.answer, now.answer]).toEqual(['created', 'created']);
  expect(await queue.getJobState(later.id ?? '')).toBe('delayed');
  expect(await queue.getJobState(now.id ?? '')).toBe('waiting');
  expect(await queue.getJobCounts('delayed', 'waiting')).toEqual({ delayed: 2, waiting: 1 });
});

test('a bulk whose replies are lost is stored once, in several calls', async ({ task }) => {
  const { queue, proxy } = await behindProxy(task);
  const order = proxy.dropReplies(2, 'bulk-');
  const jobs = Array.from({ length: 900 }, (_, n) => ({
    name: 'x',
    data: {},
    opts: { jobId: `bulk-${n}`, delay: n % 2 ? HOUR : 0 },
  }));
  const added = await queue.addBulk(jobs);
  expect(order.dropped).toBe(2);
  expect(added.map(({ id }) => id)).toEqual(jobs.map(({ opts }) => opts.jobId));
  expect(new Set(added.map(({ answer }) => answer))).toEqual(new Set(['created']));
  expect(await queue.getJobCounts('delayed', 'waiting')).toEqual({ delayed: 451, waiting: 450 });
});

test('each change sent again has its effect once', async ({ task }) => {
  const { queue, proxy } = await behindProxy(task);
  for (const id of ['change', 'cancelled', 'promoted', 'paused']) {
    await queue.add('x', {}, { jobId: `${id}-me`, delay: HOUR });
  }
  const changes: [string, () => Promise<unknown>][] = [
    ['change-me', () => queue.changeDelay('change-me', 2 * HOUR)],
    ['change-me', () => queue.updateJob('change-me', { data: { new: true }, opts: { attempts: 2 } })],
    ['cancelled-me', () => queue.cancel('cancelled-me')],
    ['paused-me', () => queue.pauseJob('paused-me')],
    ['paused-me', () => queue.resumeJob('paused-me')],
  ];
  for (const [id, change] of changes) {
    // The second request that names the job where the first only reads it; resumeJob would fail if it ran twice.
    const order = proxy.dropReplies(2, id);
    await change();
    expect(order.dropped).toBeGreaterThan(0);
    while (order.remaining > 0) await queue.getJobState(id);
  }
  const promoted = await queue.getJob('promoted-me');
  proxy.dropReplies(1, 'promoted-me');
  await promoted?.promote();
  expect(await queue.getJob('change-me')).toMatchObject({ data: { new: true }, opts: { attempts: 2 } });
  expect(await queue.getJobState('cancelled-me')).toBe('unknown');
  expect(await queue.getJobState('promoted-me')).toBe('waiting');
  expect(await queue.getJobCounts('delayed', 'waiting')).toEqual({ delayed: 3, waiting: 1 });
});

test('requestId: the caller’s own repeat has its effect once', async ({ task }) => {
  const { queue } = await behindProxy(task);
  const first = await queue.add('x', { n: 1 }, { delay: HOUR, requestId: 'http-7' });
  const again = await queue.add('x', { n: 1 }, { delay: HOUR, requestId: 'http-7' });
  expect([again.id, again.answer, again.scheduledFor]).toEqual([first.id, 'created', first.scheduledFor]);
  const other = await queue.add('x', { n: 1 }, { delay: HOUR, requestId: 'http-8' });
  expect(other.id).not.toBe(first.id);
  const named = { jobId: 'named', delay: HOUR };
  expect((await queue.add('x', {}, { ...named, requestId: 'a' })).answer).toBe('created');
  expect((await queue.add('x', {}, { ...named, requestId: 'b' })).answer).toBe('existing');
  expect((await queue.add('x', {}, { ...named, requestId: 'a' })).answer).toBe('created');
  expect(await queue.getDelayedCount()).toBe(4);
});

test('requestId of a bulk: what is missing is added, what is there is answered', async ({ task }) => {
  const { queue } = await behindProxy(task);
  const jobs = Array.from({ length: 600 }, (_, n) => ({ name: 'x', data: { n }, opts: { delay: HOUR + n } }));
  const first = await queue.addBulk(jobs.slice(0, 250), { requestId: 'bulk' });
  const whole = await queue.addBulk(jobs, { requestId: 'bulk' });
  expect(whole.slice(0, 250).map(({ id }) => id)).toEqual(first.map(({ id }) => id));
  expect(new Set(whole.map(({ answer }) => answer))).toEqual(new Set(['created']));
  expect(await queue.getDelayedCount()).toBe(601);
});

test('ifExists: replace, sent again, is still a replacement', async ({ task }) => {
  const { queue, proxy } = await behindProxy(task);
  await queue.add('x', { v: 1 }, { jobId: 'versioned', delay: HOUR });
  proxy.dropReplies(1, 'versioned');
  const replaced = await queue.add(
    'x',
    { v: 2 },
    { jobId: 'versioned', delay: 2 * HOUR, ifExists: 'replace' },
  );
  expect(replaced.answer).toBe('replaced');
  expect(await queue.getJob('versioned')).toMatchObject({ data: { v: 2 }, delay: 2 * HOUR });
});

test('at its quota, a queue still answers repeats and what waits already', async ({ task }) => {
  const { queue, proxy } = await behindProxy(task, { maxPending: 2 });
  proxy.dropReplies(1, 'last-place');
  const last = await queue.add('x', {}, { jobId: 'last-place', delay: HOUR });
  expect(last.answer).toBe('created');
  expect((await queue.add('x', {}, { jobId: 'last-place', delay: HOUR })).answer).toBe('existing');
  const replaced = await queue.add('x', {}, { jobId: 'last-place', delay: 2 * HOUR, ifExists: 'replace' });
  expect(replaced.answer).toBe('replaced');
  await expect(queue.add('x', {}, { jobId: 'no-place', delay: HOUR })).rejects.toMatchObject({
    code: 'QUOTA',
  });
  const bulk = ['warm-up', 'last-place', 'no-place'].map((jobId) => ({
    name: 'x',
    data: {},
    opts: { jobId, delay: HOUR },
  }));
  await expect(queue.addBulk(bulk)).rejects.toMatchObject({ code: 'QUOTA' });
  expect((await queue.addBulk(bulk.slice(0, 2))).map(({ answer }) => answer)).toEqual([
    'existing',
    'existing',
  ]);
});

test('a bulk is sent in another order than it is given, and answered in its own', async ({ task }) => {
  const { queue } = await behindProxy(task);
  // More than one request's worth; every 1,000th job repeats the id of the one before it.
  const jobs = Array.from({ length: 66_000 }, (_, n) => ({
    name: 'x',
    data: { n },
    opts: { jobId: n % 1000 === 999 ? `j${n - 1}` : `j${n}`, delay: HOUR },
  }));
  const first = await queue.addBulk(jobs, { requestId: 'r' });
  expect(first.map(({ id, data }) => [id, data.n])).toEqual(
    jobs.map(({ opts, data }) => [opts.jobId, data.n]),
  );
  const answers = jobs.map((_, n) => (n % 1000 === 999 ? 'existing' : 'created'));
  expect(first.map(({ answer }) => answer)).toEqual(answers);
  expect((await queue.getJob('j998'))?.data).toEqual({ n: 998 });
  // What it answered at first, it answers again; a part of it alone is another bulk.
  const repeat = await queue.addBulk(jobs, { requestId: 'r' });
  expect(repeat.map(({ answer }) => answer)).toEqual(answers);
  const part = await queue.addBulk(jobs.slice(5000, 5010), { requestId: 'r2' });
  expect(new Set(part.map(({ answer }) => answer))).toEqual(new Set(['existing']));
  expect(await queue.getDelayedCount()).toBe(1 + 66_000 - 66);
});

test('at its quota, a queue still answers duplicates, and takes the one that replaces another', async ({
  task,
}) => {
  const { queue } = await behindProxy(task, { maxPending: 2 });
  const add = (jobId: string, deduplication: { id: string; replace?: boolean }, delay = HOUR) =>
    queue.add('x', {}, { jobId, delay, deduplication });
  expect((await add('first', { id: 'd' })).answer).toBe('created');
  await expect(add('other', { id: 'e' })).rejects.toMatchObject({ code: 'QUOTA' });
  expect(await add('again', { id: 'd' })).toMatchObject({ id: 'first', answer: 'existing' });
  expect(await add('newer', { id: 'd', replace: true })).toMatchObject({ id: 'newer', answer: 'created' });
  expect(await queue.getDelayedCount()).toBe(2);

  // The one that BullMQ holds.
  expect(await add('running', { id: 'f' }, 0)).toMatchObject({ answer: 'created' });
  expect(await add('late', { id: 'f' })).toMatchObject({ id: 'running', answer: 'existing' });
  await queue.remove('running');
  await expect(add('late', { id: 'f' })).rejects.toMatchObject({ code: 'QUOTA' });
});

test('a bulk stops at the first call that fails', async ({ task }) => {
  const { queue } = await behindProxy(task, { maxPending: 1000 });
  const jobs = Array.from({ length: 5000 }, (_, n) => ({
    name: 'x',
    data: {},
    opts: { jobId: `b${n}`, delay: HOUR },
  }));
  await expect(queue.addBulk(jobs, { requestId: 'r' })).rejects.toMatchObject({ code: 'QUOTA' });
  const stored = new Set((await queue.getDelayed(0, -1)).map(({ id }) => id));
  expect(stored.size).toBe(751);
  // Nothing of what comes after the calls that were under way together; and what stands takes no new place.
  expect(jobs.slice(1000).filter(({ opts }) => stored.has(opts.jobId))).toEqual([]);
  const missing = jobs.filter(({ opts }) => !stored.has(opts.jobId)).slice(0, 249);
  const again = jobs.filter((job) => stored.has(job.opts.jobId) || missing.includes(job));
  await expect(queue.addBulk(again, { requestId: 'r' })).resolves.toHaveLength(999);
});
