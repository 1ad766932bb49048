import { CarillonError } from '../domain/errors.js';
import { type RecordState, stateOf } from '../domain/states.js';

/**
 * The record codec; lua/lib/record.lua is its other half. A record is a short packed header, the only part that Lua
 * reads and rewrites, and the client's own bytes behind it, which nobody re-encodes. All numbers are big-endian.
 *
 * | bytes | field |
 * |---|---|
 * | 1 | format in the high four bits, kind in the low four (0 job, 1 schedule) |
 * | 1 | state in the high four bits, number of remembered requests in the low four |
 * | 1 | flags, see {@link FLAGS} |
 * | 7 | inc: the incarnation, ms·1024 + n; it also tells when the job was accepted |
 * | 6 | at: a job's scheduled time, a schedule's anchor, in ms |
 * | 8 each | requests: 7 bytes of hash, 1 of answer |
 * | 1, 3 | lengths of name and data |
 * | 7, 4, 6, 2 | by flag: ver; priority + lifo·2^24 + after·2^25; timestamp; length of the note |
 * | 68 | a schedule's last, cur, curFire, next, nextFire, check (6 each), count, rows, grace, run timeout (4 each), missed, overlap, most open, most concurrent, kept rows, pause after, failures (1 each), skips (2), lengths of policies (3), open and waiting runs (2 each) |
 * | … | name, data, options, policies, open runs, waiting runs, note; the options take what the lengths leave |
 */
export const RECORD_FORMAT = 1;

/** The flag bits of a record's header. Three of them say one thing of a job and another of a schedule. */
export const FLAGS = {
  ver: 1,
  priority: 2,
  timestamp: 4,
  dedup: 8,
  /** A schedule's overdue tick came while its queue was broken. */
  unserved: 8,
  note: 16,
  generated: 32,
  /** No tick follows the known ones of a schedule. */
  last: 32,
  /** The pending tick is the planner's to judge. */
  overdue: 64,
  /** The options of a job hold its deadline. */
  deadline: 64,
  /** It came while the schedule was paused. */
  resumed: 128,
} as const;

/** The planner and backfill give a schedule no more waiting runs than this. */
export const MAX_WAITING_RUNS = 1000;

const LIFO = 0x1000000;
/** Of a schedule: its policies say which schedules it follows. */
const AFTER = 0x2000000;
const INC_PER_MS = 1024;
/** The end of 9999, ms. */
const LAST_TIME = 253402300799999;

interface RecordBase {
  state: RecordState;
  flags: number;
  inc: number;
  ver: number;
  /** When Redis accepted it, in ms. */
  timestamp: number;
  priority: number;
  lifo: boolean;
  requests: number;
  name: string;
  /** The client's JSON text. */
  data: string;
  /** BullMQ's encoded options as JSON text; empty stands for `{"attempts":0}`. */
  opts: string;
  note?: string;
}

/** A pending one-time job. */
export interface JobRecord extends RecordBase {
  kind: 'job';
  /** The scheduled time in ms. */
  at: number;
}

const RUN_KINDS = ['tick', 'catchUp', 'backfill', 'trigger', 'backfillBeside'] as const;

/** One run of a schedule; its id in BullMQ is `<schedule>@<scheduledFor><suffix>`. */
export interface ScheduleRun {
  scheduledFor: number;
  /** When it went into the queue, or began to wait; ms. */
  since: number;
  kind: (typeof RUN_KINDS)[number];
  suffix: string;
}

/** A schedule. Times in ms; 0 stands for none. */
export interface ScheduleRecord extends RecordBase {
  kind: 'schedule';
  anchor: number;
  /** High-water mark: no tick at or below it fires again. */
  last: number;
  /** The pending tick and when it fires. */
  cur: number;
  curFire: number;
  /** Its successor, swapped in when cur fires. */
  next: number;
  nextFire: number;
  /** When runs that wait are looked at again. */
  check: number;
  /** Ticks that ran or are sure to. */
  count: number;
  /** Rows written to the ledger so far, modulo 2^31. */
  rows: number;
  /** The ledger lacks the row of the last tick, whose run is the last one that is open. */
  owed: boolean;
  grace: number;
  /** An open run older than this counts as ended, ms; 0 for never. */
  runTimeout: number;
  missed: number;
  overlap: number;
  maxOpen: number;
  /** 0 for no limit. */
  maxConcurrent: number;
  keptRows: number;
  /** 0 for never. */
  pauseAfter: number;
  /** Failed runs in a row. */
  failures: number;
  /** Skipped ticks in a row. */
  skips: number;
  /** Runs that BullMQ had not finished when they were last looked at. */
  open: ScheduleRun[];
  /** Runs that wait for their turn, oldest first. */
  waiting: ScheduleRun[];
  /** It follows other schedules, which its policies name. */
  after: boolean;
  /** The definition as JSON text. */
  policies: string;
}

export type JobOrSchedule = JobRecord | ScheduleRecord;

/** Reads numbers off a record. 7-byte integers stay below 2^53. */
class Reader {
  position = 0;
  constructor(readonly bytes: Buffer) {}

  uint(length: number): number {
    const end = this.position + length;
    if (end > this.bytes.length) throw new RangeError('the record ends early');
    const value =
      length === 7
        ? this.bytes.readUIntBE(this.position, 3) * 0x100000000 + this.bytes.readUInt32BE(this.position + 3)
        : this.bytes.readUIntBE(this.position, length);
    this.position = end;
    return value;
  }

  time(): number {
    const value = this.uint(6);
    if (value > LAST_TIME) throw new RangeError(`time out of range: ${value}`);
    return value;
  }

  text(length: number): string {
    const end = this.position + length;
    if (length < 0 || end > this.bytes.length) throw new RangeError('the lengths do not fit the record');
    const value = this.bytes.toString('utf8', this.position, end);
    this.position = end;
    return value;
  }
}

/**
 * Reads a record as Redis holds it.
 * @throws CarillonError BAD_RECORD for bytes that are no whole record of this format.
 */
export function decodeRecord(bytes: Buffer): JobOrSchedule {
  try {
    return decode(new Reader(bytes));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new CarillonError('BAD_RECORD', `not a record that this version reads: ${why}`, {
      given: bytes.toString('hex').slice(0, 60),
      todo: 'Run `carillon doctor`; upgrade if another version wrote it.',
      cause,
    });
  }
}

function decode(reader: Reader): JobOrSchedule {
  const head = reader.uint(1);
  const stateAndRequests = reader.uint(1);
  const flags = reader.uint(1);
  if (head >> 4 !== RECORD_FORMAT) throw new RangeError(`format ${head >> 4}`);
  const kind = head & 15;
  if (kind > 1) throw new RangeError(`unknown kind ${kind}`);
  const state = stateOf(stateAndRequests >> 4);
  if (state === undefined) throw new RangeError(`unknown state ${stateAndRequests >> 4}`);
  const inc = reader.uint(7);
  const at = reader.time();
  const requests = stateAndRequests & 15;
  reader.position += requests * 8;
  const nameLength = reader.uint(1);
  const dataLength = reader.uint(3);
  const ver = flags & FLAGS.ver ? reader.uint(7) : inc;
  const order = flags & FLAGS.priority ? reader.uint(4) : 0;
  const timestamp = flags & FLAGS.timestamp ? reader.time() : Math.floor(inc / INC_PER_MS);
  const noteLength = flags & FLAGS.note ? reader.uint(2) : 0;
  const ticks = kind === 1 ? readTicks(reader) : undefined;
  const policiesLength = ticks ? reader.uint(3) : 0;
  const openLength = ticks ? reader.uint(2) : 0;
  const waitingLength = ticks ? reader.uint(2) : 0;
  const name = reader.text(nameLength);
  const data = reader.text(dataLength);
  const runsLength = openLength + waitingLength;
  const opts = reader.text(reader.bytes.length - reader.position - policiesLength - runsLength - noteLength);
  const policies = reader.text(policiesLength);
  const open = readRuns(reader, openLength);
  const waiting = readRuns(reader, waitingLength);
  const note = reader.text(noteLength);
  const base: RecordBase = {
    state,
    flags,
    inc,
    ver,
    timestamp,
    priority: order % LIFO,
    lifo: (order & LIFO) !== 0,
    requests,
    name,
    data,
    opts,
    ...(noteLength > 0 ? { note } : {}),
  };
  if (ticks)
    return {
      kind: 'schedule',
      anchor: at,
      ...base,
      ...ticks,
      after: (order & AFTER) !== 0,
      policies,
      open,
      waiting,
    };
  return { kind: 'job', at, ...base };
}

/** In the count of rows: the ledger lacks the row of the last tick. */
const OWED_ROW = 2 ** 31;

function readTicks(reader: Reader) {
  const ticks = {
    last: reader.time(),
    cur: reader.time(),
    curFire: reader.time(),
    next: reader.time(),
    nextFire: reader.time(),
    check: reader.time(),
    count: reader.uint(4),
    rows: reader.uint(4),
    grace: reader.uint(4),
    runTimeout: reader.uint(4),
    missed: reader.uint(1),
    overlap: reader.uint(1),
    maxOpen: reader.uint(1),
    maxConcurrent: reader.uint(1),
    keptRows: reader.uint(1),
    pauseAfter: reader.uint(1),
    failures: reader.uint(1),
    skips: reader.uint(2),
  };
  return { ...ticks, rows: ticks.rows % OWED_ROW, owed: ticks.rows >= OWED_ROW };
}

function readRuns(reader: Reader, length: number): ScheduleRun[] {
  const end = reader.position + length;
  const runs: ScheduleRun[] = [];
  while (reader.position < end) {
    const [scheduledFor, since] = [reader.time(), reader.time()];
    const kind = RUN_KINDS[reader.uint(1)];
    if (kind === undefined) throw new RangeError('unknown kind of run');
    runs.push({ scheduledFor, since, kind, suffix: reader.text(reader.uint(1)) });
  }
  if (reader.position !== end) throw new RangeError('the runs do not fit the record');
  return runs;
}

/** When the record's entry in due comes up, in ms; 0 when it has none. lua/lib/pending.lua has the same rule. */
export function dueTimeOf(record: JobOrSchedule): number {
  if (record.kind === 'job') return record.at;
  const tick = record.flags & FLAGS.overdue ? 0 : record.curFire;
  return record.check > 0 && (tick === 0 || record.check < tick) ? record.check : tick;
}

/** Whether the planner has something to answer about it. lua/lib/pending.lua has the same rule. */
export function needsPlan(record: JobOrSchedule): boolean {
  if (record.kind !== 'schedule' || record.state !== 'scheduled') return false;
  if (record.flags & FLAGS.overdue) return true;
  if (record.flags & FLAGS.last) return record.cur === 0 && record.waiting.length === 0;
  return record.cur === 0 || record.next === 0;
}
