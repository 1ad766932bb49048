import { BUCKETS } from '../domain/buckets.js';
import { CarillonError } from '../domain/errors.js';
import { checkScheduleId, splitIdentity } from '../domain/ids.js';
import {
  checkSchedule,
  compileStored,
  DEFAULT_GRACE,
  DEFAULT_KEPT_RUNS,
  DEFAULT_MAX_OPEN_RUNS,
  MISSED_CODES,
  OVERLAP_CODES,
  type ScheduleDefinition,
  type StoredPolicies,
  timingText,
} from '../domain/schedule.js';
import type { RecordState } from '../domain/states.js';
import { type PlannedTick, Ticks } from '../domain/ticks.js';
import type { JobScripts } from '../redis/job-scripts.js';
import { decodeRecord, type ScheduleRecord, type ScheduleRun } from '../redis/record.js';
import { newRequestId } from '../redis/request-id.js';
import type { ScheduleScripts, ScheduleWrite } from '../redis/schedule-scripts.js';
import { ScheduleHandle } from './schedule-handle.js';

/** What each run of a schedule is: BullMQ's name, data and options. */
export interface ScheduleTemplate<Data = unknown, Name extends string = string, Opts = unknown> {
  /** Defaults to the schedule's id. */
  name?: Name;
  /** Defaults to `{}`. */
  data?: Data;
  opts?: Opts;
}

/** How the queue encodes a template; the queue's own defaults are merged in. */
export interface EncodedTemplate {
  name: string;
  data: string;
  opts: string;
  priority: number;
  lifo: boolean;
}

/** What the schedules of a queue need of it. */
export interface SchedulesPort {
  readonly queueName: string;
  readonly jobs: JobScripts;
  readonly scripts: ScheduleScripts;
  encodeTemplate(scheduleId: string, template: ScheduleTemplate): EncodedTemplate;
}

/** What is known of a schedule. Times in ms. */
export interface ScheduleInfo {
  id: string;
  state: RecordState;
  /** The pending tick; undefined while none is planned. */
  next: number | undefined;
  /** When it fires: `next` and jitter. */
  nextFireAt: number | undefined;
  /** The last tick that fired or was passed over. */
  last: number | undefined;
  /** Ticks that fired. */
  count: number;
  /** Runs that were open when they were last looked at, and runs that wait for their turn. */
  open: ScheduleRun[];
  waiting: ScheduleRun[];
  /** Ticks skipped in a row; failed runs in a row. */
  skips: number;
  failures: number;
  definition: StoredPolicies;
  template: { name: string; data: unknown; opts: Record<string, unknown> };
  note: string | undefined;
  warnings: readonly string[];
}

export interface UpsertOptions {
  /** Sent again with each repeat of the same change. */
  requestId?: string;
}

const TRIES = 20;
const PAGE = 200;

/** The schedules of one queue: `queue.schedules`. */
export class Schedules<Data = unknown, Name extends string = string, Opts = unknown> {
  constructor(private readonly port: SchedulesPort) {}

  /**
   * Creates a schedule, or makes the one of that id what the definition says. An upsert that changes nothing moves
   * nothing; one that changes only policies or the template leaves pending ticks where they are.
   * @throws CarillonError INVALID_OPTION, INVALID_CRON, INVALID_TIME_ZONE, INVALID_ID, ID_IN_USE, CONFLICT
   */
  async upsert(
    id: string,
    definition: ScheduleDefinition,
    template: ScheduleTemplate<Data, Name, Opts> = {},
    options: UpsertOptions = {},
  ): Promise<ScheduleInfo> {
    checkScheduleId(id);
    return this.store(id, checkSchedule(definition, this.#identity(id)), template, options);
  }

  /** The handle of a schedule, whether it exists or not: nothing is read yet. */
  get(id: string): ScheduleHandle {
    return new ScheduleHandle(
      this.port.queueName,
      checkScheduleId(id),
      this.port.jobs,
      this.port.scripts,
      (found, record) => this.info(found, record),
    );
  }

  /** Every schedule of the queue, read in pages; in no order. */
  async *list(): AsyncGenerator<ScheduleInfo> {
    for (let bucket = 0; bucket < BUCKETS; bucket++) {
      let cursor = '0';
      do {
        const page = await this.port.jobs.list(bucket, cursor, {
          queue: this.port.queueName,
          kind: 'schedule',
          count: PAGE,
        });
        cursor = page.cursor;
        for (const { identity, bytes } of page.found) {
          const record = decodeRecord(bytes);
          if (record.kind === 'schedule') yield this.info(splitIdentity(identity).jobId, record);
        }
      } while (cursor !== '0');
    }
  }

  /** A checked definition is stored; BullMQ's form of schedules comes here too. */
  async store(
    id: string,
    policies: StoredPolicies,
    template: ScheduleTemplate,
    options: UpsertOptions = {},
  ): Promise<ScheduleInfo> {
    const requestId = options.requestId ?? newRequestId();
    const encoded = this.port.encodeTemplate(id, template);
    for (let attempt = 0; attempt < TRIES; attempt++) {
      const { now, record, last } = await this.port.jobs.get(this.port.queueName, id);
      if (record?.kind === 'job') throw idInUse(id);
      const write = this.#write(id, policies, encoded, now, record, last);
      if (write === undefined) return this.info(id, record as ScheduleRecord);
      const written = await this.port.scripts.upsert(this.port.queueName, id, write, requestId);
      if (written.status === 'OK') return this.info(id, written.record);
    }
    throw new CarillonError(
      'CONFLICT',
      `the schedule ${id} was changed by others ${TRIES} times while it was being written`,
      {
        field: 'scheduleId',
        given: id,
        todo: 'Write a schedule from one place; repeat the call.',
        retryable: true,
      },
    );
  }

  /** A record as people read it. */
  info(id: string, record: ScheduleRecord): ScheduleInfo {
    const definition = JSON.parse(record.policies) as StoredPolicies;
    return {
      id,
      state: record.state,
      next: record.cur || undefined,
      nextFireAt: record.curFire || undefined,
      last: record.last || undefined,
      count: record.count,
      open: record.open,
      waiting: record.waiting,
      skips: record.skips,
      failures: record.failures,
      definition,
      template: {
        name: record.name,
        data: JSON.parse(record.data),
        opts: record.opts === '' ? {} : JSON.parse(record.opts),
      },
      note: record.note,
      warnings: compileStored(definition, this.#identity(id), record.anchor).warnings,
    };
  }

  /** The write that makes the record so; undefined when it is so already. */
  #write(
    id: string,
    policies: StoredPolicies,
    template: EncodedTemplate,
    now: number,
    record: ScheduleRecord | undefined,
    spentLast: number,
  ): ScheduleWrite | undefined {
    const identity = this.#identity(id);
    const text = JSON.stringify(policies);
    const sameTiming =
      record !== undefined &&
      timingText(JSON.parse(record.policies) as StoredPolicies) === timingText(policies);
    if (record !== undefined && sameTiming && text === record.policies && sameTemplate(record, template))
      return undefined;
    const anchor = record !== undefined && keepsAnchor(record, policies) ? record.anchor : now;
    const ticks = new Ticks(compileStored(policies, identity, anchor), policies, identity);
    const [cur, next] = sameTiming ? [] : this.#ticks(ticks, record, anchor, now, spentLast);
    return {
      expected: record && { inc: record.inc, ver: record.ver },
      asOf: now,
      anchor,
      keepTicks: sameTiming,
      cur: cur?.tick ?? 0,
      curFire: cur?.fireAt ?? 0,
      next: next?.tick ?? 0,
      nextFire: next?.fireAt ?? 0,
      ends: !sameTiming && cur === undefined,
      grace: policies.grace ?? DEFAULT_GRACE,
      missed: MISSED_CODES[policies.missed],
      overlap: OVERLAP_CODES[policies.overlap ?? 'skip'],
      maxOpen: policies.maxOpenRuns ?? DEFAULT_MAX_OPEN_RUNS,
      maxConcurrent: policies.maxConcurrent ?? (policies.overlap === 'allow' ? 0 : 1),
      keptRows: policies.keepRuns ?? DEFAULT_KEPT_RUNS,
      pauseAfter: policies.pauseOnFailure ?? 0,
      ...template,
      policies: text,
    };
  }

  /** The first two ticks after now, never at or below one that fired. */
  #ticks(
    ticks: Ticks,
    record: ScheduleRecord | undefined,
    anchor: number,
    now: number,
    spentLast: number,
  ): (PlannedTick | undefined)[] {
    const fired = record?.count ?? 0;
    if (!ticks.withinLimit(fired, 0)) return [];
    const first = record === undefined && spentLast === 0 ? ticks.first(anchor) : undefined;
    const cur = first ?? ticks.after(Math.max(now, record?.last ?? 0, spentLast));
    if (cur === undefined || !ticks.withinLimit(fired, 1)) return [cur];
    return [cur, ticks.after(cur.tick)];
  }

  #identity(id: string): string {
    return `${this.port.queueName}:${id}`;
  }
}

/** An `every` that stays as it is keeps what it counts from, whatever else is edited: anchors never move. */
function keepsAnchor(record: ScheduleRecord, policies: StoredPolicies): boolean {
  const old = JSON.parse(record.policies) as StoredPolicies;
  return (
    old.every === policies.every && old.phase === policies.phase && old.startsAtOnce === policies.startsAtOnce
  );
}

function sameTemplate(record: ScheduleRecord, template: EncodedTemplate): boolean {
  return (
    record.name === template.name &&
    record.data === template.data &&
    record.opts === template.opts &&
    record.priority === template.priority &&
    record.lifo === template.lifo
  );
}

function idInUse(id: string): CarillonError {
  return new CarillonError('ID_IN_USE', `a one-time job of this queue has the id ${JSON.stringify(id)}`, {
    field: 'scheduleId',
    given: id,
    todo: 'Give one of the two another id.',
  });
}
