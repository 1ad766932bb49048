import { refuse } from '../config/check.js';
import { type Duration, parseDuration } from '../domain/durations.js';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import { checkJobId, checkJobName } from '../domain/ids.js';
import { encodeData } from '../queue/payload.js';
import type { TimerBackend } from '../queue/timer-backend.js';
import type { RecordChange } from '../redis/job-scripts.js';
import type { JobRecord } from '../redis/record.js';
import { newRequestId } from '../redis/request-id.js';
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

/** Changes to one job of a queue while it waits for its time. */
export class PendingEdits {
  constructor(
    private readonly backend: TimerBackend,
    private readonly queue: string,
    private readonly maxPayload: number,
  ) {}

  async changeDelay(jobId: string, delay: Duration, options: EditOptions): Promise<void> {
    checkJobId(jobId);
    const ms = parseDuration(delay, { field: 'delay' });
    await this.#edit(jobId, this.backend.scripts.reschedule(this.queue, jobId, ms, true, requestOf(options)));
  }

  async pause(jobId: string, options: EditOptions & { note?: string }): Promise<void> {
    await this.#refuseSchedule(checkJobId(jobId));
    const note = checkText('note', options.note);
    await this.#edit(jobId, this.backend.scripts.pause(this.queue, jobId, note, requestOf(options)));
  }

  async resume(jobId: string, options: EditOptions): Promise<void> {
    await this.#refuseSchedule(checkJobId(jobId));
    await this.#edit(jobId, this.backend.scripts.resume(this.queue, jobId, requestOf(options)));
  }

  async cancel(jobId: string, options: EditOptions & { reason?: string }): Promise<void> {
    checkJobId(jobId);
    const reason = checkText('reason', options.reason);
    await this.#edit(
      jobId,
      this.backend.scripts.cancel(this.queue, jobId, reason, requestOf(options), 'job'),
    );
  }

  async update(
    jobId: string,
    change: JobChange<unknown, string>,
    defaults: JobOptions,
    options: EditOptions,
  ): Promise<void> {
    checkJobId(jobId);
    const requestId = requestOf(options);
    const parts: RecordChange = {};
    if (change.name !== undefined) parts.name = checkJobName(change.name);
    if (change.data !== undefined) parts.data = encodeData(change.data, this.maxPayload);
    for (let attempt = 1; ; attempt++) {
      const record = await this.#refuseSchedule(jobId);
      if (change.opts !== undefined) Object.assign(parts, encodeChange(change.opts, defaults, record));
      try {
        await this.#edit(jobId, this.backend.scripts.update(this.queue, jobId, parts, requestId));
        return;
      } catch (error) {
        // Another job took the id's place between the reading and the writing.
        if (attempt === TRIES || !isCarillonError(error, 'CONFLICT')) throw error;
      }
    }
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

  /** A job that the timers do not hold is told apart from one that has left them. */
  async #edit(jobId: string, call: Promise<unknown>): Promise<void> {
    try {
      await call;
    } catch (error) {
      if (!isCarillonError(error, 'NOT_FOUND')) throw error;
      const state = await this.backend.getState(jobId);
      if (state === 'unknown') throw error;
      throw new CarillonError('CONFLICT', `the job has left the timers: it is ${state}`, {
        field: 'jobId',
        given: jobId,
        todo: 'Use BullMQ’s methods: queue.getJob(id), then job.remove(), job.changePriority() and so on.',
        cause: error,
      });
    }
  }
}

function encodeChange(opts: JobOptions, defaults: JobOptions, record: JobRecord | undefined): RecordChange {
  for (const key of GIVEN_ONCE) {
    if (opts[key] !== undefined) {
      refuse(`opts.${key}`, opts[key], 'is given once, when a job is added', 'Leave it out.');
    }
  }
  const merged: JobOptions = { ...defaults, ...opts };
  for (const key of GIVEN_ONCE) delete merged[key];
  const kept =
    record === undefined || record.opts === '' ? undefined : (JSON.parse(record.opts).de as unknown);
  if (kept !== undefined) merged.deduplication = kept as JobOptions['deduplication'];
  const { text, priority, lifo, deadline } = resolveOptions(merged);
  const change: RecordChange = { opts: text, priority, lifo, deadline: deadline !== undefined };
  if (merged.deduplication !== undefined) change.deduplicationId = merged.deduplication.id;
  return change;
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
