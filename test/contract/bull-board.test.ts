import { createBullBoard } from '@bull-board/api';
import { BullMQAdapter } from '@bull-board/api/bullMQAdapter';
import { type Queue as BullQueue, Worker } from 'bullmq';
import { expect, test } from 'vitest';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { answersOf, connection, twins } from './twins.js';

const HOUR = 3_600_000;
type Board = Parameters<typeof createBullBoard>[0];
type Server = Board['serverAdapter'];
type Route = Parameters<Server['setApiRoutes']>[0][number];
type Request = NonNullable<Parameters<Route['handler']>[0]>;

/** bull-board's HTTP API without the HTTP: a request in, status and body out, each body held against its schema. */
function boardOf(queue: BullQueue) {
  let routes: Route[] = [];
  let queues: Request['queues'] = new Map();
  const server: Server = {
    setQueues: (given) => {
      queues = given;
      return server;
    },
    setApiRoutes: (given) => {
      routes = given;
      return server;
    },
    setViewsPath: () => server,
    setStaticPath: () => server,
    setEntryRoute: () => server,
    setErrorHandler: () => server,
    setUIConfig: () => server,
  };
  createBullBoard({
    queues: [new BullMQAdapter(queue)],
    serverAdapter: server,
    options: { uiBasePath: '/no/ui', validateResponses: true },
  });
  return async (method: string, path: string, body: object = {}, query: object = {}) => {
    for (const { method: given, route, handler } of routes) {
      const params = given === method ? match(String(route), path) : undefined;
      if (params === undefined) continue;
      const uiConfig = { showWorkers: true };
      return handler({ queues, uiConfig, query: { ...query }, params, body, headers: {} });
    }
    throw new Error(`bull-board has no ${method} ${path}`);
  };
}

function match(route: string, path: string): Record<string, string> | undefined {
  const [wanted, given] = [route.split('/'), path.split('/')];
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [i, part] of wanted.entries()) {
    if (part.startsWith(':')) params[part.slice(1)] = given[i] ?? '';
    else if (part !== given[i]) return undefined;
  }
  return params;
}

/**
 * Times differ between the twins by a few ms, only ours tell when a job is due, and BullMQ repeats id and delay among
 * the options of a job that has left the delayed set.
 */
function withoutTimes(value: unknown): unknown {
  return JSON.parse(
    JSON.stringify(value, (key, inner) => {
      if (key === 'timestamp' || key === 'scheduledFor' || key === 'answer') return undefined;
      if (key === 'opts') return { ...inner, jobId: undefined, delay: undefined };
      return key === 'delay' && typeof inner === 'number' ? Math.round(inner / 60_000) : inner;
    }),
  );
}

async function fill(queue: BullQueue): Promise<void> {
  await queue.addBulk(
    [1, 2, 3].map((n) => ({ name: `n${n}`, data: { n }, opts: { jobId: `d${n}`, delay: n * HOUR } })),
  );
  await queue.add('now', { x: 1 }, { jobId: 'w1' });
}

type Call = (call: ReturnType<typeof boardOf>) => Promise<unknown>;

const pages: Record<string, Call> = {
  'the overview': (call) => call('get', '/api/queues', {}, { activeQueue: 'q', page: 1, jobsPerPage: 10 }),
  'a page of delayed jobs': (call) =>
    call('get', '/api/queues', {}, { activeQueue: 'q', status: 'delayed', page: 2, jobsPerPage: 2 }),
  'one job': (call) => call('get', '/api/queues/q/d1'),
  'a job that is not there': (call) => call('get', '/api/queues/q/none'),
  'logs of a waiting job': (call) => call('get', '/api/queues/q/d1/logs'),
  'another delay': async (call) => [
    await call('patch', '/api/queues/q/d1/delay', { runAt: Date.now() + 5 * HOUR }),
    await call('get', '/api/queues/q/d1'),
  ],
  'another priority': async (call) => [
    await call('patch', '/api/queues/q/d1/priority', { priority: 9 }),
    await call('get', '/api/queues/q/d1'),
  ],
  'other data': async (call) => [
    await call('patch', '/api/queues/q/d1/update-data', { jobData: { new: [] } }),
    await call('get', '/api/queues/q/d1'),
  ],
  'promote one': async (call) => [
    await call('put', '/api/queues/q/d2/promote'),
    await call('get', '/api/queues/q/d2'),
  ],
  'promote all': async (call) => [
    await call('put', '/api/queues/q/promote'),
    await call('get', '/api/queues', {}, { activeQueue: 'q', status: 'waiting', page: 1, jobsPerPage: 9 }),
  ],
  'remove one': async (call) => [
    await call('put', '/api/queues/q/d2/clean'),
    await call('get', '/api/queues/q/d2'),
  ],
  'clean delayed': async (call) => [
    await call('put', '/api/queues/q/clean/delayed'),
    await call('get', '/api/queues', {}, { activeQueue: 'q', page: 1, jobsPerPage: 9 }),
  ],
  'empty and obliterate': async (call) => [
    await call('put', '/api/queues/q/empty'),
    await call('put', '/api/queues/q/obliterate', {}),
    await call('get', '/api/queues', {}, { activeQueue: 'q', page: 1, jobsPerPage: 9 }),
  ],
  'pause and resume': async (call) => [
    await call('put', '/api/queues/q/pause'),
    await call('get', '/api/queues', {}, { activeQueue: 'q', page: 1, jobsPerPage: 9 }),
    await call('put', '/api/queues/q/resume'),
  ],
  'add a delayed job': (call) =>
    call('post', '/api/queues/q/add', {
      name: 'new',
      data: { a: 1 },
      options: { delay: 60_000, jobId: 'a' },
    }),
  'default options, metrics, rate limit': async (call) => [
    await call('get', '/api/queues/q/default-job-options'),
    await call('get', '/api/queues/q/metrics', {}, { start: 0, end: 10, type: 'completed' }),
    await call('get', '/api/queues/q/rate-limit'),
  ],
};

test.each(Object.entries(pages))(
  'bull-board shows and changes our queue as BullMQ’s: %s',
  async (name, act) => {
    const pair = await twins({ name }, { defaultJobOptions: { attempts: 2 } });
    const { stock, ours } = await answersOf(pair, async (queue) => {
      await fill(queue);
      return withoutTimes(await act(boardOf(queue)));
    });
    expect(ours).toEqual(stock);
    expect(JSON.stringify(stock)).not.toMatch(/threw|INTERNAL_SERVER_ERROR/);
  },
);

test('bull-board retries a failed run of ours, and shows its worker', async ({ task }) => {
  const { ours } = await twins(task);
  const call = boardOf(ours);
  let fail = true;
  const worker = new Worker(
    'q',
    async () => {
      if (fail) throw new Error('first');
    },
    { connection: connection(), prefix: ours.opts.prefix },
  );
  onCleanup('worker', () => worker.close());
  await ours.add('x', {}, { jobId: 'a' });
  await eventually(async () => (await ours.getJobState('a')) === 'failed');
  fail = false;
  expect(await call('put', '/api/queues/q/a/retry')).toMatchObject({ status: 204 });
  await eventually(async () => (await ours.getJobState('a')) === 'completed');
  const workers = await call('get', '/api/queues/q/workers');
  expect((workers.body as { workers: unknown[] }).workers).toHaveLength(1);
});

test('bull-board lists, runs and removes our schedules', async ({ task }) => {
  const { ours } = await twins(task);
  const call = boardOf(ours);
  await ours.upsertJobScheduler(
    'nightly',
    { pattern: '30 2 * * *', tz: 'Europe/London' },
    { name: 'n', data: { a: 1 } },
  );
  const listed = await call('get', '/api/job-schedulers');
  expect(listed.body).toMatchObject({
    schedulers: [{ id: 'nightly', name: 'n', pattern: '30 2 * * *', tz: 'Europe/London', queueName: 'q' }],
  });
  expect(await call('put', '/api/queues/q/job-schedulers/nightly/run')).toMatchObject({ status: 200 });
  expect(await ours.getWaiting()).toMatchObject([{ name: 'n', data: { a: 1 } }]);
  expect(await call('put', '/api/queues/q/job-schedulers/nightly/remove')).toMatchObject({ status: 204 });
  expect(await ours.getJobSchedulersCount()).toBe(0);
});
