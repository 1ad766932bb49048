import { CarillonError } from '../domain/errors.js';
import type { ExplainedTime } from '../domain/fire-times-explain.js';
import { type Instant, parseInstant } from '../domain/instant.js';
import { compileStored, type StoredPolicies } from '../domain/schedule.js';
import type { JobScripts } from '../redis/job-scripts.js';
import type { ScheduleRecord } from '../redis/record.js';
import { newRequestId, requestHash } from '../redis/request-id.js';
import type { LedgerRow, ScheduleScripts } from '../redis/schedule-scripts.js';
import type { ScheduleInfo } from './schedules.js';

/** One schedule of a queue, by its id. */
export class ScheduleHandle {
  constructor(
    private readonly queueName: string,
    readonly id: string,
    private readonly jobs: JobScripts,
    private readonly scripts: ScheduleScripts,
    private readonly toInfo: (id: string, record: ScheduleRecord) => ScheduleInfo,
  ) {}

  /** Its definition, state and pending tick; undefined when there is no such schedule. */
  async describe(): Promise<ScheduleInfo | undefined> {
    const { record } = await this.jobs.get(this.queueName, this.id);
    return record?.kind === 'schedule' ? this.toInfo(this.id, record) : undefined;
  }

  /**
   * Its next `count` ticks as they would come now, each with what a clock change did to it.
   * @param count 1 to 1,000; defaults to 10.
   * @throws CarillonError NOT_FOUND, INVALID_OPTION
   */
  async preview(count = 10): Promise<ExplainedTime[]> {
    if (!Number.isSafeInteger(count) || count < 1 || count > 1000) {
      throw new CarillonError('INVALID_OPTION', 'count must be a whole number from 1 to 1000', {
        field: 'count',
        given: count,
      });
    }
    const { record, now } = await this.jobs.get(this.queueName, this.id);
    if (record?.kind !== 'schedule') throw this.#notFound();
    const policies = JSON.parse(record.policies) as StoredPolicies;
    return compileStored(policies, `${this.queueName}:${this.id}`, record.anchor).explainNext(
      Math.max(now, record.last),
      count,
    );
  }

  /** Keeps it from firing until it is resumed; the ticks of the pause are not run afterwards, but by its missed policy. */
  async pause(options: { note?: string; requestId?: string } = {}): Promise<void> {
    await this.#existing();
    await this.jobs.pause(
      this.queueName,
      this.id,
      checkNote(options.note),
      options.requestId ?? newRequestId(),
    );
  }

  /** `skip` runs no tick of the pause, `latest` at most the newest. */
  async resume(options: { requestId?: string } = {}): Promise<void> {
    await this.#existing();
    await this.jobs.resume(this.queueName, this.id, options.requestId ?? newRequestId());
  }

  /** Deletes it. Runs that are in the BullMQ queue already stay there. True when there was one. */
  async delete(options: { reason?: string; requestId?: string } = {}): Promise<boolean> {
    const { record } = await this.jobs.get(this.queueName, this.id);
    if (record?.kind !== 'schedule') return false;
    await this.jobs.cancel(
      this.queueName,
      this.id,
      options.reason ?? '',
      options.requestId ?? newRequestId(),
    );
    return true;
  }

  /**
   * Runs it now, beside its ticks. The run's id is `<schedule>@<now>+<request>`.
   * @param options.overlap `allow` (the default) starts at once, `policy` takes its turn behind open runs.
   * @throws CarillonError NOT_FOUND, QUEUE_BROKEN, QUOTA when it has as many open runs as it may
   */
  async trigger(options: { overlap?: 'allow' | 'policy'; requestId?: string } = {}): Promise<ScheduleInfo> {
    const requestId = options.requestId ?? newRequestId();
    const suffix = `+${requestHash(requestId).toString('hex').slice(0, 12)}`;
    const inTurn = options.overlap === 'policy';
    return this.toInfo(
      this.id,
      await this.scripts.trigger(this.queueName, this.id, suffix, inTurn, requestId),
    );
  }

  /**
   * Runs ticks of the past, one at a time, in order. A tick whose job BullMQ still holds is not run again, unless
   * `rerun` gives its run another id.
   * @param range both ends included.
   * @returns the ticks; with `dryRun` nothing is run.
   * @throws CarillonError NOT_FOUND, INVALID_OPTION for more than 1,000 ticks
   */
  async backfill(range: {
    from: Instant;
    to: Instant;
    rerun?: boolean;
    dryRun?: boolean;
    requestId?: string;
  }): Promise<Date[]> {
    const from = parseInstant(range.from, 'from');
    const to = parseInstant(range.to, 'to');
    const { record, now } = await this.jobs.get(this.queueName, this.id);
    if (record?.kind !== 'schedule') throw this.#notFound();
    if (to < from || to > now) {
      throw new CarillonError('INVALID_OPTION', 'to must lie between from and now', {
        field: 'to',
        given: range.to,
        todo: 'Give a span of the past.',
      });
    }
    const policies = JSON.parse(record.policies) as StoredPolicies;
    const timing = compileStored(policies, `${this.queueName}:${this.id}`, record.anchor);
    const ticks: number[] = [];
    for (let tick = timing.next(from - 1); tick !== undefined && tick <= to; tick = timing.next(tick)) {
      ticks.push(tick);
      if (ticks.length > MOST_TICKS) {
        throw new CarillonError('INVALID_OPTION', `the span holds more than ${MOST_TICKS} ticks`, {
          field: 'to',
          given: range.to,
          todo: 'Backfill it in shorter spans.',
        });
      }
    }
    if (!range.dryRun && ticks.length > 0) {
      const requestId = range.requestId ?? newRequestId();
      const suffix = range.rerun ? `+r${requestHash(requestId).toString('hex').slice(0, 8)}` : '';
      await this.scripts.backfill(this.queueName, this.id, ticks, suffix, requestId);
    }
    return ticks.map((tick) => new Date(tick));
  }

  /** What became of its last ticks, oldest first: run, or skipped and why. */
  runs(): Promise<LedgerRow[]> {
    return this.scripts.ledger(this.queueName, this.id);
  }

  async #existing(): Promise<void> {
    const { record } = await this.jobs.get(this.queueName, this.id);
    if (record?.kind !== 'schedule') throw this.#notFound();
  }

  #notFound(): CarillonError {
    return new CarillonError(
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

const MOST_TICKS = 1000;
const LONGEST_NOTE = 500;

/** A note is for people: short text. @throws CarillonError INVALID_OPTION */
export function checkNote(note: unknown): string {
  if (note === undefined) return '';
  if (typeof note === 'string' && Buffer.byteLength(note) <= LONGEST_NOTE) return note;
  throw new CarillonError('INVALID_OPTION', `a note must be a text of at most ${LONGEST_NOTE} bytes`, {
    field: 'note',
    given: note,
  });
}
