import type { Redis } from 'ioredis';
import { beforeAll, describe, expect, test } from 'vitest';
import { Calendars } from '../../src/client/calendars.js';
import { DeadLetters } from '../../src/client/dead-letters.js';
import { Gates, QueueGate } from '../../src/client/gates.js';
import { ScheduleHandle } from '../../src/client/schedule-handle.js';
import { Schedules } from '../../src/client/schedules.js';
import * as carillon from '../../src/index.js';
import { Admin, Job, Outbox, OutboxRelay, Queue, Scheduler, Worker } from '../../src/index.js';
import { Run } from '../../src/worker/run.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { keysWith } from '../support/own-keys.js';

/** One call with what it is given as its options; a call that takes two objects is two. */
// biome-ignore lint/suspicious/noExplicitAny: what is given is wrong for any type
type Call = (options: any) => unknown;
/** A method whose arguments are no options: ids, texts, numbers; or one of BullMQ's own, or not for users. */
const NONE: readonly Call[] = [];

const prefix = namespaceFor('call-options');
const connection = sharedRedisUrl();
const DAILY = { cron: '0 3 * * *', missed: 'skip' } as const;
const SPAN = { from: '2026-01-01T00:00:00Z', to: '2026-01-02T00:00:00Z' };
const sql = { query: () => expect.fail('was sent to the database') };

let queue: Queue;
let admin: Admin;
let outbox: Outbox;
let run: Run;
let redis: Redis;

beforeAll(async () => {
  queue = new Queue('q', { connection, prefix });
  admin = new Admin({ connection, prefix });
  outbox = new Outbox();
  const worker = new Worker(
    'q',
    { take: (given) => void Object.assign(found, { run: given }) },
    { connection, prefix },
  );
  const found: { run?: Run } = {};
  await queue.schedules.upsert('s', DAILY);
  await queue.add('take', {});
  await eventually(() => expect(found.run).toBeDefined());
  await worker.close();
  run = found.run as Run;
  redis = queue.backend.shard.client;
  return async () => {
    await queue.close();
    await admin.close();
  };
});

const handle = () => queue.schedules.get('s');

/** Every public class, and every method of its own; `new` is its constructor. */
const CLASSES: readonly [{ name: string; prototype: object }, Readonly<Record<string, readonly Call[]>>][] = [
  [
    Queue,
    {
      new: [(given) => new Queue('q', given)],
      add: [(given) => queue.add('x', {}, given)],
      addJob: NONE,
      addBulk: [
        (given) => queue.addBulk([{ name: 'x', data: {} }], given),
        (given) => queue.addBulk([{ name: 'x', data: {}, opts: given }]),
      ],
      addGraph: [
        (given) => queue.addGraph([{ name: 'x' }], given),
        (given) => queue.addGraph([{ name: 'x', opts: given }]),
        (given) => queue.addGraph([given]),
      ],
      getGraph: NONE,
      upsertJobScheduler: [
        (given) => queue.upsertJobScheduler('s', given),
        (given) => queue.upsertJobScheduler('s', { every: 1000 }, given),
        (given) => queue.upsertJobScheduler('s', { every: 1000 }, { opts: given }),
      ],
      getJobScheduler: NONE,
      getJobSchedulers: NONE,
      getJobSchedulersCount: NONE,
      removeJobScheduler: NONE,
      changeDelay: [(given) => queue.changeDelay('j', '5m', given)],
      rescheduleJob: [(given) => queue.rescheduleJob('j', SPAN.from, given)],
      pauseJob: [(given) => queue.pauseJob('j', given)],
      resumeJob: [(given) => queue.resumeJob('j', given)],
      cancel: [(given) => queue.cancel('j', given)],
      updateJob: [
        (given) => queue.updateJob('j', { name: 'y' }, given),
        (given) => queue.updateJob('j', given),
        (given) => queue.updateJob('j', { opts: given }),
      ],
      changeJobs: [
        (given) => queue.changeJobs('cancel', { name: 'x' }, given),
        (given) => queue.changeJobs('cancel', given),
      ],
      close: NONE,
      disconnect: NONE,
    },
  ],
  [
    Schedules,
    {
      new: NONE,
      upsert: [
        (given) => queue.schedules.upsert('s', DAILY, {}, given),
        (given) => queue.schedules.upsert('s', DAILY, given),
        (given) => queue.schedules.upsert('s', given),
      ],
      preview: [(given) => queue.schedules.preview('s', given)],
      doubts: NONE,
      get: NONE,
      list: [(given) => queue.schedules.list(given).next()],
      change: [
        (given) => queue.schedules.change('delete', { text: 's' }, given),
        (given) => queue.schedules.change('delete', given),
      ],
      store: NONE,
    },
  ],
  [
    ScheduleHandle,
    {
      new: NONE,
      describe: NONE,
      preview: NONE,
      update: [
        (given) => handle().update({ every: '2h' }, {}, given),
        (given) => handle().update({ every: '2h' }, given),
        (given) => handle().update(given),
      ],
      pause: [(given) => handle().pause(given)],
      resume: [(given) => handle().resume(given)],
      delete: [(given) => handle().delete(given)],
      trigger: [(given) => handle().trigger(given)],
      backfill: [
        (given) => handle().backfill(given),
        (given) =>
          handle().backfill(typeof given === 'object' && given ? { ...SPAN, ...(given as object) } : given),
      ],
      runs: NONE,
    },
  ],
  [
    DeadLetters,
    {
      new: NONE,
      list: [(given) => queue.dead.list({}, given), (given) => queue.dead.list(given)],
      get: NONE,
      requeue: [(given) => queue.dead.requeue('j', given)],
      requeueAll: [
        (given) => queue.dead.requeueAll({ name: 'x' }, given),
        (given) => queue.dead.requeueAll(given),
      ],
      discard: NONE,
      discardAll: [
        (given) => queue.dead.discardAll({ name: 'x' }, given),
        (given) => queue.dead.discardAll(given),
      ],
    },
  ],
  [
    QueueGate,
    {
      new: NONE,
      set: [(given) => queue.gate.set(given)],
      get: NONE,
      clear: NONE,
      hold: NONE,
      release: NONE,
    },
  ],
  [
    Gates,
    {
      new: NONE,
      set: [(given) => admin.gates.set('q', given)],
      clear: NONE,
      hold: NONE,
      release: NONE,
      get: NONE,
      list: NONE,
      everything: NONE,
    },
  ],
  [
    Calendars,
    {
      new: NONE,
      set: [(given) => admin.calendars.set('c', '2026-12-25', given)],
      get: NONE,
      list: NONE,
      delete: [(given) => admin.calendars.delete('c', given)],
    },
  ],
  [
    Admin,
    {
      new: [(given) => new Admin(given)],
      queues: NONE,
      jobs: [(given) => admin.jobs(given)],
      quarantine: [(given) => admin.quarantine(given)],
      releaseQuarantine: NONE,
      discardQuarantine: NONE,
      history: [(given) => admin.history(given)],
      leader: NONE,
      doctor: [(given) => admin.doctor(given)],
      pauseQueue: NONE,
      resumeQueue: NONE,
      pauseAll: NONE,
      resumeAll: NONE,
      forecast: [(given) => admin.forecast(given)],
      close: NONE,
    },
  ],
  [
    Worker,
    {
      new: [
        (given) => new Worker('q', async () => undefined, given),
        (given) => new Worker('q', { x: given }, { connection, prefix }),
      ],
      run: NONE,
      close: NONE,
      extendJobLocks: NONE,
      processJob: NONE,
    },
  ],
  [
    Run,
    {
      new: NONE,
      lastCheckpoint: NONE,
      checkpoint: NONE,
      log: NONE,
      once: [(given) => run.once('k', () => expect.fail('was done'), given)],
      snooze: NONE,
    },
  ],
  [Scheduler, { new: [(given) => new Scheduler(given)], readiness: NONE, onStart: NONE, onStop: NONE }],
  [
    Outbox,
    {
      new: [(given) => new Outbox(given)],
      add: [(given) => outbox.add(sql, 'q', 'x', {}, given)],
      row: [(given) => outbox.row('q', 'x', {}, given)],
    },
  ],
  [OutboxRelay, { new: [(given) => new OutboxRelay(given)], report: NONE, onStart: NONE, onStop: NONE }],
  [Job, { new: NONE }],
];

const RUN = { idempotencyKey: 'k', fencingToken: '1' };
/** Every public function. */
const FUNCTIONS: Readonly<Record<string, readonly Call[]>> = {
  claimEffect: [(given) => carillon.claimEffect(sql, RUN, given)],
  updateFenced: [(given) => carillon.updateFenced(sql, RUN, given)],
  effectHeaders: NONE,
  effectsSql: NONE,
  outboxSql: NONE,
  isCarillonError: NONE,
  nextFireTimes: [
    (given) => carillon.nextFireTimes(DAILY, given),
    (given) => carillon.nextFireTimes(given, { after: SPAN.from }),
  ],
  parseCrontab: [(given) => carillon.parseCrontab('', given)],
};
/** Errors: what they are made with is not a user's to write. */
const ERRORS = ['CarillonError', 'UnrecoverableError'];

/** Nothing that any call takes. */
const BAD: readonly unknown[] = [
  'text',
  5,
  null,
  ['x'],
  { dryrun: true },
  { dryRun: 'yes' },
  { nonsense: 1 },
  { toString: 1 },
];

const CALLS = [
  ...CLASSES.flatMap(([{ name }, methods]) =>
    Object.entries(methods).map(([method, calls]) => [`${name}.${method}`, calls] as const),
  ),
  ...Object.entries(FUNCTIONS),
].flatMap(([name, calls]) =>
  calls.map((call, i) => [i === 0 ? name : `${name}, argument ${i}`, call] as const),
);

test('each method of each public class, and each public function, is in the table', () => {
  for (const [known, methods] of CLASSES) {
    const { prototype } = known;
    const own = Object.getOwnPropertyNames(prototype).filter(
      (name) => typeof Object.getOwnPropertyDescriptor(prototype, name)?.value === 'function',
    );
    const named = Object.keys(methods).map((name) => (name === 'new' ? 'constructor' : name));
    expect([known.name, own.sort()]).toEqual([known.name, named.sort()]);
  }
  const named = [...CLASSES.map(([{ name }]) => name), ...Object.keys(FUNCTIONS), ...ERRORS];
  const exported = Object.entries(carillon).filter(([, value]) => typeof value === 'function');
  expect(exported.map(([name]) => name).filter((name) => !named.includes(name))).toEqual([]);
});

describe('options that nobody reads are refused, and nothing is done', () => {
  test.each(CALLS)('%s', async (_, call) => {
    const before = await keysWith(redis, prefix);
    for (const bad of BAD) {
      const outcome = await (async () => call(bad))().then(
        () => 'was taken',
        (error) => error.code ?? error,
      );
      expect([bad, outcome]).toEqual([bad, 'INVALID_OPTION']);
    }
    expect(await keysWith(redis, prefix)).toEqual(before);
  });
});

test.each<[string, () => unknown, string]>([
  [
    'a change by filter',
    () => queue.schedules.change('delete', { text: 's' }, { dryrun: true } as never),
    'dryRun',
  ],
  ['a backfill', () => handle().backfill({ ...SPAN, dryrun: true } as never), 'dryRun'],
  ['an update', () => handle().update({ every: '2h' }, {}, { dryrun: true } as never), 'dryRun'],
  ['discarding', () => queue.dead.discardAll({ name: 'x' }, { dryrun: true } as never), 'dryRun'],
  ['requeueing', () => queue.dead.requeueAll({ name: 'x' }, { dryrun: true } as never), 'dryRun'],
  ['a trigger', () => handle().trigger({ overlp: 'policy' } as never), 'overlap'],
  ['a pause', () => handle().pause({ nte: 'why' } as never), 'note'],
  ['a deletion', () => handle().delete({ cancelruns: true } as never), 'cancelRuns'],
  ['a pause of a job', () => queue.pauseJob('j', { noet: 'why' } as never), 'note'],
  ['a cancel', () => queue.cancel('j', { resaon: 'why' } as never), 'reason'],
])('a slip in an option of %s is told with what was meant', async (_, call, meant) => {
  await expect(call()).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    message: expect.stringContaining(`did you mean ${meant}?`),
  });
});

test('an option of another verb is refused in a change by filter', async () => {
  await expect(queue.schedules.change('pause', { text: 's' }, { cancelRuns: true })).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    field: 'cancelRuns',
  });
});
