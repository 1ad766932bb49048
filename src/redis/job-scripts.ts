import { bucketOf } from '../domain/buckets.js';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import { identityOf, jobIdOfRun } from '../domain/ids.js';
import { type RecordState, STATES } from '../domain/states.js';
import type { Durability } from './durability.js';
import { decodeRecord, type JobOrSchedule } from './record.js';
import { asBytes, asList, asNumber, asText } from './replies.js';
import { callHash, requestHash } from './request-id.js';
import type { ScriptArgument } from './script-runner.js';
import type { Shard } from './shard.js';
import { statusError } from './status.js';
import type { SubmitBatch, SubmitResult } from './submit-batch.js';

export interface SubmitOptions {
  requestId: string;
  /** ms; how long an ended id answers `fired`. */
  duplicateWindow: number;
  /** 0 for no limit. */
  maxPending: number;
  /** The queue's where nothing is said. */
  durability?: Durability | undefined;
}

/** What to replace in a pending record. */
export interface RecordChange {
  name?: string;
  data?: string;
  opts?: string;
  priority?: number;
  lifo?: boolean;
  /** The options that the new ones were made of: others by then are a CONFLICT. */
  before?: string;
  /** The deduplication that both the old and the new options hold. */
  deduplicationId?: string;
  /** The new options hold a deadline. */
  deadline?: boolean;
}

/** A changed or found record and Redis' clock in ms. */
export interface RecordReply {
  record: JobOrSchedule | undefined;
  now: number;
}

/** Everything that our tier knows of one identity. */
export interface FoundJob {
  now: number;
  record: JobOrSchedule | undefined;
  quarantined: { since: number; reason: string } | undefined;
  /** When an earlier job of the id ended, within the duplicate window. */
  ended: { at: number; how: number } | undefined;
  /** The last tick of a schedule that was deleted within the duplicate window. */
  last: number;
}

/** The numbers of `spent` entries, as words. */
const ENDS = ['ended', 'fired', 'cancelled', 'replaced', 'deleted', 'expired'];

/** How an earlier job of an id ended, as a word. */
export function endOf({ how }: { how: number }): string {
  return ENDS[how] ?? 'ended';
}

/** The calls that producers make on one shard. Each mutating call carries a request id. */
export class JobScripts {
  constructor(private readonly shard: Shard) {}

  /** Stores the jobs of one batch; each is answered by itself, in the batch's order. */
  async submit(
    queue: string,
    batch: SubmitBatch,
    options: SubmitOptions,
  ): Promise<(SubmitResult | CarillonError)[]> {
    const args = [
      this.shard.base,
      this.shard.namespace,
      queue,
      callHash(options.requestId),
      options.duplicateWindow,
      options.maxPending,
      batch.packed,
      batch.afters,
    ];
    const { status, rest } = await this.shard.run('submit-jobs', 'deny-oom', args, options.durability);
    if (status === 'OUT_OF_RANGE' || status === 'PAST_DEADLINE') {
      throw statusError(status, `job ${batch.items[Number(asText(rest[0]))]?.jobId}`, 'delay');
    }
    if (status !== 'OK') throw statusError(status, rest[0] === undefined ? undefined : asText(rest[0]));
    const list = asList(rest[2]);
    const exceptions: { index: number; jobId: string; at: number }[] = [];
    for (let i = 0; i < list.length; i += 3) {
      exceptions.push({ index: asNumber(list[i]), jobId: asText(list[i + 1]), at: asNumber(list[i + 2]) });
    }
    return batch.results(asNumber(rest[0]), asBytes(rest[1]), exceptions);
  }

  /** Moves a job to `time` (ms since 1970, or from now when `relative`). @throws CarillonError NOT_FOUND */
  reschedule(
    queue: string,
    jobId: string,
    time: number,
    relative: boolean,
    requestId: string,
  ): Promise<RecordReply> {
    return this.#edit('reschedule-job', queue, jobId, requestHash(moveOf(relative), requestId), [
      time,
      relative ? 1 : 0,
    ]);
  }

  /** Replaces the parts that are given. @throws CarillonError NOT_FOUND, CONFLICT */
  update(queue: string, jobId: string, change: RecordChange, requestId: string): Promise<RecordReply> {
    return this.#edit('update-job', queue, jobId, requestHash('update', requestId), updateArguments(change));
  }

  /** Ends a pending job, or deletes a schedule; `kind` refuses the other one. @throws CarillonError NOT_FOUND, UNSUPPORTED */
  cancel(
    queue: string,
    jobId: string,
    reason: string,
    requestId: string,
    kind: 'job' | 'schedule' | '' = '',
  ): Promise<RecordReply> {
    return this.#edit(
      'cancel-job',
      queue,
      jobId,
      requestHash('cancel', requestId),
      [reason, kind, 0],
      'allow-oom',
    );
  }

  /** @throws CarillonError NOT_FOUND */
  pause(queue: string, jobId: string, note: string, requestId: string): Promise<RecordReply> {
    return this.#edit('pause-job', queue, jobId, requestHash('pause', requestId), [note]);
  }

  /** @throws CarillonError NOT_FOUND, CONFLICT when it is not paused */
  resume(queue: string, jobId: string, requestId: string): Promise<RecordReply> {
    return this.#edit('resume-job', queue, jobId, requestHash('resume', requestId), []);
  }

  /** Puts a pending job into its queue now. @throws CarillonError NOT_FOUND, QUEUE_BROKEN, ID_IN_USE */
  promote(queue: string, jobId: string, requestId: string): Promise<RecordReply> {
    return this.#edit('promote-job', queue, jobId, requestHash('promote', requestId), [this.shard.namespace]);
  }

  /** Puts a quarantined record back, or drops it for good. @throws CarillonError NOT_FOUND, BAD_RECORD, ID_IN_USE */
  async releaseQuarantine(
    queue: string,
    jobId: string,
    verb: 'release' | 'discard',
    requestId: string,
  ): Promise<RecordReply> {
    const { text, now } = await this.#editText(
      'release-quarantine',
      queue,
      jobId,
      requestHash(verb, requestId),
      [verb],
    ).catch((error: unknown) => {
      throw isCarillonError(error, 'NOT_FOUND') ? notSetAside(queue, jobId) : error;
    });
    // What is discarded is often what nobody can read.
    return { record: verb === 'release' && text.length > 0 ? decodeRecord(text) : undefined, now };
  }

  async get(queue: string, jobId: string): Promise<FoundJob> {
    const identity = identityOf(queue, jobId);
    const ask = async (bucket: number) => {
      const { status, rest } = await this.shard.run('get-job', 'read-only', ['', bucket, identity]);
      if (status !== 'OK') throw statusError(status);
      return rest;
    };
    let rest = await ask(bucketOf(identity));
    const beside = scheduleBucket(queue, jobId);
    if (beside !== undefined && asBytes(rest[1]).length === 0) {
      const there = await ask(beside);
      if (asBytes(there[1]).length > 0) rest = there;
    }
    const record = asBytes(rest[1]);
    const kept = asBytes(rest[2]);
    const endedAt = asNumber(rest[3]);
    return {
      now: asNumber(rest[0]),
      record: record.length > 0 ? decodeRecord(record) : undefined,
      quarantined: kept.length > 0 ? readQuarantined(kept) : undefined,
      ended: endedAt > 0 ? { at: endedAt, how: asNumber(rest[4]) } : undefined,
      last: asNumber(rest[5]),
    };
  }

  /** A page of one bucket's records. The cursor starts and ends at `'0'`; a page may be empty in between. */
  async list(
    bucket: number,
    cursor: string,
    filter: { queue?: string; kind?: 'job' | 'schedule'; states?: readonly RecordState[]; count?: number },
  ): Promise<{ cursor: string; found: { identity: string; bytes: Buffer }[] }> {
    const states = filter.states ? `,${filter.states.map((state) => STATES[state].code).join(',')},` : '';
    const kind = filter.kind === undefined ? '' : filter.kind === 'job' ? '0' : '1';
    const { status, rest } = await this.shard.run('list-jobs', 'read-only', [
      '',
      bucket,
      cursor,
      filter.count ?? 100,
      filter.queue ?? '',
      kind,
      states,
    ]);
    if (status !== 'OK') throw statusError(status);
    const list = asList(rest[1]);
    const found: { identity: string; bytes: Buffer }[] = [];
    for (let i = 0; i < list.length; i += 2)
      found.push({ identity: asText(list[i]), bytes: asBytes(list[i + 1]) });
    return { cursor: asText(rest[0]), found };
  }

  /** A page of one bucket's timers in order of fire time; `next` is -1 at the end. */
  async listDue(
    bucket: number,
    offset: number,
    count: number,
    filter: { queue?: string; latestFirst?: boolean; jobsOnly?: boolean } = {},
  ): Promise<{ next: number; timers: { identity: string; fireAt: number }[] }> {
    const { status, rest } = await this.shard.run('list-due', 'read-only', [
      '',
      bucket,
      offset,
      count,
      filter.queue ?? '',
      filter.latestFirst ? 1 : 0,
      filter.jobsOnly ? 1 : 0,
    ]);
    if (status !== 'OK') throw statusError(status);
    const list = asList(rest[1]);
    const timers: { identity: string; fireAt: number }[] = [];
    for (let i = 0; i < list.length; i += 2) {
      timers.push({ identity: asText(list[i]), fireAt: asNumber(list[i + 1]) });
    }
    return { next: asNumber(rest[0]), timers };
  }

  /**
   * Ends a deduplication while its job waits in the timers.
   * @param jobId drops it only if it is this job's.
   * @returns whether one stood.
   */
  async dropDedup(queue: string, id: string, jobId = ''): Promise<boolean> {
    const { status, rest } = await this.shard.run('drop-dedup', 'allow-oom', [queue, id, jobId]);
    if (status !== 'OK') throw statusError(status);
    return asNumber(rest[0]) === 1;
  }

  /** The id of the job that a deduplication names while it waits in the timers. */
  async getDedup(queue: string, id: string): Promise<string | undefined> {
    await this.shard.ready();
    const entry = await this.shard.client.hgetBuffer(this.shard.keys.dedup(queue), id);
    if (entry === null) return undefined;
    const { inc, expiry, jobId } = readDedup(entry);
    const { record, now } = await this.get(queue, jobId);
    const stands = record?.inc === inc && (expiry === 0 || expiry > now);
    return stands ? jobId : undefined;
  }

  async #edit(
    script: string,
    queue: string,
    jobId: string,
    request: Buffer,
    args: readonly ScriptArgument[],
    flag: 'deny-oom' | 'allow-oom' = 'deny-oom',
  ): Promise<RecordReply> {
    const { text, now } = await this.#editText(script, queue, jobId, request, args, flag);
    return { record: text.length > 0 ? decodeRecord(text) : undefined, now };
  }

  async #editText(
    script: string,
    queue: string,
    jobId: string,
    request: Buffer,
    args: readonly ScriptArgument[],
    flag: 'deny-oom' | 'allow-oom' = 'deny-oom',
  ): Promise<{ text: Buffer; now: number }> {
    const identity = identityOf(queue, jobId);
    const call = (bucket: number) =>
      this.shard.run(script, flag, [this.shard.base, bucket, identity, request, ...args]);
    let { status, rest } = await call(bucketOf(identity));
    const beside = scheduleBucket(queue, jobId);
    if (status === 'NOT_FOUND' && beside !== undefined) ({ status, rest } = await call(beside));
    if (status !== 'OK')
      throw statusError(status, rest[0] === undefined ? undefined : asText(rest[0]), 'jobId');
    return { text: asBytes(rest[0]), now: asNumber(rest[1]) };
  }
}

/** Where the record of a held tick stands: beside that of its schedule. */
function scheduleBucket(queue: string, runId: string): number | undefined {
  const jobId = jobIdOfRun(runId);
  return jobId === runId ? undefined : bucketOf(identityOf(queue, jobId));
}

/** The operation that moves a job to another time. */
export function moveOf(relative: boolean): 'changeDelay' | 'reschedule' {
  return relative ? 'changeDelay' : 'reschedule';
}

/** What the scripts that update a job are given of a change. */
export function updateArguments(change: RecordChange): ScriptArgument[] {
  const parts =
    (change.name === undefined ? '' : 'n') +
    (change.data === undefined ? '' : 'd') +
    (change.opts === undefined ? '' : 'o') +
    (change.priority === undefined && change.lifo === undefined ? '' : 'p') +
    (change.before === undefined ? '' : 'b');
  return [
    parts,
    change.name ?? '',
    change.data ?? '',
    change.opts ?? '',
    change.priority ?? 0,
    change.lifo ? 1 : 0,
    change.deduplicationId ?? '',
    change.deadline ? 1 : 0,
    change.before ?? '',
  ];
}

/** An entry of `T:dedup:<queue>`, see lua/lib/dedup.lua: >I7 inc, I6 expiry or 0, B bucket, job id. */
function readDedup(bytes: Buffer): { inc: number; expiry: number; jobId: string } {
  return {
    inc: bytes.readUIntBE(0, 3) * 0x100000000 + bytes.readUInt32BE(3),
    expiry: bytes.readUIntBE(7, 6),
    jobId: bytes.toString('utf8', 14),
  };
}

function readQuarantined(bytes: Buffer): { since: number; reason: string } {
  const length = bytes.readUInt16BE(6);
  return { since: bytes.readUIntBE(0, 6), reason: bytes.toString('utf8', 8, 8 + length) };
}

function notSetAside(queue: string, jobId: string): CarillonError {
  return new CarillonError('NOT_FOUND', `nothing of the queue ${queue} is set aside under this id`, {
    field: 'jobId',
    given: jobId,
    todo: 'Check queue and id; `carillon quarantine list` shows what is.',
  });
}
