import { checkCall } from '../config/call-options.js';
import { checkInteger } from '../config/check.js';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import { calendarsOf } from '../domain/exclusions-definition.js';
import type { CompiledTiming } from '../domain/fire-times.js';
import { identityOf, tickRunId } from '../domain/ids.js';
import { type Instant, parseInstant } from '../domain/instant.js';
import { type PreviewedTime, previewTicks } from '../domain/preview.js';
import { compileStored, type StoredPolicies } from '../domain/schedule.js';
import { MAX_WAITING_RUNS, type ScheduleRecord } from '../redis/record.js';
import { requestHash } from '../redis/request-id.js';
import { calendarsIfIdle } from './named-calendars.js';
import { type RequestOptions, requestOf } from './request-ids.js';
import {
  changedPolicies,
  changedTemplate,
  differencesOf,
  type ScheduleDefinitionChange,
  type ScheduleTemplateChange,
  type UpdatedSchedule,
} from './schedule-change.js';
import {
  describeWhole,
  joinOutcomes,
  type ScheduleDescription,
  type ScheduleRunRow,
} from './schedule-description.js';
import { describeSchedule, describeStored, type ScheduleInfo } from './schedule-info.js';
import { scheduleNotFound } from './schedule-not-found.js';
import type { SchedulesPort, ScheduleTemplate } from './schedules-port.js';
import { storeSchedule } from './store-schedule.js';

/** Which ticks of the past run, and how. */
export interface BackfillRange extends RequestOptions {
  from: Instant;
  /** Not later than now. */
  to: Instant;
  /** `bufferAll` (the default) runs one at a time, `allow` as many beside each other as `maxOpenRuns` lets. */
  overlap?: 'bufferAll' | 'allow';
  /** Runs also what ran before, under ids of its own. */
  rerun?: boolean;
  /** Only tells which ticks would run. */
  dryRun?: boolean;
}

const LONGEST_NOTE = 500;
/** A host's clock may be so far ahead of Redis', ms: its `new Date()` is now. */
const CLOCKS_APART = 1000;

/** One schedule of a queue, by its id. */
export class ScheduleHandle<Data = unknown, Name extends string = string, Opts = unknown> {
  constructor(
    private readonly port: SchedulesPort,
    readonly id: string,
  ) {}

  /**
   * Its definition with the policies in words, its state and why, the next ten ticks and the last ten; undefined when
   * there is no such schedule.
   */
  async describe(): Promise<ScheduleDescription | undefined> {
    const { queueName, jobs } = this.port;
    const { record } = await jobs.get(queueName, this.id);
    if (record?.kind !== 'schedule') return undefined;
    const calendars = await calendarsIfIdle(this.port.calendars, record);
    const info = describeSchedule(queueName, this.id, record, calendars);
    // A definition that this machine cannot compile is described without its ticks; the warnings say why.
    const upcoming = await this.preview(10).catch((): PreviewedTime[] => []);
    const repeats = await this.port.repeatsOf(record.name);
    return describeWhole(info, repeats, upcoming, await this.runs(10));
  }

  /**
   * Its next `count` ticks as they would come now, each with what a clock change did to it, what was excluded before it
   * and when it fires. Fewer if the schedule ends before.
   * @param count 1 to 1,000; defaults to 10.
   * @throws CarillonError NOT_FOUND, INVALID_OPTION
   */
  async preview(count = 10): Promise<PreviewedTime[]> {
    checkInteger('count', count, 1, 1000);
    const { record, now } = await this.#read();
    const policies = JSON.parse(record.policies) as StoredPolicies;
    const left = policies.limit === undefined ? count : Math.max(0, policies.limit - record.count);
    const timing = await this.#compile(policies, record);
    const identity = identityOf(this.port.queueName, this.id);
    return previewTicks(timing, policies, identity, Math.max(now, record.last), Math.min(count, left));
  }

  /**
   * Changes what is named here and keeps all else: the definition's options, and the parts of the template. The whole is
   * checked before anything is written; what others change in the meantime is kept too. Pending ticks move only when the
   * times become others, as with `upsert`: nothing fires in retrospect, a paused schedule stays paused, and other times
   * start again one that has ended or was suspended.
   * @param changes see {@link ScheduleDefinitionChange}: what is left out stays, `null` takes an option away.
   * @param template see {@link ScheduleTemplateChange}: name, payload, and single options.
   * @param options.dryRun only tells what would be; nothing is written.
   * @returns the schedule after it, and what became otherwise.
   * @throws CarillonError NOT_FOUND, CONFLICT, and as `upsert`; nothing was written, unless the code is
   *   REDIS_UNAVAILABLE: then repeat the call, with the same `requestId`.
   */
  async update(
    changes: ScheduleDefinitionChange,
    template: ScheduleTemplateChange<Data, Name, Opts> = {},
    options: RequestOptions & { dryRun?: boolean } = {},
  ): Promise<UpdatedSchedule> {
    checkCall(options, ['requestId'], ['dryRun']);
    const { queueName } = this.port;
    const encode = (given: ScheduleTemplate) => this.port.encodeTemplate(this.id, given);
    const stored = await storeSchedule(
      this.port,
      this.id,
      ({ record }) => {
        if (record?.kind !== 'schedule') throw scheduleNotFound(queueName, this.id);
        return {
          policies: changedPolicies(record, changes, identityOf(queueName, this.id)),
          template: changedTemplate(record, template, encode),
        };
      },
      { ...options, operation: 'update' },
    );
    const info = describeStored(queueName, this.id, stored);
    const before = describeSchedule(queueName, this.id, stored.before ?? stored.after);
    return { ...info, differences: differencesOf(before, info) };
  }

  /**
   * Keeps it from firing until it is resumed.
   * @param options.note why, for people: up to 500 bytes.
   * @throws CarillonError NOT_FOUND, INVALID_OPTION
   */
  async pause(options: RequestOptions & { note?: string } = {}): Promise<void> {
    checkCall(options, ['note', 'requestId']);
    const note = checkNote('note', options.note);
    await this.#read();
    await this.port.jobs.pause(this.port.queueName, this.id, note, requestOf(options));
  }

  /**
   * Lets a paused or suspended schedule fire again. Of the ticks in between `skip` runs none, `latest` at most the
   * newest.
   * @throws CarillonError NOT_FOUND; CONFLICT when it is neither.
   */
  async resume(options: RequestOptions = {}): Promise<void> {
    checkCall(options, ['requestId']);
    await this.#read();
    await this.port.jobs.resume(this.port.queueName, this.id, requestOf(options));
  }

  /**
   * Deletes it, with its ledger and the runs that wait for their turn. A schedule that is created anew under its id fires
   * no tick that it fired.
   * @param options.reason why, for people: up to 500 bytes.
   * @param options.cancelRuns also takes its runs out of the BullMQ queue that no worker has fetched; else they stay.
   * @returns true when there was one.
   */
  async delete(options: RequestOptions & { reason?: string; cancelRuns?: boolean } = {}): Promise<boolean> {
    checkCall(options, ['reason', 'requestId'], ['cancelRuns']);
    const reason = checkNote('reason', options.reason);
    const { scripts, queueName } = this.port;
    try {
      await scripts.delete(queueName, this.id, reason, options.cancelRuns === true, requestOf(options));
      return true;
    } catch (error) {
      if (isCarillonError(error, 'NOT_FOUND')) return false;
      throw error;
    }
  }

  /**
   * Runs it now, beside its ticks. The run's id is `<schedule>@<now>+<request>`.
   * @param options.overlap `allow` (the default) starts at once, `policy` takes its turn behind open runs.
   * @returns the schedule as it is now, and the run's id; no id for a request that is sent again after its run ended.
   * @throws CarillonError NOT_FOUND, QUEUE_BROKEN, QUOTA when it has as many open runs as it may
   */
  async trigger(
    options: RequestOptions & { overlap?: 'allow' | 'policy' } = {},
  ): Promise<ScheduleInfo & { runId: string | undefined }> {
    checkCall(options, ['overlap', 'requestId']);
    const requestId = requestOf(options);
    const suffix = `+${requestHash('trigger', requestId).toString('hex').slice(0, 12)}`;
    const inTurn = checkWord('overlap', options.overlap, ['allow', 'policy']) === 'policy';
    const record = await this.port.scripts.trigger(this.port.queueName, this.id, suffix, inTurn, requestId);
    const run = [...record.open, ...record.waiting].find((open) => open.suffix === suffix);
    const runId = run && tickRunId(this.id, run.scheduledFor) + suffix;
    return { ...describeSchedule(this.port.queueName, this.id, record), runId };
  }

  /**
   * Runs ticks of the past. One that ran before, as far as the ledger or BullMQ remembers, is left out, also when it was
   * a rerun, and so are those that the schedule has yet to judge by itself. One that is older than the ledger
   * (`keepRuns`) and whose job BullMQ has removed nobody remembers: it runs again.
   * @param range both ends included. A `to` of up to a second after Redis' time counts as now: hosts' clocks differ.
   * @returns the ticks that run, in order; for a request that is sent again, all of the span.
   * @throws CarillonError NOT_FOUND, INVALID_OPTION for more than 1,000 ticks, QUOTA when 1,000 runs wait
   */
  async backfill(range: BackfillRange): Promise<Date[]> {
    checkCall(range, ['from', 'to', 'overlap', 'requestId'], ['rerun', 'dryRun'], 'range');
    const overlap = checkWord('overlap', range.overlap, ['bufferAll', 'allow']);
    const requestId = requestOf(range);
    const from = parseInstant(range.from, 'from');
    const to = parseInstant(range.to, 'to');
    const { record, now } = await this.#read();
    if (to < from || to > now + CLOCKS_APART) {
      throw new CarillonError('INVALID_OPTION', 'to must lie between from and now', {
        field: 'to',
        given: range.to,
        todo: 'Give a span of the past.',
      });
    }
    const policies = JSON.parse(record.policies) as StoredPolicies;
    const timing = await this.#compile(policies, record);
    const last = Math.min(to, now);
    const ticks: number[] = [];
    for (let tick = timing.next(from - 1); tick !== undefined && tick <= last; tick = timing.next(tick)) {
      ticks.push(tick);
      if (ticks.length > MAX_WAITING_RUNS) {
        throw new CarillonError('INVALID_OPTION', `the span holds more than ${MAX_WAITING_RUNS} ticks`, {
          field: 'to',
          given: range.to,
          todo: 'Backfill it in shorter spans.',
        });
      }
    }
    if (ticks.length === 0) return [];
    const ran = await this.port.scripts.backfill(
      this.port.queueName,
      this.id,
      ticks,
      {
        suffix: range.rerun ? `+r${requestHash('backfill', requestId).toString('hex').slice(0, 8)}` : '',
        beside: overlap === 'allow',
        dry: range.dryRun === true,
      },
      requestId,
    );
    return (ran ?? ticks).map((tick) => new Date(tick));
  }

  /**
   * What became of its last ticks, oldest first: run, with BullMQ's outcome while it keeps that, or skipped and why.
   * @param count how many at the most; defaults to all that are kept (`keepRuns`).
   * @throws CarillonError INVALID_OPTION
   */
  async runs(count = Number.POSITIVE_INFINITY): Promise<ScheduleRunRow[]> {
    if (count !== Number.POSITIVE_INFINITY) checkInteger('count', count, 1, Number.MAX_SAFE_INTEGER);
    const rows = await this.port.scripts.ledger(this.port.queueName, this.id);
    return joinOutcomes(this.id, rows.slice(-count), (runId) => this.port.stateOf(runId));
  }

  async #compile(policies: StoredPolicies, record: ScheduleRecord): Promise<CompiledTiming> {
    const calendars = await this.port.calendars.named(calendarsOf(policies.exclude));
    return compileStored(policies, identityOf(this.port.queueName, this.id), record.anchor, calendars);
  }

  async #read(): Promise<{ record: ScheduleRecord; now: number }> {
    const { record, now } = await this.port.jobs.get(this.port.queueName, this.id);
    if (record?.kind === 'schedule') return { record, now };
    throw scheduleNotFound(this.port.queueName, this.id);
  }
}

/** @throws CarillonError INVALID_OPTION */
function checkWord<T extends string>(
  field: string,
  given: T | undefined,
  words: readonly T[],
): T | undefined {
  if (given === undefined || words.includes(given)) return given;
  throw new CarillonError('INVALID_OPTION', `${field} is none of ${words.join(', ')}`, {
    field,
    given,
    todo: 'Give one of them, or leave it out.',
  });
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
