import { refuse } from '../config/check.js';
import { type Duration, parseDuration } from '../domain/durations.js';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import { checkJobName, LONGEST_ID } from '../domain/ids.js';
import { type Instant, parseInstant } from '../domain/instant.js';
import { encodeData } from '../queue/payload.js';
import type { TimerBackend } from '../queue/timer-backend.js';
import type { RecordChange } from '../redis/job-scripts.js';
import type { JobRecord } from '../redis/record.js';
import { newRequestId } from '../redis/request-id.js';
import { type RunControl, RunControlScripts } from '../redis/run-control-scripts.js';
import { checkRequestId, type JobOptions, resolveOptions } from './job-options.js';
import { PARENT_KEYS } from './job-parents.js';

/** Sent with each repeat of the same change, which then has its effect once. */
export interface EditOptions {
  /** Defaults to a new random one a call. */
  requestId?: string;
}

/** What a waiting job is to be instead; what is left out stays. */
export interface JobChange<Data, Name extends string> {
  name?: Name;
  data?: Data;
  /** All options anew, over the queue's defaults; time, id and deduplication stay. */
  opts?: JobOptions;
}

/** Time, id and deduplication are given once, when a job is added. */
const GIVEN_ONCE = [
  'at',
  'deduplication',
  'delay',
  'duplicateWindow',
  'ifExists',
  'jobId',
  'requestId',
  'timestamp',
  ...PARENT_KEYS,
] as const;
const LONGEST_NOTE = 1000;
const TRIES = 5;

/** Where a change met the job. */
export interface ControlResult {
  /**
   * `timers`: it waits for its time, for others, or is paused. `queue`: BullMQ has it, and no worker does. `worker`: the
   * worker that runs it was asked; it hears of it within a second.
   */
  where: 'timers' | 'queue' | 'worker';
}

/**
 * Changes to one job of a queue, wherever it is. Each change is one atomic script on the side where the job is; a job
 * that changes sides meanwhile is asked for again, so that one of two racing changes finds what the other left.
 * docs/job-control.md has the table of who wins.
 */
export class JobControl {
  readonly #runs: RunControlScripts;

  constructor(
    private readonly backend: TimerBackend,
    private readonly queue: string,
    private readonly maxPayload: number,
  ) {
    this.#runs = new RunControlScripts(backend.shard);
  }

  async changeDelay(jobId: string, delay: Duration, options: EditOptions): Promise<ControlResult> {
    const ms = parseDuration(delay, { field: 'delay' });
    return this.#reschedule(jobId, ms, true, options);
  }

  async reschedule(jobId: string, at: Instant, options: EditOptions): Promise<ControlResult> {
    return this.#reschedule(jobId, parseInstant(at, 'at'), false, options);
  }

  #reschedule(jobId: string, time: number, relative: boolean, options: EditOptions): Promise<ControlResult> {
    const [id, request] = [checkId(jobId), requestOf(options)];
    return this.#wherever(
      id,
      () => this.backend.scripts.reschedule(this.queue, id, time, relative, request),
      () => this.#runs.reschedule(this.queue, id, time, relative, request),
    );
  }

  async pause(jobId: string, options: EditOptions & { note?: string }): Promise<ControlResult> {
    const [id, note, request] = [checkId(jobId), checkText('note', options.note), requestOf(options)];
    await this.#refuseSchedule(id);
    return this.#wherever(
      id,
      () => this.backend.scripts.pause(this.queue, id, note, request),
      () => this.#runs.pause(this.queue, id, note, request),
    );
  }

  async resume(jobId: string, options: EditOptions): Promise<ControlResult> {
    const [id, request] = [checkId(jobId), requestOf(options)];
    await this.#refuseSchedule(id);
    return this.#wherever(
      id,
      () => this.backend.scripts.resume(this.queue, id, request),
      () => this.#runs.resume(this.queue, id, request),
      () => this.#runs.inTurn(this.queue, id, 'resume', '', request),
    );
  }

  async cancel(jobId: string, options: EditOptions & { reason?: string }): Promise<ControlResult> {
    const [id, reason, request] = [checkId(jobId), checkText('reason', options.reason), requestOf(options)];
    return this.#wherever(
      id,
      () => this.backend.scripts.cancel(this.queue, id, reason, request, 'job'),
      () => this.#runs.cancel(this.queue, id, reason, request),
      () => this.#runs.inTurn(this.queue, id, 'cancel', reason, request),
    );
  }

  async update(
    jobId: string,
    change: JobChange<unknown, string>,
    defaults: JobOptions,
    options: EditOptions,
  ): Promise<ControlResult> {
    checkId(jobId);
    const requestId = requestOf(options);
    const parts: RecordChange = {};
    if (change.name !== undefined) parts.name = checkJobName(change.name);
    if (change.data !== undefined) parts.data = encodeData(change.data, this.maxPayload);
    for (let attempt = 1; ; attempt++) {
      const record = await this.#refuseSchedule(jobId);
      if (change.opts !== undefined) {
        const kept = record === undefined ? await this.#queuedDeduplication(jobId) : deduplicationOf(record);
        Object.assign(parts, encodeChange(change.opts, defaults, kept));
      }
      try {
        return await this.#wherever(
          jobId,
          () => this.backend.scripts.update(this.queue, jobId, parts, requestId),
          () => this.#runs.update(this.queue, jobId, parts, requestId),
        );
      } catch (error) {
        // Another job took the id's place between the reading and the writing.
        if (attempt === TRIES || !isCarillonError(error, 'CONFLICT') || !error.retryable) throw error;
      }
    }
  }

  /** What a run in BullMQ is deduplicated by; it stays with the run. */
  async #queuedDeduplication(jobId: string): Promise<JobOptions['deduplication'] | undefined> {
    const json = await this.backend.getJobData(jobId);
    return json?.opts.deduplication;
  }

  async #refuseSchedule(jobId: string): Promise<JobRecord | undefined> {
    const { record } = await this.backend.scripts.get(this.queue, jobId);
    if (record?.kind !== 'schedule') return record;
    throw new CarillonError('UNSUPPORTED', 'the id belongs to a schedule, not to a one-time job', {
      field: 'jobId',
      given: jobId,
      todo: 'Use queue.schedules.get(id).',
    });
  }

  /**
   * In the order in which a job moves: a tick that waits for its turn, the timers, BullMQ; again when the job came back
   * into the timers meanwhile.
   */
  async #wherever(
    jobId: string,
    inTimers: () => Promise<unknown>,
    inQueue: () => Promise<RunControl>,
    inTurn = () => this.#runs.inTurn(this.queue, jobId, 'change', '', newRequestId()),
  ): Promise<ControlResult> {
    if (await inTurn()) return { where: 'timers' };
    for (let attempt = 1; ; attempt++) {
      try {
        await inTimers();
        return { where: 'timers' };
      } catch (error) {
        if (!isCarillonError(error, 'NOT_FOUND')) throw error;
      }
      const answer = await inQueue();
      if (answer !== 'pending') return { where: answer === 'asked' ? 'worker' : 'queue' };
      if (attempt === TRIES) {
        throw new CarillonError('CONFLICT', 'the job was moved each time it was looked for', {
          field: 'jobId',
          given: jobId,
          todo: 'Repeat the call.',
          retryable: true,
        });
      }
    }
  }
}

function encodeChange(
  opts: JobOptions,
  defaults: JobOptions,
  kept: JobOptions['deduplication'],
): RecordChange {
  for (const key of GIVEN_ONCE) {
    if (opts[key] !== undefined) {
      refuse(`opts.${key}`, opts[key], 'is given once, when a job is added', 'Leave it out.');
    }
  }
  const merged: JobOptions = { ...defaults, ...opts };
  for (const key of GIVEN_ONCE) delete merged[key];
  if (kept !== undefined) merged.deduplication = kept;
  const { text, priority, lifo, deadline } = resolveOptions(merged);
  const change: RecordChange = { opts: text, priority, lifo, deadline: deadline !== undefined };
  if (merged.deduplication !== undefined) change.deduplicationId = merged.deduplication.id;
  return change;
}

function deduplicationOf(record: JobRecord): JobOptions['deduplication'] {
  return record.opts === '' ? undefined : (JSON.parse(record.opts).de as JobOptions['deduplication']);
}

/** Runs of schedules count too, and ids of BullMQ's own making. */
function checkId(value: unknown): string {
  if (typeof value !== 'string' || value === '' || value.length > LONGEST_ID || !value.isWellFormed()) {
    refuse('jobId', value, 'must be the id of a job', 'Give its id as it was added.', 'INVALID_ID');
  }
  return value;
}

function requestOf(options: EditOptions): string {
  return options.requestId === undefined ? newRequestId() : checkRequestId(options.requestId);
}

function checkText(field: string, value: unknown): string {
  if (value === undefined) return '';
  if (typeof value !== 'string' || value.length > LONGEST_NOTE || !value.isWellFormed()) {
    refuse(field, value, `must be a text of at most ${LONGEST_NOTE} characters`, 'Give a short text.');
  }
  return value;
}
