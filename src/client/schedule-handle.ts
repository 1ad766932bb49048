import { checkInteger } from '../config/check.js';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import type { ExplainedTime } from '../domain/fire-times-explain.js';
import { compileStored, type StoredPolicies } from '../domain/schedule.js';
import type { JobScripts } from '../redis/job-scripts.js';
import type { ScheduleRecord } from '../redis/record.js';
import { newRequestId } from '../redis/request-id.js';
import { checkRequestId } from './job-options.js';
import { describeSchedule, type ScheduleInfo } from './schedule-info.js';

/** Sent again with each repeat of the same change, which then has its effect once. */
interface ChangeOptions {
  /** Defaults to a new random one a call. */
  requestId?: string;
}

const LONGEST_NOTE = 500;

/** One schedule of a queue, by its id. */
export class ScheduleHandle {
  constructor(
    private readonly queueName: string,
    readonly id: string,
    private readonly jobs: JobScripts,
  ) {}

  /** Its definition, state and pending tick; undefined when there is no such schedule. */
  async describe(): Promise<ScheduleInfo | undefined> {
    const { record } = await this.jobs.get(this.queueName, this.id);
    return record?.kind === 'schedule' ? describeSchedule(this.queueName, this.id, record) : undefined;
  }

  /**
   * Its next `count` ticks as they would come now, each with what a clock change did to it; without jitter. Fewer if
   * the schedule ends before.
   * @param count 1 to 1,000; defaults to 10.
   * @throws CarillonError NOT_FOUND, INVALID_OPTION
   */
  async preview(count = 10): Promise<ExplainedTime[]> {
    checkInteger('count', count, 1, 1000);
    const { record, now } = await this.#read();
    const policies = JSON.parse(record.policies) as StoredPolicies;
    const left = policies.limit === undefined ? count : Math.max(0, policies.limit - record.count);
    const timing = compileStored(policies, `${this.queueName}:${this.id}`, record.anchor);
    return timing.explainNext(Math.max(now, record.last), Math.min(count, left));
  }

  /**
   * Keeps it from firing until it is resumed.
   * @param options.note why, for people: up to 500 bytes.
   * @throws CarillonError NOT_FOUND, INVALID_OPTION
   */
  async pause(options: ChangeOptions & { note?: string } = {}): Promise<void> {
    const note = checkNote('note', options.note);
    await this.#read();
    await this.jobs.pause(this.queueName, this.id, note, requestOf(options));
  }

  /**
   * Lets a paused or suspended schedule fire again. Of the ticks in between `skip` runs none, `latest` at most the
   * newest.
   * @throws CarillonError NOT_FOUND; CONFLICT when it is neither.
   */
  async resume(options: ChangeOptions = {}): Promise<void> {
    await this.#read();
    await this.jobs.resume(this.queueName, this.id, requestOf(options));
  }

  /**
   * Deletes it. Runs that are in the BullMQ queue already stay there. A schedule that is created anew under its id
   * fires no tick that it fired.
   * @param options.reason why, for people: up to 500 bytes.
   * @returns true when there was one.
   */
  async delete(options: ChangeOptions & { reason?: string } = {}): Promise<boolean> {
    const reason = checkNote('reason', options.reason);
    try {
      await this.jobs.cancel(this.queueName, this.id, reason, requestOf(options), 'schedule');
      return true;
    } catch (error) {
      if (isCarillonError(error, 'NOT_FOUND')) return false;
      throw error;
    }
  }

  async #read(): Promise<{ record: ScheduleRecord; now: number }> {
    const { record, now } = await this.jobs.get(this.queueName, this.id);
    if (record?.kind === 'schedule') return { record, now };
    throw new CarillonError(
      'NOT_FOUND',
      `the queue ${this.queueName} has no schedule ${JSON.stringify(this.id)}`,
      {
        field: 'scheduleId',
        given: this.id,
        todo: 'Check the id; `carillon schedules list` shows all.',
      },
    );
  }
}

function requestOf({ requestId }: ChangeOptions): string {
  return requestId === undefined ? newRequestId() : checkRequestId(requestId);
}

/** A note is for people: short text. @throws CarillonError INVALID_OPTION */
function checkNote(field: string, note: unknown): string {
  if (note === undefined) return '';
  if (typeof note === 'string' && Buffer.byteLength(note) <= LONGEST_NOTE) return note;
  throw new CarillonError('INVALID_OPTION', `${field} must be a text of at most ${LONGEST_NOTE} bytes`, {
    field,
    given: note,
    todo: 'Write a shorter one.',
  });
}
