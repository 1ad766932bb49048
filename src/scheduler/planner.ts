import type { CalendarSet } from '../domain/calendar.js';
import { isCarillonError } from '../domain/errors.js';
import { calendarsOf } from '../domain/exclusions-definition.js';
import { compileStored, type StoredPolicies } from '../domain/schedule.js';
import { spanReason, Ticks } from '../domain/ticks.js';
import type { CalendarStore } from '../redis/calendar-store.js';
import type { LeaderScripts, OwnedRange, PlanAnswer, PlanItem } from '../redis/leader-scripts.js';
import { decodeRecord, FLAGS, MAX_WAITING_RUNS, type ScheduleRecord } from '../redis/record.js';
import type { Logger } from '../support/logger.js';
import type { TimeZoneWatch } from './time-zone-watch.js';

const BATCH = 200;
const BATCH_BYTES = 500_000;
/** A schedule that cannot be planned is asked again after this, doubling (ms); then it is suspended. */
const RETRY_MIN = 1000;
const RETRIES = 5;

/**
 * Answers `plan`: which tick follows the last known one, and what becomes of missed ticks. Each record is worked in a
 * try of its own; one that fails again and again is suspended with the reason, so that it never stops silently.
 */
export class Planner {
  readonly #failures = new Map<string, number>();

  constructor(
    private readonly logger: Logger,
    private readonly calendars: CalendarStore,
    private readonly timeZones: TimeZoneWatch,
  ) {}

  /** Works one batch. True when there may be more. */
  async plan(
    scripts: LeaderScripts,
    owned: readonly OwnedRange[],
    buckets: readonly number[],
  ): Promise<boolean> {
    const { now, items } = await scripts.readPlan(buckets, BATCH, BATCH_BYTES);
    if (items.length === 0) {
      // A head that leads nowhere would be found due again and again.
      await scripts.refreshHeads(owned);
      return false;
    }
    const calendars = await this.calendars.named(items.flatMap(calendarsNamed));
    await this.timeZones.look(items.flatMap(zoneNamed));
    const answers = items.map((item) => this.#answer(item, now, servedFrom(owned, item.bucket), calendars));
    const { outcomes } = await scripts.setNext(owned, answers);
    outcomes.forEach((outcome, index) => {
      const answer = answers[index] as PlanAnswer;
      if (outcome.startsWith('BAD_RECORD')) this.logger.error({ schedule: answer.identity }, outcome);
      if (outcome !== 'OK') return;
      this.#alert(answer);
    });
    return true;
  }

  /** What a person should know of an answer that was taken. */
  #alert(answer: PlanAnswer): void {
    const schedule = answer.identity;
    if (answer.op === 'quarantine') {
      this.logger.error({ schedule, reason: answer.reason }, 'set a schedule aside');
    }
    const suspends = answer.op === 'suspend' ? answer.reason : answer.op === 'resolve' && answer.suspends;
    if (suspends) this.logger.error({ schedule, reason: suspends }, 'suspended a schedule');
    const refused = answer.op === 'resolve' && answer.skipped.find(({ what }) => what === 'refused');
    if (refused) this.logger.error({ schedule, reason: refused.reason }, 'refused to catch up');
  }

  #answer(item: PlanItem, now: number, since: number, calendars: CalendarSet): PlanAnswer {
    const target = { bucket: item.bucket, identity: item.identity, inc: '', ver: '' };
    if (item.record.length === 0) return { ...target, op: 'forget' };
    try {
      const record = decodeRecord(item.record);
      if (record.kind !== 'schedule') return { ...target, op: 'forget' };
      Object.assign(target, { inc: String(record.inc), ver: String(record.ver) });
      const policies = JSON.parse(record.policies) as StoredPolicies;
      if (policies.tz !== undefined && this.timeZones.isStale(policies.tz, item.bucket)) {
        return { ...target, op: 'defer', planAt: now + RETRY_MIN };
      }
      const timing = compileStored(policies, target.identity, record.anchor, calendars, this.timeZones.data);
      const ticks = new Ticks(timing, policies, target.identity);
      const answer = answerFor(target, record, ticks, now, since);
      this.#failures.delete(item.identity);
      return answer;
    } catch (error) {
      return this.#failed(target, error, now);
    }
  }

  #failed(target: Target, error: unknown, now: number): PlanAnswer {
    const failures = (this.#failures.get(target.identity) ?? 0) + 1;
    this.#failures.set(target.identity, failures);
    const reason = isCarillonError(error) ? `${error.code}: ${error.message}` : String(error);
    this.logger.error({ schedule: target.identity, failures, reason }, 'cannot plan a schedule');
    if (failures < RETRIES) {
      return { ...target, op: 'defer', planAt: now + RETRY_MIN * 2 ** Math.min(failures, 10) };
    }
    this.#failures.delete(target.identity);
    // What cannot be read cannot even be suspended.
    return { ...target, op: target.inc === '' ? 'quarantine' : 'suspend', reason };
  }
}

interface Target {
  bucket: number;
  identity: string;
  inc: string;
  ver: string;
}

/** What to do with a schedule that is on plan. Pure; `since`: its bucket is served without a break since then. */
function answerFor(
  target: Target,
  record: ScheduleRecord,
  ticks: Ticks,
  now: number,
  since: number,
): PlanAnswer {
  const { last, cur, next, count } = record;
  const state = { last, cur, next, count, createdAt: record.anchor };
  const has = (flag: number) => (record.flags & flag) !== 0;
  if (cur > 0 && !has(FLAGS.overdue)) {
    if (next > 0) return { ...target, op: 'forget' };
    const successor = ticks.successor(state);
    if (successor === undefined) return { ...target, op: 'end', tail: cur };
    return { ...target, op: 'append', tail: cur, tick: successor.tick, fireAt: successor.fireAt };
  }
  const found = ticks.resolve(state, now, {
    servedFrom: has(FLAGS.unserved) ? now : since,
    grace: record.grace,
    resumed: has(FLAGS.resumed),
    room: Math.max(0, MAX_WAITING_RUNS - record.waiting.length),
  });
  return {
    ...target,
    op: 'resolve',
    cur,
    last,
    newLast: found.newLast,
    newCur: found.cur?.tick ?? 0,
    newCurFire: found.cur?.fireAt ?? 0,
    newNext: found.next?.tick ?? 0,
    newNextFire: found.next?.fireAt ?? 0,
    catchUp: found.catchUp,
    ends: found.cur === undefined,
    ...(found.suspends === undefined ? {} : { suspends: found.suspends }),
    skipped: found.skipped.map(({ from, to, what, reason }) => ({
      at: to,
      what,
      reason: spanReason(from, to, reason),
    })),
  };
}

/** Since when a bucket is served without a break; 0 if it is not ours any more: its answer will be refused. */
function servedFrom(owned: readonly OwnedRange[], bucket: number): number {
  return owned.find((range) => bucket >= range.first && bucket <= range.last)?.servedFrom ?? 0;
}

/** The zone that a schedule names; none where it cannot be read, which its answer will tell. */
function zoneNamed({ record }: PlanItem): string[] {
  const tz = record.includes('"tz":"') ? policiesOf(record)?.tz : undefined;
  return tz === undefined ? [] : [tz];
}

/** The calendars that a schedule names; none where it cannot be read, which its answer will tell. */
function calendarsNamed({ record }: PlanItem): string[] {
  // Few do: the others are not read twice.
  if (!record.includes('"exclude":')) return [];
  return calendarsOf(policiesOf(record)?.exclude);
}

function policiesOf(bytes: Buffer): StoredPolicies | undefined {
  try {
    return JSON.parse((decodeRecord(bytes) as ScheduleRecord).policies) as StoredPolicies;
  } catch {
    return undefined;
  }
}
