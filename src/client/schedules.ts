import { checkCall } from '../config/call-options.js';
import { checkInteger, refuse } from '../config/check.js';
import { BUCKETS } from '../domain/buckets.js';
import { checkSchedule } from '../domain/check-schedule.js';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import { calendarsOf } from '../domain/exclusions-definition.js';
import { checkScheduleId, identityOf, splitIdentity } from '../domain/ids.js';
import type { PreviewedTime } from '../domain/preview.js';
import { compileTimes, type ScheduleDefinition, type StoredPolicies } from '../domain/schedule.js';
import { decodeRecord, type ScheduleRecord } from '../redis/record.js';
import { refuseEmptyFilter } from './filter-means.js';
import { calendarsIfIdle } from './named-calendars.js';
import { checkRequestId, type RequestOptions } from './request-ids.js';
import { checkFilter, matcherOf, type ScheduleFilter } from './schedule-filter.js';
import { ScheduleHandle } from './schedule-handle.js';
import { describeSchedule, describeStored, type ScheduleInfo, type StoredSchedule } from './schedule-info.js';
import { endsBecause, previewWrite, writeOf } from './schedule-write.js';
import type { SchedulesPort, ScheduleTemplate } from './schedules-port.js';
import { storeSchedule } from './store-schedule.js';

export interface UpsertOptions extends RequestOptions {}

const PAGE = 200;

/** How schedules are changed that a filter means. */
export interface ChangeManyOptions extends RequestOptions {
  /** Only tells which schedules are meant. */
  dryRun?: boolean;
  /** Why they are paused or deleted, for people: up to 500 bytes. */
  note?: string;
  /** Of `trigger`: see {@link ScheduleHandle.trigger}. */
  overlap?: 'allow' | 'policy';
  /** Of `delete`: see {@link ScheduleHandle.delete}. */
  cancelRuns?: boolean;
}

/** What became of one of them. */
export interface ChangedSchedule {
  id: string;
  done: boolean;
  /** Why it was not done. */
  problem: string | undefined;
}

/** What may be done to many schedules at once. */
const CHANGES = {
  pause: (handle, { note = '', requestId }) => handle.pause({ note, requestId }),
  resume: (handle, { requestId }) => handle.resume({ requestId }),
  trigger: (handle, { overlap, requestId }) => handle.trigger({ ...(overlap && { overlap }), requestId }),
  delete: (handle, { note = '', cancelRuns = false, requestId }) =>
    handle.delete({ reason: note, cancelRuns, requestId }),
} as const satisfies Record<string, (handle: ScheduleHandle, options: ChangeManyOptions) => Promise<unknown>>;

/** A verb of {@link Schedules.change}. */
export type ChangeVerb = keyof typeof CHANGES;

/** What each takes besides. */
const TAKES: Readonly<Record<ChangeVerb, readonly (keyof ChangeManyOptions)[]>> = {
  pause: ['note'],
  resume: [],
  trigger: ['overlap'],
  delete: ['note', 'cancelRuns'],
};

/** The schedules of one queue: `queue.schedules`. */
export class Schedules<Data = unknown, Name extends string = string, Opts = unknown> {
  constructor(private readonly port: SchedulesPort) {}

  /**
   * Creates a schedule, or makes the one of that id what the definition says and nothing else: what is left out goes back
   * to its default ({@link ScheduleHandle.update} keeps it). An upsert that changes nothing moves
   * nothing; one that changes only policies or the template leaves pending ticks where they are. One that changes
   * times also starts a schedule again that has ended or was suspended; a paused one stays paused.
   * @throws CarillonError INVALID_OPTION, INVALID_CRON, INVALID_TIME_ZONE, INVALID_DURATION, INVALID_ID, UNSUPPORTED,
   *   ID_IN_USE, CONFLICT; nothing was written, unless the code is REDIS_UNAVAILABLE: then repeat the call.
   */
  async upsert(
    id: string,
    definition: ScheduleDefinition,
    template: ScheduleTemplate<Data, Name, Opts> = {},
    options: UpsertOptions = {},
  ): Promise<StoredSchedule> {
    checkScheduleId(id);
    checkCall(options, ['requestId']);
    const policies = checkSchedule(definition, identityOf(this.port.queueName, id));
    return this.store(id, policies, template, options);
  }

  /**
   * The next ticks of a definition, stored or not, as they would come if `upsert` were called now: each with what a clock
   * change did to it, what was excluded before it, and when it fires.
   * @param id seeds `H`, `~` and jitter; the schedule of that id, if there is one, says what has fired already.
   * @param count 1 to 1,000; defaults to 10.
   * @throws CarillonError as `upsert`; nothing is written.
   */
  async preview(id: string, definition: ScheduleDefinition, count = 10): Promise<PreviewedTime[]> {
    checkScheduleId(id);
    checkInteger('count', count, 1, 1000);
    const identity = identityOf(this.port.queueName, id);
    const policies = checkSchedule(definition, identity);
    const { now, record, last: spentLast } = await this.port.jobs.get(this.port.queueName, id);
    if (record?.kind === 'job') throw idInUse(id);
    const calendars = await this.port.calendars.named(calendarsOf(policies.exclude));
    return previewWrite(identity, policies, { now, record, spentLast, calendars }, count);
  }

  /**
   * What the author of a checked definition may not mean, as sentences, if it is stored now: that it never fires, say.
   * Nothing is written.
   * @throws CarillonError for what storing it would refuse.
   */
  async doubts(id: string, policies: StoredPolicies): Promise<string[]> {
    const { now, record, last: spentLast } = await this.port.jobs.get(this.port.queueName, id);
    if (record?.kind === 'job') throw idInUse(id);
    const calendars = await this.port.calendars.named(calendarsOf(policies.exclude));
    const identity = identityOf(this.port.queueName, id);
    const read = { now, record, spentLast, calendars };
    const write = writeOf(identity, policies, this.port.encodeTemplate(id, {}), read);
    const why = write && endsBecause(identity, policies, write, read);
    return [...compileTimes(policies, identity, now).warnings, ...(why === undefined ? [] : [why])];
  }

  /** The handle of a schedule, whether it exists or not: nothing is read yet. @throws CarillonError INVALID_ID */
  get(id: string): ScheduleHandle<Data, Name, Opts> {
    return new ScheduleHandle(this.port, checkScheduleId(id));
  }

  /**
   * The schedules of the queue that the filter means, read in pages; in no order. Records that nobody can read are left
   * to `doctor`.
   * @throws CarillonError INVALID_OPTION
   */
  async *list(filter: ScheduleFilter = {}): AsyncGenerator<ScheduleInfo> {
    const isMeant = matcherOf(checkFilter(filter));
    const { jobs, queueName } = this.port;
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      let cursor = '0';
      do {
        const page = await jobs.list(bucket, cursor, { queue: queueName, kind: 'schedule', count: PAGE });
        cursor = page.cursor;
        for (const { identity, bytes } of page.found) {
          const record = readSchedule(bytes);
          if (record === undefined) continue;
          const calendars = await calendarsIfIdle(this.port.calendars, record);
          const info = describeSchedule(queueName, splitIdentity(identity).jobId, record, calendars);
          if (isMeant({ ...info, name: info.template.name })) yield info;
        }
      } while (cursor !== '0');
    }
  }

  /**
   * Pauses, resumes, triggers or deletes every schedule that the filter means; an empty filter is refused, so that
   * nothing is deleted by a slip: `{ all: true }` means all of the queue.
   * @returns what was done to each, or with `dryRun` what would be.
   * @throws CarillonError INVALID_OPTION
   */
  async change(
    verb: ChangeVerb,
    filter: ScheduleFilter,
    options: ChangeManyOptions = {},
  ): Promise<ChangedSchedule[]> {
    if (!Object.hasOwn(CHANGES, verb)) {
      refuse('verb', verb, 'is unknown', `Give one of ${Object.keys(CHANGES).join(', ')}.`);
    }
    refuseEmptyFilter(checkFilter(filter), 'schedule', 'a tag, a state, a text or ids');
    checkCall(options, ['note', 'overlap', 'requestId'], ['dryRun', 'cancelRuns']);
    for (const key of ['note', 'overlap', 'cancelRuns'] as const) {
      if (options[key] !== undefined && !TAKES[verb].includes(key))
        refuse(key, options[key], `has no meaning for ${verb}`, 'Leave it out.');
    }
    if (options.requestId !== undefined) checkRequestId(options.requestId);
    const results: ChangedSchedule[] = [];
    const seen = new Set<string>();
    for await (const { id } of this.list(filter)) {
      // A hash that is rehashed meanwhile may be read twice over.
      if (seen.has(id)) continue;
      seen.add(id);
      const problem = options.dryRun ? undefined : await this.#changeOne(verb, id, options);
      results.push({ id, done: !options.dryRun && problem === undefined, problem });
    }
    return results;
  }

  /** One schedule's refusal does not stop the others. */
  async #changeOne(verb: ChangeVerb, id: string, options: ChangeManyOptions): Promise<string | undefined> {
    try {
      await CHANGES[verb](this.get(id), options);
      return undefined;
    } catch (error) {
      if (!isCarillonError(error)) throw error;
      return `${error.code}: ${error.message}`;
    }
  }

  /**
   * A checked definition is stored; BullMQ's form of schedules comes here too.
   * @param options.judge refuses by Redis' clock, in ms, before anything is written.
   */
  async store(
    id: string,
    policies: StoredPolicies,
    template: ScheduleTemplate,
    options: UpsertOptions & { judge?: (now: number) => void } = {},
  ): Promise<StoredSchedule> {
    const encoded = this.port.encodeTemplate(id, template);
    const stored = await storeSchedule(
      this.port,
      id,
      ({ now, record }) => {
        if (record?.kind === 'job') throw idInUse(id);
        options.judge?.(now);
        return { policies, template: encoded };
      },
      { ...options, waits: encoded },
    );
    return describeStored(this.port.queueName, id, stored);
  }
}

function readSchedule(bytes: Buffer): ScheduleRecord | undefined {
  try {
    const record = decodeRecord(bytes);
    return record.kind === 'schedule' ? record : undefined;
  } catch {
    return undefined;
  }
}

function idInUse(id: string): CarillonError {
  return new CarillonError('ID_IN_USE', `a one-time job of this queue has the id ${JSON.stringify(id)}`, {
    field: 'scheduleId',
    given: id,
    todo: 'Give one of the two another id.',
  });
}
