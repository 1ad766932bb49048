import fc from 'fast-check';
import { beforeEach, describe, expect, test } from 'vitest';
import { bucketOf } from '../../src/domain/buckets.js';
import { type RecordState, STATES } from '../../src/domain/states.js';
import { decodeRecord } from '../../src/redis/record.js';
import { ScriptRunner } from '../../src/redis/script-runner.js';
import { jobModel, packRecord, type RecordModel, scheduleModel } from '../support/builders-record.js';
import { NOW, Spine } from '../support/spine.js';
import { changesOf, readState } from '../support/spine-state.js';

/** Runs Lua's decode and encode over records: get-job, whose includes are these, with another body. */
const DRIVER = `
do
  local out = {}
  for i = 1, #ARGV do
    local read, record = pcall(decodeRecord, ARGV[i])
    out[i] = read and { encodeRecord(record), string.format('%.0f', record.inc), string.format('%.0f', record.ver), record.name,
      record.data, record.opts, record.policies or '', record.note or '', record.priority, record.lifo and 1 or 0 } or tostring(record)
  end
  return out
end`;

let spine: Spine;
let lua: (records: Buffer[]) => Promise<(Buffer[] | Buffer)[]>;
beforeEach(async ({ task }) => {
  spine = await Spine.virtual(task);
  const runner = new ScriptRunner(spine.client, { replace: { clock: '', spent: DRIVER } });
  lua = (records) =>
    runner.run('get-job', 'read-only', spine.keys.none, records) as Promise<(Buffer[] | Buffer)[]>;
});

const time = fc.integer({ min: 0, max: 253402300799999 });
const counter = fc.integer({ min: 0, max: Number.MAX_SAFE_INTEGER });
const text = (maxLength: number) => fc.string({ unit: 'binary', maxLength });
const oneIn = (chance: number) => fc.integer({ min: 1, max: chance }).map((n) => n === 1);

const byte = fc.integer({ min: 0, max: 255 });
const runs = (maxLength: number) =>
  fc.array(
    fc.record({
      scheduledFor: time,
      since: time,
      kind: fc.constantFrom('tick' as const, 'catchUp', 'backfill', 'trigger', 'backfillBeside'),
      suffix: fc.oneof(fc.constant(''), text(13), text(60)),
    }),
    { maxLength },
  );

const shared = {
  state: fc.constantFrom(...(Object.keys(STATES) as RecordState[])),
  inc: counter,
  ver: counter,
  timestamp: time,
  priority: fc.integer({ min: 0, max: 2 ** 21 }),
  lifo: fc.boolean(),
  name: text(60),
  data: text(300),
  opts: text(100),
  requestBytes: fc
    .integer({ min: 0, max: 4 })
    .chain((n) => fc.uint8Array({ minLength: n * 8, maxLength: n * 8 })),
  marks: fc.constantFrom(0, 8, 32, 64, 128, 8 + 32, 64 + 128),
};
const job = fc.record({ ...shared, kind: fc.constant('job' as const), at: time });
const schedule = fc.record({
  ...shared,
  kind: fc.constant('schedule' as const),
  anchor: time,
  after: fc.boolean(),
  last: time,
  cur: time,
  curFire: time,
  next: time,
  nextFire: time,
  count: fc.integer({ min: 0, max: 0xffffffff }),
  grace: fc.integer({ min: 0, max: 0xffffffff }),
  check: time,
  rows: fc.integer({ min: 0, max: 0x7fffffff }),
  owed: fc.boolean(),
  runTimeout: fc.integer({ min: 0, max: 0xffffffff }),
  missed: fc.integer({ min: 0, max: 2 }),
  overlap: fc.integer({ min: 0, max: 4 }),
  maxOpen: byte,
  maxConcurrent: byte,
  keptRows: byte,
  pauseAfter: byte,
  failures: byte,
  skips: fc.integer({ min: 0, max: 0xffff }),
  open: runs(6),
  waiting: fc.oneof({ weight: 5, arbitrary: runs(6) }, { weight: 1, arbitrary: runs(150) }),
  policies: text(100),
});
/** Schedules whose runs stand near the front, where damage meets them. */
const running = fc
  .record({ open: runs(4), waiting: runs(4) })
  .map((lists) => scheduleModel({ name: '', data: '', policies: '', ...lists }));

/** Half of them with the fields that are left out when they say nothing new. */
const record: fc.Arbitrary<RecordModel> = fc
  .tuple(
    fc.oneof(job, schedule),
    oneIn(2),
    oneIn(2),
    fc.option(
      text(50).filter((note) => note !== ''),
      { nil: undefined },
    ),
  )
  .map(([model, plainVer, plainTime, note]) => ({
    ...model,
    requestBytes: Buffer.from(model.requestBytes),
    ver: plainVer ? model.inc : model.ver,
    timestamp: plainTime ? Math.floor(model.inc / 1024) : model.timestamp,
    ...(note === undefined ? {} : { note }),
  }));

describe('the two halves of the codec agree', () => {
  test('any record: Lua gives it back byte for byte, and both read the same', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(record, { minLength: 1, maxLength: 30 }), async (models) => {
        const packed = models.map(packRecord);
        const replies = await lua(packed);
        packed.forEach((bytes, i) => {
          const model = models[i] as RecordModel;
          const reply = replies[i] as Buffer[];
          expect(reply[0]).toEqual(bytes);
          const { requestBytes, marks, ...fields } = model;
          const decoded = decodeRecord(bytes);
          expect(decoded).toMatchObject({ ...fields, requests: requestBytes.length / 8 });
          expect(decoded.flags & 0b11101000).toBe(marks);
          const policies = model.kind === 'schedule' ? model.policies : '';
          expect(reply.slice(1, 8).map(String)).toEqual(
            [model.inc, model.ver, model.name, model.data, model.opts, policies, model.note ?? ''].map(
              String,
            ),
          );
          expect(reply.slice(8)).toEqual([model.priority, model.lifo ? 1 : 0]);
        });
      }),
      { numRuns: 60 },
    );
  });

  test('corrupt bytes: what one half refuses, the other refuses too', async () => {
    const damaged = fc
      .tuple(
        fc.oneof(record, running),
        fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 4 }),
        fc.nat(),
      )
      .map(([model, pokes, cut]) => {
        const bytes = packRecord(model);
        // Most damage to the header and the lists of runs, where it can mislead.
        for (const [at, value] of pokes) bytes[at % Math.min(bytes.length, 160)] = value;
        return cut % 3 === 0 ? bytes.subarray(0, cut % (bytes.length + 1)) : bytes;
      });
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.oneof(damaged, fc.uint8Array({ maxLength: 90 })), { minLength: 20, maxLength: 60 }),
        async (list) => {
          const records = list.map((bytes) => Buffer.from(bytes));
          const replies = await lua(records);
          records.forEach((bytes, i) => {
            const { read, problem } = tryDecode(bytes);
            // The driver would have raised on a record that Lua reads but cannot write again.
            expect([bytes.toString('hex'), problem, Array.isArray(replies[i])]).toEqual([
              bytes.toString('hex'),
              problem,
              read,
            ]);
          });
        },
      ),
      { numRuns: 100 },
    );
  });
});

function tryDecode(bytes: Buffer): { read: boolean; problem: string } {
  try {
    decodeRecord(bytes);
    return { read: true, problem: '' };
  } catch (error) {
    return { read: false, problem: String(error) };
  }
}

describe('I7 poison is set aside', () => {
  /** Puts bytes where a due job would be. */
  async function plant(id: string, bytes: Buffer | string): Promise<void> {
    const identity = `q:${id}`;
    const bucket = bucketOf(identity);
    await spine.client.hset(spine.keys.jobs(bucket), identity, bytes);
    await spine.client.zadd(spine.keys.due(bucket), NOW, identity);
    await spine.client.zadd(spine.keys.heads, NOW, bucket);
  }

  test('any damage: a pop raises nothing, every bucket drains, and good jobs fire', async () => {
    const poke = fc.tuple(fc.nat({ max: 160 }), fc.integer({ min: 0, max: 255 }));
    const base = fc.oneof(
      fc.constant(jobModel({ opts: '{"attempts":2}' })),
      fc.constant(scheduleModel()),
      running,
      record,
    );
    const owned = await spine.lead();
    let round = 0;
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(base, fc.array(poke, { maxLength: 3 })), { minLength: 1, maxLength: 20 }),
        async (list) => {
          round++;
          for (const [i, [model, pokes]] of list.entries()) {
            const bytes = packRecord(model);
            for (const [at, byte] of pokes) bytes[at % bytes.length] = byte;
            await plant(`bad-${round}-${i}`, bytes);
          }
          await plant(`good-${round}`, packRecord(jobModel()));
          await spine.drain(owned);
          const state = await readState(spine);
          expect(state).toHaveProperty([`q:good-${round}`]);
          expect(
            Object.keys(state).filter((name) => name.startsWith('due ') && (state[name] as number) <= NOW),
          ).toEqual([]);
        },
      ),
      { numRuns: 60 },
    );
  });

  test('any damage in a broken queue: parks, is cured, drains', async () => {
    const poke = fc.tuple(fc.nat({ max: 70 }), fc.integer({ min: 0, max: 255 }));
    const owned = await spine.lead();
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.tuple(record, fc.array(poke, { maxLength: 2 })), { minLength: 1, maxLength: 20 }),
        async (list) => {
          await spine.client.del(spine.bull('q', 'wait'));
          await spine.client.set(spine.bull('q', 'wait'), 'x');
          for (const [i, [model, pokes]] of list.entries()) {
            const bytes = packRecord(model);
            for (const [at, byte] of pokes) bytes[at % bytes.length] = byte;
            await plant(`bad-${i}`, bytes);
          }
          await spine.drain(owned);
          await spine.client.del(spine.bull('q', 'wait'));
          expect(await spine.leader.unparkQueue(owned, 'q', { bucket: 0, offset: 0 }, 500)).toMatchObject({
            next: { bucket: 256 },
          });
          await spine.drain(owned);
          const due = await spine.client.zcount(spine.keys.due(bucketOf('q:bad-0')), '-inf', NOW);
          expect(due).toBe(0);
        },
      ),
      { numRuns: 40 },
    );
  });

  test.each([
    ['nothing', ''],
    ['text', 'this is some text of a person, not a record'],
    ['zeros', Buffer.alloc(40)],
    ['a format of long ago', Buffer.concat([Buffer.from([0x00]), packRecord(jobModel()).subarray(1)])],
    ['an unknown kind', Buffer.concat([Buffer.from([0x15]), packRecord(jobModel()).subarray(1)])],
    [
      'an unknown state',
      Buffer.concat([
        packRecord(jobModel()).subarray(0, 1),
        Buffer.from([0xe0]),
        packRecord(jobModel()).subarray(2),
      ]),
    ],
    ['its first half', packRecord(jobModel()).subarray(0, 12)],
    ['a schedule cut off in its ticks', packRecord(scheduleModel()).subarray(0, 40)],
  ])('%s is quarantined', async (_what, bytes) => {
    const owned = await spine.lead();
    await plant('bad', bytes);
    await plant('good', packRecord(jobModel()));
    const { result, changes } = await changesOf(spine, () => spine.drain(owned));
    expect(result.popped).toBe(1);
    expect(result.trouble).toEqual([expect.stringMatching(/^QUARANTINED q:bad BAD_RECORD /)]);
    expect(changes).toMatchObject({
      'jobs q:bad': null,
      'due q:bad': null,
      'quarantine q:bad': { since: NOW, record: Buffer.from(bytes) },
      'q:wait': ['good'],
    });
    expect(changes).not.toHaveProperty(['q:bad']);
  });

  test('the next format is parked with an alert, not judged', async () => {
    const owned = await spine.lead();
    const newer = Buffer.concat([Buffer.from([0x20]), packRecord(jobModel()).subarray(1)]);
    await plant('new', newer);
    const { result, changes } = await changesOf(spine, () => spine.drain(owned));
    expect(result).toEqual({ popped: 0, trouble: ['NEWER_FORMAT q:new'] });
    expect(changes).toMatchObject({ 'due q:new': null, 'parked q:new': NOW });
    expect(changes).not.toHaveProperty(['jobs q:new']);
  });
});
