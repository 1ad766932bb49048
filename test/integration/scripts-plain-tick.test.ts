import fc from 'fast-check';
import { expect, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import type { ScheduleRecord } from '../../src/redis/record.js';
import { packRecord, scheduleModel } from '../support/builders-record.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { NOW, Spine } from '../support/spine.js';
import { readState, type SpineState } from '../support/spine-state.js';

const LONG = process.env.CARILLON_LONG === '1';
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
/** Values of which the first is a plain tick's. */
const fields = {
  ver: fc.constantFrom(1, 2),
  priority: fc.constantFrom(0, 5),
  marks: fc.constantFrom(0, 8, 32, 64, 128),
  last: near(-60_000, 0),
  cur: near(-1000, -500, 0),
  curFire: near(-1000, -40_000, 0, 1000),
  next: near(60_000, 0),
  nextFire: near(60_000, -1, 0),
  check: near(0, -1),
  count: fc.constantFrom(5, 0, 0xffffffff),
  rows: fc.constantFrom(7, 0, 50, 0x7fffffff),
  owed: fc.constantFrom(false, true),
  grace: fc.constantFrom(30_000, 0),
  missed: fc.constantFrom(2, 1, 0),
  overlap: fc.constantFrom(0, 1, 2, 3, 4),
  maxOpen: fc.constantFrom(32, 2, 1, 0),
  maxConcurrent: fc.constantFrom(1, 0, 2),
  keptRows: fc.constantFrom(50, 0, 3),
  pauseAfter: fc.constantFrom(0, 2),
  failures: fc.constantFrom(0, 1, 255),
  skips: fc.constantFrom(0, 2),
  runTimeout: fc.constantFrom(0, 30_000),
  opts: fc.constantFrom('', '{"attempts":2}', '{}', 'nonsense'),
  open: fc.array(run, { maxLength: 2 }),
  waiting: fc.array(run, { maxLength: 1 }),
};
const PLAIN = {
  ...{
    ver: 1,
    priority: 0,
    marks: 0,
    last: NOW - 60_000,
    cur: NOW - 1000,
    curFire: NOW - 1000,
    next: NOW + 60_000,
  },
  ...{
    nextFire: NOW + 60_000,
    check: 0,
    count: 5,
    rows: 7,
    owed: false,
    grace: 30_000,
    missed: 1,
    overlap: 0,
    maxOpen: 32,
  },
  ...{
    maxConcurrent: 1,
    keptRows: 50,
    pauseAfter: 0,
    failures: 0,
    skips: 0,
    runTimeout: 0,
    opts: '',
    open: [],
    waiting: [],
  },
};
/** A plain tick with a few fields that are not. */
const schedule = fc
  .tuple(fc.record(fields), fc.subarray(Object.keys(fields) as (keyof typeof fields)[], { maxLength: 4 }))
  .map(
    ([odd, names]) =>
      ({ ...PLAIN, ...Object.fromEntries(names.map((name) => [name, odd[name]])) }) as typeof odd,
  );
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

test('a plain tick goes the short way as it would go the long way, also when its record is damaged', {
  timeout: LONG ? 900_000 : 120_000,
}, async ({ task }) => {
  let round = 0;
  let plain = 0;
  await fc.assert(
    fc.asyncProperty(fc.array(given, { minLength: 30, maxLength: 60 }), async (list) => {
      round++;
      const short = await popped(namespaceFor({ name: `${task.name} ${round} short` }), list);
      const long = await popped(namespaceFor({ name: `${task.name} ${round} long` }), list, LONG_WAY);
      plain += owing(short).length - owing(long).length;
      settle(short);
      settle(long);
      expect(short).toEqual(long);
    }),
    { numRuns: LONG ? 400 : 25, endOnFailure: true },
  );
  expect(plain).toBeGreaterThan(100);
});

function owing(state: SpineState): [string, ScheduleRecord][] {
  return Object.entries(state as Record<string, ScheduleRecord>).filter(([, { owed }]) => owed);
}

/** Writes the rows that records tell, as the next change of each would. */
function settle(state: SpineState): void {
  for (const [name, record] of owing(state)) {
    const since = record.open.find(
      ({ scheduledFor, kind }) => scheduledFor === record.last && kind === 'tick',
    )?.since;
    const row = `${record.last}|dispatched|${since ?? record.last}||`;
    if (record.keptRows > 0) {
      state[`${name.replace('jobs ', 'ledger:')} ${record.rows % record.keptRows}`] = row;
      record.rows = (record.rows + 1) % 2 ** 31;
    }
    record.owed = false;
  }
}

/** What stands after one pop over the schedules that are given. */
async function popped(
  namespace: string,
  list: readonly Given[],
  replace?: Record<string, string>,
): Promise<SpineState> {
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
