import { refuse } from '../config/check.js';
import { type Duration, parseDuration } from '../domain/durations.js';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import { LONGEST_ID } from '../domain/ids.js';
import { type Instant, parseInstant } from '../domain/instant.js';
import type { TimerBackend } from '../queue/timer-backend.js';
import { endOf } from '../redis/job-scripts.js';
import type { JobRecord } from '../redis/record.js';
import { newRequestId } from '../redis/request-id.js';
import { type RunControl, RunControlScripts } from '../redis/run-control-scripts.js';
import { statusError } from '../redis/status.js';
import { changeOf, checkChange, type JobChange, type StoredOptions } from './job-change.js';
import { type RequestOptions, requestOfCall } from './request-ids.js';

/** Of a change of one job. */
export interface EditOptions extends RequestOptions {}

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
    const [id, request] = [checkId(jobId), requestOfCall(options)];
    return this.#wherever(
      id,
      () => this.backend.scripts.reschedule(this.queue, id, time, relative, request),
      () => this.#runs.reschedule(this.queue, id, time, relative, request),
    );
  }

  async pause(jobId: string, options: EditOptions & { note?: string }): Promise<ControlResult> {
    const [id, request] = [checkId(jobId), requestOfCall(options, ['note'])];
    const note = checkText('note', options.note);
    await this.#refuseSchedule(id);
    return this.#wherever(
      id,
      () => this.backend.scripts.pause(this.queue, id, note, request),
      () => this.#runs.pause(this.queue, id, note, request),
    );
  }

  async resume(jobId: string, options: EditOptions): Promise<ControlResult> {
    const [id, request] = [checkId(jobId), requestOfCall(options)];
    await this.#refuseSchedule(id);
    return this.#wherever(
      id,
      () => this.backend.scripts.resume(this.queue, id, request),
      () => this.#runs.resume(this.queue, id, request),
      () => this.#runs.inTurn(this.queue, id, 'resume', '', request),
    );
  }

  async cancel(jobId: string, options: EditOptions & { reason?: string }): Promise<ControlResult> {
    const [id, request] = [checkId(jobId), requestOfCall(options, ['reason'])];
    const reason = checkText('reason', options.reason);
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
    options: EditOptions,
  ): Promise<ControlResult> {
    checkId(jobId);
    const requestId = requestOfCall(options);
    const checked = checkChange(change, this.maxPayload);
    for (let attempt = 1; ; attempt++) {
      const record = await this.#refuseSchedule(jobId);
      const stored =
        record === undefined ? await this.#queuedOptions(jobId) : { ...record, text: record.opts };
      const parts = changeOf(checked, stored);
      try {
        return await this.#wherever(
          jobId,
          () => this.backend.scripts.update(this.queue, jobId, parts, requestId),
          () => this.#runs.update(this.queue, jobId, parts, requestId),
        );
      } catch (error) {
        // Somebody changed it, or another job took the id's place, between the reading and the writing.
        if (attempt === TRIES || !isCarillonError(error, 'CONFLICT') || !error.retryable) throw error;
      }
    }
  }

  /** @throws CarillonError as `update` does for any job */
  checkChange(change: JobChange<unknown, string>): void {
    checkChange(change, this.maxPayload);
  }

  async #queuedOptions(jobId: string): Promise<StoredOptions> {
    const { client } = this.backend.shard;
    const [text, priority] = await client.hmget(this.backend.toKey(jobId), 'opts', 'priority');
    const { lifo } = JSON.parse(text || '{}') as { lifo?: boolean };
    return { text: text ?? '', priority: Number(priority ?? 0), lifo: lifo ?? false };
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

  /** Nobody holds a job of the id: it may be known how the last one ended. */
  async #refuseEnded(jobId: string, error: unknown): Promise<never> {
    if (!isCarillonError(error, 'NOT_FOUND')) throw error;
    const { record, ended } = await this.backend.scripts.get(this.queue, jobId);
    if (record !== undefined || ended === undefined) throw error;
    throw statusError('FINISHED', endOf(ended), 'jobId');
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
      const answer = await inQueue().catch((error: unknown) => this.#refuseEnded(jobId, error));
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

/** Runs of schedules count too, and ids of BullMQ's own making. */
function checkId(value: unknown): string {
  if (typeof value !== 'string' || value === '' || value.length > LONGEST_ID || !value.isWellFormed()) {
    refuse('jobId', value, 'must be the id of a job', 'Give its id as it was added.', 'INVALID_ID');
  }
  return value;
}

/** What is written beside a job for people. @throws CarillonError INVALID_OPTION */
export function checkText(field: string, value: unknown): string {
  if (value === undefined) return '';
  if (typeof value !== 'string' || value.length > LONGEST_NOTE || !value.isWellFormed()) {
    refuse(field, value, `must be a text of at most ${LONGEST_NOTE} characters`, 'Give a short text.');
  }
  return value;
}
