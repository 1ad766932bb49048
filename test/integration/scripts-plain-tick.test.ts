import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import { packRecord, scheduleModel } from '../support/builders-record.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { NOW, Spine } from '../support/spine.js';
import { readState } from '../support/spine-state.js';

/** The pop without its short way. */
const LONG_WAY = { 'plain-tick': 'local function readPlainTick() return false end' };

const near = (...values: number[]) =>
  fc.constantFrom(...values.map((value) => (value === 0 ? 0 : NOW + value)));
const run = fc.record({
  scheduledFor: near(-60_000, -120_000),
  since: near(-60_000, -50_000),
  kind: fc.constantFrom('tick' as const, 'tick', 'catchUp', 'trigger'),
  suffix: fc.constantFrom('', '', '', '+a'),
});
const schedule = fc.record({
  ver: fc.constantFrom(1, 1, 2),
  priority: fc.constantFrom(0, 0, 0, 5),
  marks: fc.constantFrom(0, 0, 0, 0, 8, 32, 64, 128),
  last: near(0, -60_000),
  cur: near(-1000, -1000, -1000, -500, 0),
  curFire: near(-1000, -1000, -1000, -1000, -40_000, 0, 1000),
  next: near(60_000, 60_000, 60_000, 0),
  nextFire: near(60_000, 60_000, 60_000, -1, 0),
  check: near(0, 0, 0, -1),
  count: fc.constantFrom(0, 5, 0xffffffff),
  rows: fc.constantFrom(0, 7, 50, 0xffffffff),
  grace: fc.constantFrom(30_000, 0),
  missed: fc.integer({ min: 0, max: 2 }),
  overlap: fc.integer({ min: 0, max: 4 }),
  maxOpen: fc.constantFrom(32, 32, 2, 1, 0),
  maxConcurrent: fc.constantFrom(1, 1, 0, 2),
  keptRows: fc.constantFrom(50, 50, 0, 3),
  pauseAfter: fc.constantFrom(0, 0, 0, 2),
  failures: fc.constantFrom(0, 1, 255),
  skips: fc.constantFrom(0, 2),
  runTimeout: fc.constantFrom(0, 30_000),
  opts: fc.constantFrom('', '{"attempts":2}', '{}', 'nonsense'),
  open: fc.array(run, { maxLength: 2 }),
  waiting: fc.oneof(
    { weight: 4, arbitrary: fc.array(run, { maxLength: 0 }) },
    { weight: 1, arbitrary: fc.array(run, { maxLength: 1 }) },
  ),
});
/** What BullMQ holds under a run's id. */
const held = fc.constantFrom<string>('nothing', 'open', 'completed', 'failed', 'string');
const given = fc.record({
  schedule,
  held: fc.array(held, { minLength: 3, maxLength: 3 }),
  tick: fc.constantFrom<string>('nothing', 'nothing', 'nothing', 'open', 'string'),
  pokes: fc.array(fc.tuple(fc.nat({ max: 150 }), fc.integer({ min: 0, max: 255 })), { maxLength: 2 }),
  damaged: fc.constantFrom(false, false, false, true),
});
type Given = typeof given extends fc.Arbitrary<infer T> ? T : never;

test('a plain tick goes the short way as it would go the long way, also when its record is damaged', async ({
  task,
}) => {
  let round = 0;
  let rows = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(given, { minLength: 30, maxLength: 60 }), async (list) => {
      round++;
      const short = await popped(namespaceFor({ name: `${task.name} ${round} short` }), list);
      const long = await popped(namespaceFor({ name: `${task.name} ${round} long` }), list, LONG_WAY);
      expect(short).toEqual(long);
      rows += Object.keys(short).filter((name) => name.startsWith('ledger:')).length;
    }),
    { numRuns: 40, endOnFailure: true },
  );
  expect(rows).toBeGreaterThan(100);
});

/** What stands after one pop over the schedules that are given. */
async function popped(
  namespace: string,
  list: readonly Given[],
  replace?: Record<string, string>,
): Promise<object> {
  const choices = { clock: 'virtual', ...(replace === undefined ? {} : { replace }) } as const;
  const spine = await Spine.open({ url: sharedRedisUrl(), namespace, choices });
  await spine.setClock(NOW - 20_000);
  const owned = await spine.lead();
  await spine.setClock(NOW);
  await Promise.all(list.map((one, i) => plant(spine, `s${i}`, one)));
  await spine.pop(owned, { limit: 500 });
  const state = JSON.stringify(await readState(spine)).replaceAll(namespace, 'ns');
  spine.client.disconnect();
  const { 'meta layout': _, ...rest } = JSON.parse(state);
  return rest;
}

async function plant({ client, keys, prefix }: Spine, id: string, one: Given): Promise<void> {
  const { schedule, held, tick, pokes, damaged } = one;
  const bytes = packRecord(scheduleModel({ ...schedule, inc: 1, timestamp: 0 }));
  if (damaged) for (const [at, byte] of pokes) bytes[at % bytes.length] = byte;
  const identity = `q:${id}`;
  const bucket = bucketOf(identity);
  const due = NOW - 1000;
  const runs = new Map([[`${schedule.cur}`, tick]]);
  for (const [i, run] of [...schedule.open, ...schedule.waiting].entries()) {
    runs.set(`${run.scheduledFor}${run.suffix}`, held[i] ?? 'nothing');
  }
  const pipeline = client.pipeline();
  pipeline
    .hset(keys.jobs(bucket), identity, bytes)
    .zadd(keys.due(bucket), due, identity)
    .zadd(keys.heads, due, bucket);
  for (const [run, what] of runs) {
    const key = `${prefix}:q:${id}@${run}`;
    if (what === 'string') pipeline.set(key, 'x');
    else if (what !== 'nothing') pipeline.hset(key, { name: 'x', timestamp: NOW, opts: '{}' });
    if (what === 'completed' || what === 'failed') pipeline.hset(key, { finishedOn: NOW });
    if (what === 'completed') pipeline.hset(key, { returnvalue: 'null' });
  }
  await pipeline.exec();
}
