import { bucketOf } from '../domain/buckets.js';
import { removesDead } from '../domain/dead-reason.js';
import { identityOf, jobIdOfRun, splitIdentity } from '../domain/ids.js';
import { compileTimes, type StoredPolicies } from '../domain/schedule.js';
import { type RecordState, STATES } from '../domain/states.js';
import { decodeRecord, dueTimeOf, needsPlan, RECORD_FORMAT, type ScheduleRecord } from '../redis/record.js';
import type { DoctorCheck, Problem, Severity } from './doctor-finding.js';

/** What is judged of a record: its header, and whether the rest can be used. Times in ms. */
export type RecordLook =
  | ({ kind: 'job'; at: number; group: string; priority: number } & Common)
  | ({ kind: 'schedule' } & Common & ScheduleLook)
  | { kind: 'newer'; format: number }
  | { kind: 'unreadable'; why: string };

interface Common {
  state: RecordState;
  inc: number;
  ver: number;
  /** Its runs are removed as they die. */
  removesDead: boolean;
}

interface ScheduleLook
  extends Pick<ScheduleRecord, 'last' | 'cur' | 'curFire' | 'next' | 'nextFire' | 'check'> {
  /** When its entry in due comes up; undefined for none. */
  dueAt: number | undefined;
  /** The planner has something to answer. */
  asks: boolean;
  /** Runs that wait for their turn. */
  waiting: number;
  /** Identities of the schedules that it follows. */
  follows: string[];
  note: string;
  unplannable: string | undefined;
}

/** One identity as one look saw it; scores in ms, undefined where the index does not hold it. */
export interface Place {
  bucket: number;
  identity: string;
  record: RecordLook | undefined;
  due: number | undefined;
  parked: number | undefined;
  plan: number | undefined;
}

/** Reads a record's header; never throws. */
export function lookAtRecord(identity: string, bytes: Buffer): RecordLook {
  const format = (bytes[0] ?? 0) >> 4;
  // Formats rise by one; any other is damage.
  if (format === RECORD_FORMAT + 1) return { kind: 'newer', format };
  try {
    const record = decodeRecord(bytes);
    const { state, inc, ver } = record;
    if (record.kind === 'job')
      return {
        kind: 'job',
        state,
        inc,
        ver,
        at: record.at,
        group: groupOf(record.opts),
        removesDead: removesDeadBy(record.opts),
        priority: record.priority,
      };
    const { last, cur, curFire, next, nextFire, check, note = '' } = record;
    const look = {
      removesDead: removesDeadBy(record.opts),
      dueAt: dueTimeOf(record) || undefined,
      asks: needsPlan(record),
      waiting: record.waiting.length,
      follows: record.after ? followedBy(identity, record) : [],
      unplannable: state === 'scheduled' ? whyUnplannable(identity, record) : undefined,
    };
    return { kind: 'schedule', state, inc, ver, last, cur, curFire, next, nextFire, check, note, ...look };
  } catch (error) {
    return { kind: 'unreadable', why: error instanceof Error ? error.message : String(error) };
  }
}

function followedBy(identity: string, { policies }: ScheduleRecord): string[] {
  try {
    const { after = [] } = JSON.parse(policies) as StoredPolicies;
    const own = splitIdentity(identity).queue;
    return after.map((one) =>
      typeof one === 'string' ? identityOf(own, one) : identityOf(one.queue, one.scheduleId),
    );
  } catch {
    return [];
  }
}

/** The tenant among a job's options, as lua/lib/gate.lua reads it. */
function groupOf(opts: string): string {
  if (!opts.includes('"group"')) return '';
  try {
    const { group } = JSON.parse(opts) as { group?: unknown };
    return typeof group === 'string' ? group : '';
  } catch {
    return '';
  }
}

function removesDeadBy(opts: string): boolean {
  if (!opts.includes('"removeOnFail"')) return false;
  try {
    return removesDead((JSON.parse(opts) as { removeOnFail?: unknown }).removeOnFail);
  } catch {
    return false;
  }
}

function whyUnplannable(identity: string, record: ScheduleRecord): string | undefined {
  try {
    compileTimes(JSON.parse(record.policies) as StoredPolicies, identity, record.anchor);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** The counts of `T:queues` that a record is part of, by state. */
export function countedAs(record: RecordLook): string[] {
  if (record.kind === 'job') return [record.state];
  if (record.kind === 'schedule') return record.state === 'parked' ? ['schedules', 'parked'] : ['schedules'];
  return [];
}

/** Everything that is wrong with one identity, its record and its indexes held against each other (I4). Pure. */
export function judgePlace(place: Place): Problem[] {
  const { bucket, identity, record } = place;
  const problems: Problem[] = [];
  const say = (check: DoctorCheck, detail: string, severity: Severity = 'error') =>
    problems.push({ check, severity, subject: identity, detail: `bucket ${bucket}: ${detail}` });
  if (record === undefined) {
    for (const index of ['due', 'parked', 'plan'] as const) {
      if (place[index] !== undefined) say('dangling', `it stands in ${index}, and there is no record`);
    }
    return problems;
  }
  if (identity.indexOf(':') < 1) say('place', 'the identity names no queue');
  const right = bucketOf(identity);
  // A tick that its queue's gate held has its record beside its schedule.
  const beside = record.kind === 'job' ? bucketOf(jobIdOfRun(identity)) : right;
  if (right !== bucket && beside !== bucket) say('place', `it belongs to bucket ${right}`);
  switch (record.kind) {
    case 'newer':
      say('format', `its format is ${record.format}, this version reads ${RECORD_FORMAT}`);
      break;
    case 'unreadable':
      say('record', record.why);
      break;
    case 'job':
      judgeJob(place, record, say);
      break;
    case 'schedule':
      judgeTicks(record, say);
      judgeSchedule(place, record, say);
      break;
  }
  return problems;
}

type Say = (check: DoctorCheck, detail: string, severity?: Severity) => void;

function judgeJob(place: Place, record: RecordLook & { kind: 'job' }, say: Say): void {
  const { index } = STATES[record.state];
  if (record.state === 'suspended' || record.state === 'ended') {
    say('index', `a one-time job is ${record.state}`);
  }
  expectScore(place, 'due', index === 'due' ? record.at : undefined, record.state, say);
  expectScore(place, 'parked', index === 'parked' ? record.at : undefined, record.state, say);
  if (place.plan !== undefined) say('index', 'a one-time job stands in plan');
}

function judgeSchedule(place: Place, record: RecordLook & { kind: 'schedule' }, say: Say): void {
  const { state, dueAt, note } = record;
  if (state !== 'scheduled') {
    expectScore(place, 'due', undefined, state, say);
    expectScore(place, 'parked', state === 'parked' ? (dueAt ?? 0) : undefined, state, say);
    // A parked one may have asked for its successor before; the planner drops that.
    if (place.plan !== undefined && state !== 'parked') say('index', `it is ${state} and stands in plan`);
    if (state === 'suspended') say('suspended', note === '' ? 'no note says why' : note, 'warning');
    return;
  }
  expectScore(place, 'parked', undefined, state, say);
  if (place.due === undefined && place.plan === undefined) {
    say('silent', 'it is active, and neither has a pending tick in due nor is on plan');
  } else {
    expectScore(place, 'due', dueAt, state, say);
    if (record.asks && place.plan === undefined) {
      say('silent', 'it asks for the planner, and is not on plan');
    }
    if (!record.asks && place.plan !== undefined) say('index', 'it asks for nothing, and stands in plan');
  }
  if (record.waiting > 0 && record.check === 0) {
    say('silent', `${record.waiting} of its runs wait, and nothing looks at them`);
  }
  if (record.unplannable !== undefined) say('definition', record.unplannable);
}

function judgeTicks(
  { last, cur, curFire, next, nextFire }: RecordLook & { kind: 'schedule' },
  say: Say,
): void {
  if (cur > 0 && cur <= last) say('ticks', `its pending tick ${cur} is not after its last one, ${last}`);
  if (cur > 0 && curFire < cur) say('ticks', `its tick ${cur} would fire early, at ${curFire}`);
  if (next > 0 && next <= cur) say('ticks', `its successor ${next} is not after its pending tick ${cur}`);
  if (next > 0 && cur === 0) say('ticks', `it has a successor, ${next}, and no pending tick`);
  if (next > 0 && nextFire < next) say('ticks', `its successor ${next} would fire early, at ${nextFire}`);
}

function expectScore(
  place: Place,
  index: 'due' | 'parked',
  wanted: number | undefined,
  state: RecordState,
  say: Say,
): void {
  const found = place[index];
  if (found === wanted) return;
  if (found === undefined) say('index', `it is ${state} and does not stand in ${index}`);
  else if (wanted === undefined) say('index', `it is ${state} and stands in ${index}`);
  else say('index', `${index} has it at ${found}, its record says ${wanted}`);
}
