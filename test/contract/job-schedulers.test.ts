import { Worker } from 'bullmq';
import { describe, expect, onTestFinished, test } from 'vitest';
import { Scheduler } from '../../src/index.js';
import { eventually } from '../support/eventually.js';
import { sharedRedisUrl } from '../support/namespace.js';
import { spawnNode } from '../support/node-process.js';
import { answersOf, connection, type Twins, twins } from './twins.js';

type Options = Parameters<Twins['stock']['upsertJobScheduler']>[1];
type Template = Parameters<Twins['stock']['upsertJobScheduler']>[2];

const FAR = Date.parse('2090-01-01T00:00:00Z');
const yearly = { pattern: '0 4 1 1 *', tz: 'UTC' };

/** Writes to both, and gives what both tell of it. */
async function told(both: Twins, options: Options, template?: Template) {
  return answersOf(both, async (queue) => {
    await queue.upsertJobScheduler('s', options, template);
    return queue.getJobScheduler('s');
  });
}

/** BullMQ writes no zone down that it was not given, and takes the host's; ours is UTC then, and not written either. */
describe('getJobScheduler', () => {
  test.each<[string, Options, Template]>([
    ['a pattern', yearly, undefined],
    ['a pattern without a zone, on a host in UTC', { pattern: '0 4 1 1 *' }, undefined],
    ['another zone', { pattern: '0 4 1 1 *', tz: 'Asia/Tokyo' }, { name: 'n' }],
    ...['0 9 */2 * 1', '0 9 1 * */2', '0 9 */10 * 0', '30 0 9 */9 * MON', '0 9 15 * */1', '0 8 * * 1/2', '0 8 * * MON/2', '0 8 13 * 3/4', '0 8 * * 7/2', '0 8 * * */7', '0 8 ?/9 * ?'].map(
      (pattern) => [`days that BullMQ reads otherwise: ${pattern}`, { pattern, tz: 'UTC' }, undefined] as [string, Options, Template],
    ),
    ['six fields', { pattern: '30 0 4 1 1 *', tz: 'UTC' }, { data: {} }],
    ['an interval from a start date', { every: 60_000, startDate: FAR }, { name: 'n', data: { a: [1, 'ü'] } }],
    ['start, end and limit', { ...yearly, startDate: new Date(FAR), endDate: '2095-01-01T00:00:00Z', limit: 3 }, undefined],
    ['data alone', yearly, { data: ['x', 1.5] as never }],
    ['options', yearly, { opts: { attempts: 3, backoff: { type: 'exponential', delay: 5 }, removeOnComplete: true, removeOnFail: { count: 5, age: 60 }, priority: 7 } }],
    ['options of a short name in Redis', yearly, { opts: { keepLogs: 5, stackTraceLimit: 3, lifo: true, sizeLimit: 900 } }],
  ])('%s', async (what, options, template) => {
    const both = await twins({ name: what });
    const { stock, ours } = await told(both, options, template);
    expect(stock).toMatchObject({ key: 's' });
    expect(ours).toEqual(stock);
  }); // biome-ignore format: a table

  test('a backoff given as a number is told as each run will have it', async ({ task }) => {
    const { ours } = await told(await twins(task), yearly, { opts: { attempts: 2, backoff: 500 } });
    expect(ours).toMatchObject({
      template: { opts: { attempts: 2, backoff: { type: 'fixed', delay: 500 } } },
    });
  });

  test('the queue’s own options of jobs are told too', async ({ task }) => {
    const both = await twins(task, { defaultJobOptions: { attempts: 5, removeOnComplete: 10 } });
    const { stock, ours } = await told(both, yearly, { opts: { attempts: 2 } });
    expect(ours).toEqual(stock);
  });

  test('of an interval: its offset and first tick are those of the moment it was made', async ({ task }) => {
    const both = await twins(task);
    const { stock, ours } = (await told(both, { every: 3_600_000 })) as { stock: Told; ours: Told };
    expect(Object.keys(ours).sort()).toEqual(Object.keys(stock).sort());
    for (const { next, offset } of [stock, ours]) {
      expect(Math.abs(next - Date.now())).toBeLessThan(5000);
      expect(offset).toBe(next % 3_600_000);
    }
  });

  test('an offset: the next slot of a grid from 1970', async ({ task }) => {
    const both = await twins(task);
    const hour = 3_600_000;
    const offset = (Date.now() + hour / 2) % hour;
    const { stock, ours } = await told(both, { every: hour, offset: Math.floor(offset) });
    expect(ours).toEqual(stock);
  });

  test('after an update that changes the pattern, the payload, or nothing', async ({ task }) => {
    const both = await twins(task);
    await told(both, yearly, { name: 'n', data: { a: 1 } });
    for (const [options, template] of [
      [
        { ...yearly, pattern: '0 5 1 1 *' },
        { name: 'n', data: { a: 1 } },
      ],
      [
        { ...yearly, pattern: '0 5 1 1 *' },
        { name: 'm', data: { a: 2 } },
      ],
      [
        { ...yearly, pattern: '0 5 1 1 *' },
        { name: 'm', data: { a: 2 } },
      ],
    ] as [Options, Template][]) {
      const { stock, ours } = await told(both, options, template);
      expect(ours).toEqual(stock);
    }
  });

  test('of an unknown id, and of one that was removed', async ({ task }) => {
    const both = await twins(task);
    const removed = await answersOf(both, async (queue) => {
      await queue.upsertJobScheduler('s', yearly);
      return [
        await queue.getJobScheduler('nobody'),
        await queue.removeJobScheduler('s'),
        await queue.removeJobScheduler('s'),
        await queue.getJobScheduler('s'),
      ];
    });
    expect(removed.ours).toEqual(removed.stock);
  });
});

interface Told {
  next: number;
  offset: number;
}

test('getJobSchedulers: order, pages and count', async ({ task }) => {
  const both = await twins(task);
  const pages: [number?, number?, boolean?][] = [
    [],
    [0, -1, true],
    [0, 1, true],
    [1, 2, true],
    [1, 1],
    [-2, -1, true],
    [0, -2],
    [5, 9],
  ];
  const listed = await answersOf(both, async (queue) => {
    for (const [id, month] of [['b', 3], ['c', 1], ['a', 2], ['d', 4]] as const)
      await queue.upsertJobScheduler(id, { pattern: `0 0 1 ${month} *`, tz: 'UTC', startDate: FAR - 1 });
    const found = await Promise.all(pages.map((page) => queue.getJobSchedulers(...page)));
    return { found, count: await queue.getJobSchedulersCount() };
  });
  expect(listed.stock).toMatchObject({ count: 4 });
  expect(listed.ours).toEqual(listed.stock);
}); // biome-ignore format: a table

describe('what both refuse', () => {
  test.each<[string, Options]>([
    ['no times', {}],
    ['pattern and every', { ...yearly, every: 1000 }],
    ['an end in the past', { ...yearly, endDate: '2020-01-01T00:00:00Z' }],
    ['a pattern that is none', { pattern: 'x', tz: 'UTC' }],
  ])('%s', async (what, options) => {
    const { stock, ours } = await told(await twins({ name: what }), options);
    expect(stock).toMatch(/^threw /);
    expect(ours).toMatch(/^threw /);
  });
});

test.each([
  ['0 9 */2 * 1 99', 'INVALID_CRON', /^pattern "0 9 \*\/2 \* 1 99": .*99/],
  ['0 25 */2 * 1', 'INVALID_CRON', /^pattern "0 25 \*\/2 \* 1", which is cron "0 25 1-31\/2 \* 1": hour: 25/],
  ['*/60 * * * *', 'INVALID_CRON', /^pattern "\*\/60 \* \* \* \*": minute: the step/],
  ['0 9 * * 1/7', 'INVALID_CRON', /^pattern "0 9 \* \* 1\/7", which is cron .*1-7\/7/],
])('a pattern that is refused is told of as it is written: %s', async (pattern, code, message) => {
  const { ours } = await twins({ name: pattern });
  const refused = ours.upsertJobScheduler('s', { pattern, tz: 'UTC' });
  await expect(refused).rejects.toMatchObject({ code, field: 'pattern', given: JSON.stringify(pattern), message: expect.stringMatching(message), todo: expect.stringMatching(/\w/) });
}); // biome-ignore format: a table

test('a pattern that needs other words here writes nothing when it is written again', async ({ task }) => {
  const { ours } = await twins(task);
  const write = async () => {
    await ours.upsertJobScheduler('s', { pattern: '0 9 */2 * 1', tz: 'UTC' });
    return ours.schedules.get('s').describe();
  };
  const first = await write();
  expect(first?.definition).toMatchObject({ cron: ['0 9 1-31/2 * 1'], bullmqPattern: '0 9 */2 * 1' });
  expect(await write()).toEqual(first);
  await ours.upsertJobScheduler('s', { pattern: '0 9 * * 1', tz: 'UTC' });
  expect((await ours.schedules.get('s').describe())?.definition).not.toHaveProperty('bullmqPattern');
});

describe('what we refuse, saying what to do instead', () => {
  test.each<[string, object, string]>([
    ['immediately of a pattern', { ...yearly, immediately: true }, 'UNSUPPORTED'],
    ['a count of iterations', { ...yearly, count: 5 }, 'UNSUPPORTED'],
    ['a key', { ...yearly, key: 'x' }, 'UNSUPPORTED'],
    ['a misspelt option', { ...yearly, limmit: 5 }, 'INVALID_OPTION'],
    ['a start without a zone', { ...yearly, startDate: '2090-01-01T00:00' }, 'INVALID_OPTION'],
    ['an offset beside a start', { every: 1000, offset: 5, startDate: FAR }, 'INVALID_OPTION'],
    ['null', null as never, 'INVALID_OPTION'],
  ])('%s', async (what, options, code) => {
    const { ours } = await twins({ name: what });
    await expect(ours.upsertJobScheduler('s', options as never)).rejects.toMatchObject({
      code,
      todo: expect.stringMatching(/\w/),
    });
    expect(await ours.getJobSchedulersCount()).toBe(0);
  });

  test('what asks for nothing is no option: immediately beside every, or false', async ({ task }) => {
    const { ours } = await twins(task);
    await ours.upsertJobScheduler('a', { every: 60_000, immediately: true });
    await ours.upsertJobScheduler('b', { ...yearly, immediately: false });
    expect(await ours.getJobSchedulersCount()).toBe(2);
  });

  test('a pattern without a zone, on a host whose zone is not UTC (I11)', async () => {
    const child = spawnNode(
      new URL('./host-zone-scheduler.ts', import.meta.url).pathname,
      [sharedRedisUrl()],
      {
        TZ: 'America/New_York',
      },
    );
    expect(JSON.parse(await child.waitForLine(/^\{/))).toEqual({
      pattern: 'INVALID_OPTION tz',
      withZone: 'accepted',
      every: 'accepted',
    });
    expect((await child.exited).code).toBe(0);
  });
});

test('an every starts at once, and runs as often as its limit says, on both sides', async ({ task }) => {
  const both = await twins(task);
  const scheduler = new Scheduler({ redis: sharedRedisUrl(), prefix: both.ours.opts.prefix as string });
  onTestFinished(() => scheduler.stop());
  await scheduler.start();
  const ran = { stock: [] as number[], ours: [] as number[] };
  for (const side of ['stock', 'ours'] as const) {
    const worker = new Worker('q', async () => ran[side].push(Date.now()), {
      connection: connection(),
      prefix: both[side].opts.prefix as string,
    });
    onTestFinished(() => worker.close());
    await worker.waitUntilReady();
  }
  const started = Date.now();
  await answersOf(both, (queue) => queue.upsertJobScheduler('s', { every: 1500, limit: 3 }));
  await eventually(() => ran.stock.length === 3 && ran.ours.length === 3, { timeout: 20_000 });
  for (const times of Object.values(ran)) expect((times[0] ?? 0) - started).toBeLessThan(1400);
  await eventually(async () => (await both.ours.getJobScheduler('s'))?.next === undefined);
  const counts = await answersOf(both, async (queue) => (await queue.getJobScheduler('s'))?.iterationCount);
  expect(counts.ours).toEqual(counts.stock);
});
