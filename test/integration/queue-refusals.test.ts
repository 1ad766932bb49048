import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type JobOptions, Queue, type QueueOptions } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { startRedis } from '../support/redis-server.js';

// A server of its own: "no key is written" is DBSIZE, and the whole of it.
let redis: Redis;
let queue: Queue;

beforeAll(async () => {
  const server = await startRedis();
  redis = new Redis(server.url);
  queue = new Queue('q', { connection: server.url, maxPayload: 100, skipMetasUpdate: true });
  await queue.waitUntilReady();
  await queue.add('first', {}, { delay: 3_600_000, jobId: 'first' });
});

afterAll(async () => {
  await queue.close();
  redis.disconnect();
});

/** A refusal as a plain object, so that nothing of it is left out of a comparison. */
type Refused = Record<'code' | 'message' | 'field', string>;

/** `add`, `addBulk` and `addGraph` refuse it alike, the last two with its place; Redis holds what it held. */
async function refusal(name: unknown, data: unknown, opts: object): Promise<unknown> {
  const before = [await redis.dbsize(), await queue.getJobCounts()];
  const errors: Refused[] = [];
  const good = { name: 'x', data: {}, opts: { delay: 5000 } };
  for (const call of [
    () => queue.add(name as string, data, opts),
    () => queue.addBulk([good, { name: name as string, data, opts }]),
    () => queue.addGraph([good, { name: name as string, data, opts }]),
  ]) {
    await call().then(
      () => expect.fail('was accepted'),
      (error) => errors.push({ ...error, name: error.name, message: error.message }),
    );
  }
  expect([await redis.dbsize(), await queue.getJobCounts()]).toEqual(before);
  const [alone, ...placed] = errors as [Refused, Refused, Refused];
  const beside = /^(name|data|opts)\b/.test(alone.field) ? '' : 'opts.';
  for (const [i, list] of ['jobs', 'nodes'].entries()) {
    const field = `${list}[1].${beside}${alone.field}`;
    expect(placed[i]).toEqual({ ...alone, field, message: expect.stringContaining(field) });
  }
  return alone;
}

/** Values that JSON cannot carry need a name for the title. */
const shown = (value: unknown) =>
  typeof value === 'bigint' ? `${value}n` : Object.is(value, -0) ? '-0' : value;

// B03; the host's clock stands for now.
const badNumbers: unknown[] = [
  '1200',
  Number.NaN,
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY,
  null,
  '',
  [],
  true,
  new Date('x'),
  1e300,
  8_640_000_000_000_001,
  1.5,
  10n,
  -1,
  {},
];

test.each(badNumbers.map((value) => [shown(value), value]))(
  'B03: delay %s is refused',
  async (_title, delay) => {
    expect(await refusal('x', {}, { delay })).toMatchObject({
      name: 'CarillonError',
      code: 'INVALID_OPTION',
      field: 'delay',
      given: expect.any(String),
      todo: expect.any(String),
      retryable: false,
    });
  },
);

test.each(
  [
    ...badNumbers.filter((value) => value !== true),
    '2027-01-31',
    '2027-01-31T09:12:00',
    '2027-02-30T00:00:00Z',
  ].map((value) => [shown(value), value]),
)('B03: at %s is refused', async (_title, at) => {
  expect(await refusal('x', {}, { at })).toMatchObject({ code: 'INVALID_OPTION', field: 'at' });
});

test('B03: -0 is 0, and null never is', async () => {
  const job = await queue.add('x', {}, { delay: -0, jobId: 'minus-zero' });
  expect(await queue.getJobState('minus-zero')).toBe('waiting');
  expect(job.answer).toBe('created');
  await queue.remove('minus-zero');
});

// B48, and BullMQ's own key names.
const badIds: unknown[] = [
  '123',
  '0',
  '-5',
  '0:a:b',
  'a:b',
  'a:b:c:d',
  'repeat:x:1',
  'de:a:b',
  'a:b:lock',
  'completed',
  'wait',
  'active',
  'delayed',
  'failed',
  'events',
  'meta',
  'id',
  'pc',
  'marker',
  'prioritized',
  'stalled',
  'limiter',
  'waiting-children',
  'metrics:completed:data',
  '',
  '\ud800',
  'a'.repeat(1025),
  'é'.repeat(513),
  'tick@1700000000000',
  'tick@1700000000000+now',
  5,
  null,
  {},
];

test.each(badIds.map((id) => [typeof id === 'string' ? id.slice(0, 30) : id, id]))(
  'B48: jobId %j is refused when it is added',
  async (_title, jobId) => {
    expect(await refusal('x', {}, { jobId, delay: 1000 })).toMatchObject({
      code: 'INVALID_ID',
      field: 'jobId',
    });
  },
);

const badOptions: [title: string, opts: object, error: object][] = [
  ['priority above', { priority: 2_097_152 }, { field: 'priority' }],
  ['priority below', { priority: -1 }, { field: 'priority' }],
  ['priority in pieces', { priority: 1.5 }, { field: 'priority' }],
  ['priority as text', { priority: '1' }, { field: 'priority' }],
  ['attempts endless', { attempts: Number.POSITIVE_INFINITY }, { field: 'attempts' }],
  ['attempts null', { attempts: null }, { field: 'attempts' }],
  ['backoff as text', { backoff: '5s' }, { field: 'backoff' }],
  ['backoff without type', { backoff: { delay: 5 } }, { field: 'backoff.type' }],
  ['backoff NaN', { backoff: Number.NaN }, { field: 'backoff' }],
  ['backoff jitter', { backoff: { type: 'fixed', delay: 5, jitter: 2 } }, { field: 'backoff.jitter' }],
  [
    'backoff, unknown',
    { backoff: { type: 'fixed', dealy: 5 } },
    { field: 'backoff.dealy', todo: 'Write delay.' },
  ],
  ['lifo as number', { lifo: 1 }, { field: 'lifo' }],
  ['removeOnComplete as text', { removeOnComplete: 'yes' }, { field: 'removeOnComplete' }],
  ['removeOnFail, empty', { removeOnFail: {} }, { field: 'removeOnFail' }],
  ['removeOnFail age NaN', { removeOnFail: { age: Number.NaN } }, { field: 'removeOnFail.age' }],
  ['keepLogs negative', { keepLogs: -1 }, { field: 'keepLogs' }],
  ['timestamp 0', { timestamp: 0 }, { field: 'timestamp' }],
  ['timestamp as Date', { timestamp: new Date() }, { field: 'timestamp' }],
  ['timestamp and delay past the end', { timestamp: 253_402_300_799_999, delay: 1 }, { field: 'delay' }],
  ['deduplication without id', { deduplication: { ttl: 5 } }, { field: 'deduplication.id' }],
  ['deduplication ttl', { deduplication: { id: 'd', ttl: -1 } }, { field: 'deduplication.ttl' }],
  ['telemetry', { telemetry: { metadata: 5 } }, { field: 'telemetry.metadata' }],
  ['at and delay', { at: 1_800_000_000_000, delay: 5 }, { field: 'at' }],
  ['ifExists', { ifExists: 'drop', jobId: 'a' }, { field: 'ifExists' }],
  ['ifExists without an id', { ifExists: 'replace' }, { field: 'ifExists' }],
  ['duplicateWindow', { duplicateWindow: '2h' }, { code: 'INVALID_DURATION', field: 'duplicateWindow' }],
  [
    'duplicateWindow without unit',
    { duplicateWindow: '5' },
    { code: 'INVALID_DURATION', field: 'duplicateWindow' },
  ],
  ['an unknown option', { atempts: 5 }, { field: 'atempts', todo: 'Write attempts.' }],
  ['an option of Bull 3', { preventParsingData: true }, { field: 'preventParsingData' }],
  ['parent', { parent: { id: 'p', queue: 'bull:q' } }, { code: 'UNSUPPORTED', field: 'parent' }],
  ['failParentOnFailure', { failParentOnFailure: true }, { code: 'UNSUPPORTED' }],
  ['repeat', { repeat: { every: 5 } }, { code: 'UNSUPPORTED', field: 'repeat' }],
  ['debounce', { debounce: { id: 'd', ttl: 5 } }, { code: 'UNSUPPORTED', field: 'debounce' }],
  [
    'keepLastIfActive',
    { deduplication: { id: 'd', keepLastIfActive: true } },
    { code: 'UNSUPPORTED', field: 'deduplication.keepLastIfActive' },
  ],
];

test.each(badOptions)('options: %s is refused', async (_title, opts, error) => {
  expect(await refusal('x', {}, { delay: 1000, ...opts })).toMatchObject({
    code: 'INVALID_OPTION',
    todo: expect.stringMatching(/\w/),
    ...error,
  });
});

const cycle: { self?: unknown } = {};
cycle.self = cycle;

test.each([
  ['a bigint', { n: 5n }, /BigInt/],
  ['a cycle', cycle, /circular/i],
  ['a function', () => undefined, /JSON/],
  ['a symbol', Symbol('s'), /JSON/],
  ['more than maxPayload', 'x'.repeat(99), /100 bytes/],
  ['more than maxPayload in UTF-8', 'é'.repeat(50), /100 bytes/],
])('payload: %s is refused', async (_title, data, message) => {
  expect(await refusal('x', data, { delay: 1000 })).toMatchObject({
    code: 'INVALID_OPTION',
    field: 'data',
    message: expect.stringMatching(message),
  });
});

test('payload: sizeLimit refuses, as in BullMQ', async () => {
  expect(await refusal('x', { a: 'xxxx' }, { sizeLimit: 11 })).toMatchObject({
    code: 'INVALID_OPTION',
    field: 'data',
  });
  expect(await refusal('x', 'x'.repeat(99), { sizeLimit: 0 })).toMatchObject({
    message: expect.stringMatching(/100/),
  });
});

test.each([
  ['a number', 5],
  ['half a surrogate pair', '\udc00'],
  ['256 bytes', 'n'.repeat(256)],
])('name: %s is refused', async (_title, name) => {
  expect(await refusal(name, {}, {})).toMatchObject({ code: 'INVALID_ID', field: 'name' });
});

test.each(['onParentFailed', 'onParentLost'])('%s without `after` is refused', async (key) => {
  expect(await refusal('x', {}, { [key]: 'hold' })).toMatchObject({
    field: key,
    message: expect.stringContaining('after'),
  });
});

test('policies for parents may be a queue’s defaults: its jobs without parents are no worse for it', async () => {
  const connection = redis;
  const options = { connection, skipMetasUpdate: true };
  expect(() => new Queue('d', { ...options, defaultJobOptions: { onParentLost: 'wait' as never } })).toThrow(
    expect.objectContaining({ field: 'defaultJobOptions.onParentLost' }),
  );
  const other = new Queue('d', { ...options, defaultJobOptions: { onParentFailed: 'hold' } });
  onCleanup('queue', () => other.close());
  expect((await other.add('x', {}, { jobId: 'a', delay: 3_600_000 })).answer).toBe('created');
  await other.addBulk([{ name: 'x', data: {}, opts: { jobId: 'b', after: ['a'] } }]);
  await other.cancel('a');
  await other.cancel('b').catch(() => undefined);
});

test('a bulk is refused whole before any of it is sent; requestId is the bulk’s', async () => {
  const before = await redis.dbsize();
  const bad = { name: 'x', data: {}, opts: { delay: 1000, requestId: 'r' } };
  await expect(queue.addBulk([bad])).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    field: 'jobs[0].opts.requestId',
  });
  const many = Array.from({ length: 2000 }, (_, n) => ({
    name: 'x',
    data: {},
    opts: { delay: 1000, jobId: `m${n}` },
  }));
  many.push({ name: 'x', data: {}, opts: { delay: Number.NaN, jobId: 'last' } });
  await expect(queue.addBulk(many)).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    field: 'jobs[2000].opts.delay',
  });
  await expect(queue.addBulk([], { requestId: '' })).rejects.toMatchObject({ field: 'requestId' });
  const good = { name: 'x', data: {}, opts: { delay: 1000, jobId: 'good' } };
  for (const [jobs, field] of [
    [null, 'jobs'],
    ['x', 'jobs'],
    [[good, null], 'jobs[1]'],
    [[good, 'x'], 'jobs[1]'],
  ] as const) {
    await expect(queue.addBulk(jobs as never)).rejects.toMatchObject({ code: 'INVALID_OPTION', field });
  }
  expect(await redis.dbsize()).toBe(before);
  expect(await queue.getDelayedCount()).toBe(1);
});

test('QUOTA: one more than maxPending; due jobs need no place', async () => {
  const tight = new Queue('tight', { connection: redis, maxPending: 2, skipMetasUpdate: true });
  onCleanup('queue', () => tight.close());
  await tight.addBulk(
    [1, 2].map((n) => ({ name: 'x', data: {}, opts: { delay: 3_600_000, jobId: `t${n}` } })),
  );
  const before = await redis.dbsize();
  await expect(tight.add('x', {}, { delay: 5000 })).rejects.toMatchObject({ code: 'QUOTA', retryable: true });
  expect(await redis.dbsize()).toBe(before);
  expect((await tight.add('x', {}, { jobId: 'now' })).answer).toBe('created');
  await tight.cancel('t1');
  expect((await tight.add('x', {}, { delay: 5000 })).answer).toBe('created');
});

const badQueues: [title: string, name: unknown, options: unknown, error: object][] = [
  ['no name', '', {}, { code: 'INVALID_ID', field: 'name' }],
  ['a colon', 'a:b', {}, { code: 'INVALID_ID', field: 'name' }],
  ['half a surrogate pair', '\ud800', {}, { code: 'INVALID_ID', field: 'name' }],
  ['null for options', 'q', null, { field: 'options' }],
  ['an unknown option', 'q', { conection: {} }, { field: 'conection', todo: 'Write connection.' }],
  ['namespace in braces', 'q', { namespace: '{a}' }, { field: 'namespace' }],
  ['namespace with a quote', 'q', { namespace: 'a"b' }, { field: 'namespace' }],
  ['namespace with a backslash', 'q', { namespace: 'a\\b' }, { field: 'namespace' }],
  ['namespace with a control character', 'q', { namespace: 'a\u0001' }, { field: 'namespace' }],
  ['namespace with half a surrogate pair', 'q', { namespace: '\ud800' }, { field: 'namespace' }],
  ['prefix of nothing', 'q', { prefix: '' }, { field: 'prefix' }],
  ['maxPending 0', 'q', { maxPending: 0 }, { field: 'maxPending' }],
  ['maxPayload above', 'q', { maxPayload: 16_000_001 }, { field: 'maxPayload' }],
  [
    'duplicateWindow above',
    'q',
    { duplicateWindow: '2h' },
    { code: 'INVALID_DURATION', field: 'duplicateWindow' },
  ],
  ['keyPrefix', 'q', { connection: { keyPrefix: 'k' } }, { field: 'connection.keyPrefix' }],
  ['a connection of nothing', 'q', { connection: 5 }, { field: 'connection' }],
  ['another driver', 'q', { connection: { sendCommand: 1 } }, { code: 'UNSUPPORTED', field: 'connection' }],
  [
    'a bad default option',
    'q',
    { defaultJobOptions: { atempts: 1 } },
    { field: 'defaultJobOptions.atempts' },
  ],
];

test.each(badQueues)('constructor: %s is refused, and nothing is opened', (_title, name, options, error) => {
  expect(() => new Queue(name as string, options as QueueOptions)).toThrow(
    expect.objectContaining({ code: 'INVALID_OPTION', ...error }),
  );
});

test('B48: every accepted id comes back as it was, and none meets another', async () => {
  const other = new Queue('a', { connection: redis, skipMetasUpdate: true });
  onCleanup('queue', () => other.close());
  const ids = [
    '007',
    'a:b:c',
    '日本語',
    '😀',
    '\u00e9',
    'e\u0301',
    ' ',
    'x',
    'y'.repeat(1000),
    '\u0000',
    'a\nb',
    '__proto__',
    'constructor',
    '*',
    'order@5x',
    '12a',
    '-',
    'Completed',
  ];
  const jobs = ids.map((jobId, n): { name: string; data: object; opts: JobOptions } => ({
    name: 'x',
    data: { n },
    opts: { jobId, delay: 3_600_000 + n },
  }));
  const added = await other.addBulk(jobs);
  expect(added.map(({ id, answer }) => [id, answer])).toEqual(ids.map((id) => [id, 'created']));
  expect(await other.getRanges(['delayed'], 0, -1, true)).toEqual(ids);
  const read = await Promise.all(ids.map((id) => other.getJob(id)));
  expect(read.map((job) => [job?.id, job?.data.n])).toEqual(ids.map((id, n) => [id, n]));
  await other.promoteJobs();
  expect((await other.getWaiting()).map(({ id }) => id)).toEqual(ids);
});
