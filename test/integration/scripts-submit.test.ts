import { Redis } from 'ioredis';
import { expect, onTestFinished, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import { FLAGS } from '../../src/redis/record.js';
import { aJob, aSchedule } from '../support/builders.js';
import { eventually } from '../support/eventually.js';
import { sharedRedisUrl } from '../support/namespace.js';
import { INC, NOW, Spine } from '../support/spine.js';
import { changesOf, readState } from '../support/spine-state.js';

const stored = {
  kind: 'job',
  at: NOW + 3_600_000,
  state: 'scheduled',
  flags: 0,
  inc: INC,
  ver: INC,
  timestamp: NOW,
  priority: 0,
  lifo: false,
  requests: 1,
  name: 'send',
  data: '{"to":"ann"}',
  opts: '',
};

test('created: a record, its timer, its count; nothing else', async ({ task }) => {
  const spine = await Spine.virtual(task);
  const { result, changes } = await changesOf(spine, () => spine.submit('q', [aJob('a')]));
  expect(result).toEqual([{ answer: 'created', jobId: 'a', scheduledFor: NOW + 3_600_000 }]);
  expect(changes).toEqual({
    'jobs q:a': stored,
    'due q:a': NOW + 3_600_000,
    'queues q:scheduled': '1',
    'meta inc': String(INC),
  });
});

test('created near: lowers the head of its bucket and wakes the leader', async ({ task }) => {
  const spine = await Spine.virtual(task);
  const woken: string[] = [];
  const subscriber = new Redis(sharedRedisUrl());
  onTestFinished(() => subscriber.disconnect());
  subscriber.on('message', (_channel, at) => woken.push(at));
  await subscriber.subscribe(spine.keys.wake);
  const { changes } = await changesOf(spine, () =>
    spine.submit('q', [aJob('a', { time: NOW + 1000 }), aJob('b', { time: NOW + 60_000 })]),
  );
  expect(changes).toMatchObject({
    [`heads ${bucketOf('q:a')}`]: NOW + 1000,
    [`heads ${bucketOf('q:b')}`]: NOW + 60_000,
  });
  await eventually(() => expect(woken).toEqual([String(NOW + 1000)]));
});

test('all that a record can hold of a one-time job', async ({ task }) => {
  const spine = await Spine.virtual(task);
  await spine.submit('q', [
    aJob('a', {
      time: NOW + 5,
      name: 'é',
      data: '[]',
      opts: '{"attempts":3}',
      priority: 7,
      lifo: true,
      timestamp: 42,
    }),
    aJob('b', { chosen: false, time: NOW + 6 }),
  ]);
  expect(await readState(spine)).toMatchObject({
    'jobs q:a': {
      ...stored,
      at: NOW + 5,
      flags: FLAGS.priority | FLAGS.timestamp,
      name: 'é',
      data: '[]',
      opts: '{"attempts":3}',
      priority: 7,
      lifo: true,
      timestamp: 42,
    },
    'jobs q:b': { ...stored, at: NOW + 6, flags: FLAGS.generated, inc: INC + 1, ver: INC + 1, requests: 0 },
  });
});

test('due now: goes into the BullMQ queue in the call itself, I12 its payload untouched', async ({
  task,
}) => {
  const spine = await Spine.virtual(task);
  const data =
    '{"a":[],"o":{},"x":[[]],"n":9007199254740991,"m":1700000000123456,"f":0.1,"s":"\\u0000 é 😀"}';
  const { result, changes } = await changesOf(spine, () =>
    spine.submit('q', [aJob('a', { time: NOW, data, opts: '{"attempts":3,"m":1700000000123456}' })]),
  );
  expect(result).toEqual([{ answer: 'created', jobId: 'a', scheduledFor: NOW }]);
  expect(changes).toEqual({
    'q:a': {
      name: 'send',
      data,
      opts: `{"attempts":3,"m":1700000000123456,"carillon":"${spine.namespace} ${NOW} ${INC}"}`,
      timestamp: String(NOW),
      delay: '0',
      priority: '0',
    },
    'q:wait': ['a'],
    'q:marker 0': 0,
    'q:events': [
      { event: 'added', jobId: 'a', name: 'send' },
      { event: 'waiting', jobId: 'a' },
    ],
    'q:meta opts.maxLenEvents': '10000',
    'queues q:scheduled': '0',
    'spent:1 q:a': { at: NOW, how: 'run', answers: [1] },
    'meta inc': String(INC),
    'meta spent': '1',
    'meta spentAt': String(NOW),
  });
});

test('existing: pending keeps what it has, but remembers the request', async ({ task }) => {
  const spine = await Spine.virtual(task);
  await spine.submit('q', [aJob('a')]);
  const { result, changes } = await changesOf(spine, () => spine.submit('q', [aJob('a', { time: NOW + 1 })]));
  expect(result).toEqual([{ answer: 'existing', jobId: 'a', scheduledFor: NOW + 3_600_000 }]);
  expect(changes).toEqual({
    'jobs q:a': { requests: 2 },
    'q:events': [{ event: 'duplicated', jobId: 'a' }],
    'q:meta opts.maxLenEvents': '10000',
    'meta inc': String(INC + 1),
  });
});

test('existing: BullMQ holds a hash under the id', async ({ task }) => {
  const spine = await Spine.virtual(task);
  await spine.client.hset(spine.bull('q', 'a'), { name: 'other', timestamp: 1000, delay: 500 });
  const { result, changes } = await changesOf(spine, () => spine.submit('q', [aJob('a')]));
  expect(result).toEqual([{ answer: 'existing', jobId: 'a', scheduledFor: 1500 }]);
  expect(changes).toEqual({
    'q:events': [{ event: 'duplicated', jobId: 'a' }],
    'q:meta opts.maxLenEvents': '10000',
    'meta inc': String(INC),
  });
});

test('replaced: the new job in place of the old one', async ({ task }) => {
  const spine = await Spine.virtual(task);
  await spine.submit('q', [aJob('a', { priority: 3 })]);
  const { result, changes } = await changesOf(spine, () =>
    spine.submit('q', [aJob('a', { time: NOW + 7_200_000, replace: true, data: '1' })]),
  );
  expect(result).toEqual([{ answer: 'replaced', jobId: 'a', scheduledFor: NOW + 7_200_000 }]);
  expect(changes).toEqual({
    'jobs q:a': {
      at: NOW + 7_200_000,
      data: '1',
      priority: 0,
      flags: 0,
      inc: INC + 1,
      ver: INC + 1,
      requests: 2,
    },
    'due q:a': NOW + 7_200_000,
    'meta inc': String(INC + 1),
  });
});

test('fired: an id that ran within the duplicate window, until its end', async ({ task }) => {
  const spine = await Spine.virtual(task);
  await spine.submit('q', [aJob('a', { time: NOW })]);
  await spine.client.del(spine.bull('q', 'a'));
  await spine.setClock(NOW + 3_599_999);
  const inWindow = await changesOf(spine, () => spine.submit('q', [aJob('a')]));
  expect(inWindow.result).toEqual([{ answer: 'fired', jobId: 'a', scheduledFor: NOW }]);
  expect(Object.keys(inWindow.changes)).toEqual(['meta inc']);
  const noWindow = await spine.submit('q', [aJob('a', { window: 0 })]);
  expect(noWindow[0]?.answer).toBe('created');
  await spine.jobs.cancel('q', 'a', '', 'r');
  await spine.submit('q', [aJob('b', { time: NOW })]);
  await spine.client.del(spine.bull('q', 'b'));
  await spine.setClock(NOW + 3_599_999 + 3_600_000);
  expect(await spine.submit('q', [aJob('b')])).toMatchObject([{ answer: 'created' }]);
});

test('ID_IN_USE: a schedule has the id; the others of the bulk stand', async ({ task }) => {
  const spine = await Spine.virtual(task);
  await spine.schedules.upsert('q', 's', aSchedule(NOW), 'r1');
  const { changes } = await changesOf(spine, async () => {
    await expect(spine.submit('q', [aJob('a'), aJob('s'), aJob('b')])).rejects.toMatchObject({
      code: 'ID_IN_USE',
      given: '"s"',
    });
  });
  expect(Object.keys(changes).sort()).toEqual([
    'due q:a',
    'due q:b',
    'jobs q:a',
    'jobs q:b',
    'meta inc',
    'queues q:scheduled',
  ]);
});

test('QUOTA and OUT_OF_RANGE refuse the call whole: no key is written', async ({ task }) => {
  const spine = await Spine.virtual(task);
  await spine.submit('q', [aJob('a'), aJob('b')]);
  const { changes } = await changesOf(spine, async () => {
    await expect(spine.submit('q', [aJob('c')], { maxPending: 2 })).rejects.toMatchObject({
      code: 'QUOTA',
      retryable: true,
    });
    const far = aJob('d', { time: 253402300800000 - NOW, relative: true });
    await expect(spine.submit('q', [aJob('c'), far])).rejects.toMatchObject({ code: 'INVALID_OPTION' });
  });
  expect(changes).toEqual({});
  expect(await spine.submit('q', [aJob('c', { time: NOW })], { maxPending: 2 })).toMatchObject([
    { answer: 'created' },
  ]);
});

test('WRONG_LAYOUT: a namespace that was laid out for another prefix refuses, and nothing is written', async ({
  task,
}) => {
  const spine = await Spine.virtual(task);
  const other = Spine.open({ url: sharedRedisUrl(), namespace: spine.namespace, prefix: 'other' });
  await expect(other).rejects.toMatchObject({ code: 'WRONG_LAYOUT', field: 'prefix' });
  await spine.client.hset(spine.keys.meta, 'layout', 'somebody else’s');
  const { changes } = await changesOf(spine, async () => {
    await expect(spine.submit('q', [aJob('a')])).rejects.toMatchObject({ code: 'WRONG_LAYOUT' });
  });
  expect(changes).toEqual({});
});

test('a broken queue: what is due now is kept as parked (I1)', async ({ task }) => {
  const spine = await Spine.virtual(task);
  await spine.client.set(spine.bull('q', 'wait'), 'x');
  const { result, changes } = await changesOf(spine, () => spine.submit('q', [aJob('a', { time: NOW - 5 })]));
  expect(result).toEqual([{ answer: 'created', jobId: 'a', scheduledFor: NOW - 5 }]);
  expect(changes).toEqual({
    'jobs q:a': { ...stored, at: NOW - 5, state: 'parked' },
    'parked q:a': NOW - 5,
    'queues q:parked': '1',
    'queues q:broken': `${NOW}|wait is a string, BullMQ needs a list`,
    'meta inc': String(INC),
  });
});

test('TIME that went back gives no incarnation twice', async ({ task }) => {
  const spine = await Spine.virtual(task);
  await spine.submit('q', [aJob('a')]);
  await spine.submit('q', [aJob('b')]);
  await spine.setClock(NOW - 5000);
  await spine.submit('q', [aJob('c')]);
  expect(await readState(spine)).toMatchObject({
    'jobs q:b': { inc: INC + 1 },
    'jobs q:c': { inc: INC + 2 },
  });
});
