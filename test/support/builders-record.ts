import { STATES } from '../../src/domain/states.js';
import type { JobRecord, ScheduleRecord, ScheduleRun } from '../../src/redis/record.js';
import { INC, NOW } from './spine.js';

/** A record to pack: what the decoder gives, with the bytes of its requests instead of their number. */
export type RecordModel = (
  | Omit<JobRecord, 'requests' | 'flags'>
  | Omit<ScheduleRecord, 'requests' | 'flags'>
) & {
  requestBytes: Buffer;
  /** Flags that say nothing about the layout: dedup or unserved, generated or last, overdue, resumed. */
  marks: number;
};

const FORMAT = 1;

/**
 * Packs a record byte by byte, as the table in src/redis/record.ts says: written apart from both codecs, so that it
 * can judge them.
 */
export function packRecord(model: RecordModel): Buffer {
  const name = Buffer.from(model.name);
  const data = Buffer.from(model.data);
  const note = Buffer.from(model.note ?? '');
  const optional: Buffer[] = [];
  let flags = model.marks;
  if (model.ver !== model.inc) {
    flags |= 1;
    optional.push(uint(model.ver, 7));
  }
  const follows = model.kind === 'schedule' && model.after;
  if (model.priority > 0 || model.lifo || follows) {
    flags |= 2;
    optional.push(uint(model.priority + (model.lifo ? 2 ** 24 : 0) + (follows ? 2 ** 25 : 0), 4));
  }
  if (model.timestamp !== Math.floor(model.inc / 1024)) {
    flags |= 4;
    optional.push(uint(model.timestamp, 6));
  }
  if (note.length > 0) {
    flags |= 16;
    optional.push(uint(note.length, 2));
  }
  const tail: Buffer[] = [];
  if (model.kind === 'schedule') {
    const { last, cur, curFire, next, nextFire, check, count, rows, grace, runTimeout } = model;
    const { missed, overlap, maxOpen, maxConcurrent, keptRows, pauseAfter, failures, skips } = model;
    tail.push(Buffer.from(model.policies), packRuns(model.open), packRuns(model.waiting));
    optional.push(
      ...[last, cur, curFire, next, nextFire, check].map((time) => uint(time, 6)),
      ...[count, rows + (model.owed ? 2 ** 31 : 0), grace, runTimeout].map((value) => uint(value, 4)),
      ...[missed, overlap, maxOpen, maxConcurrent, keptRows, pauseAfter, failures].map((value) =>
        uint(value, 1),
      ),
      uint(skips, 2),
      ...tail.map(({ length }, i) => uint(length, i === 0 ? 3 : 2)),
    );
  }
  return Buffer.concat([
    uint(FORMAT * 16 + (model.kind === 'schedule' ? 1 : 0), 1),
    uint(STATES[model.state].code * 16 + model.requestBytes.length / 8, 1),
    uint(flags, 1),
    uint(model.inc, 7),
    uint(model.kind === 'schedule' ? model.anchor : model.at, 6),
    model.requestBytes,
    uint(name.length, 1),
    uint(data.length, 3),
    ...optional,
    name,
    data,
    Buffer.from(model.opts),
    ...tail,
    note,
  ]);
}

const RUN_KINDS: readonly ScheduleRun['kind'][] = [
  'tick',
  'catchUp',
  'backfill',
  'trigger',
  'backfillBeside',
];

function packRuns(runs: readonly ScheduleRun[]): Buffer {
  return Buffer.concat(
    runs.map(({ scheduledFor, since, kind, suffix }) => {
      const text = Buffer.from(suffix);
      return Buffer.concat([
        uint(scheduledFor, 6),
        uint(since, 6),
        uint(RUN_KINDS.indexOf(kind), 1),
        uint(text.length, 1),
        text,
      ]);
    }),
  );
}

/** A one-time job that is due now. */
export function jobModel(
  over: Partial<JobRecord> & Partial<Pick<RecordModel, 'marks' | 'requestBytes'>> = {},
) {
  return {
    kind: 'job',
    at: NOW,
    state: 'scheduled',
    inc: INC,
    ver: INC,
    timestamp: NOW,
    priority: 0,
    lifo: false,
    name: 'send',
    data: '{}',
    opts: '',
    requestBytes: Buffer.alloc(0),
    marks: 0,
    ...over,
  } satisfies RecordModel;
}

/** A schedule of every minute whose tick is due now. */
export function scheduleModel(
  over: Partial<ScheduleRecord> & Partial<Pick<RecordModel, 'marks' | 'requestBytes'>> = {},
) {
  return {
    ...jobModel(),
    kind: 'schedule',
    anchor: NOW - 60_000,
    last: 0,
    cur: NOW,
    curFire: NOW,
    next: NOW + 60_000,
    nextFire: NOW + 60_000,
    check: 0,
    count: 0,
    rows: 0,
    owed: false,
    grace: 30_000,
    runTimeout: 0,
    missed: 0,
    overlap: 0,
    maxOpen: 32,
    maxConcurrent: 1,
    keptRows: 50,
    pauseAfter: 0,
    failures: 0,
    skips: 0,
    open: [],
    waiting: [],
    after: false,
    policies: '{"every":60000,"missed":"skip"}',
    ...over,
  } satisfies RecordModel;
}

/** A run of a schedule, as its record keeps it. */
export function aRun(scheduledFor: number, over: Partial<ScheduleRun> = {}): ScheduleRun {
  return { scheduledFor, since: scheduledFor, kind: 'tick', suffix: '', ...over };
}

/** A big-endian unsigned integer; 7 bytes hold what a double holds. */
function uint(value: number, length: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes.subarray(8 - length);
}
