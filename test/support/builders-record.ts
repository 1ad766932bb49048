import { STATES } from '../../src/domain/states.js';
import type { JobRecord, ScheduleRecord } from '../../src/redis/record.js';
import { INC, NOW } from './spine.js';

/** A record to pack: what the decoder gives, with the bytes of its requests instead of their number. */
export type RecordModel = (
  | Omit<JobRecord, 'requests' | 'flags'>
  | Omit<ScheduleRecord, 'requests' | 'flags'>
) & {
  requestBytes: Buffer;
  /** Flags that say nothing about the layout: dedup, generated, catchUp, resumed. */
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
  if (model.priority > 0 || model.lifo) {
    flags |= 2;
    optional.push(uint(model.priority + (model.lifo ? 2 ** 24 : 0), 4));
  }
  if (model.timestamp !== Math.floor(model.inc / 1024)) {
    flags |= 4;
    optional.push(uint(model.timestamp, 6));
  }
  if (note.length > 0) {
    flags |= 16;
    optional.push(uint(note.length, 2));
  }
  const policies = Buffer.from(model.kind === 'schedule' ? model.policies : '');
  if (model.kind === 'schedule') {
    const { last, cur, curFire, next, nextFire, count, grace, missed, overlap } = model;
    optional.push(...[last, cur, curFire, next, nextFire].map((time) => uint(time, 6)));
    optional.push(
      uint(count, 4),
      uint(grace, 4),
      uint(missed, 1),
      uint(overlap, 1),
      uint(policies.length, 3),
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
    policies,
    note,
  ]);
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
    count: 0,
    grace: 30_000,
    missed: 0,
    overlap: 0,
    policies: '{"every":60000,"missed":"skip"}',
    ...over,
  } satisfies RecordModel;
}

/** A big-endian unsigned integer; 7 bytes hold what a double holds. */
function uint(value: number, length: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64BE(BigInt(value));
  return bytes.subarray(8 - length);
}
