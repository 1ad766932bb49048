import type { CalendarSet } from '../domain/calendar.js';
import { storedNeverFires } from '../domain/never-fires.js';
import { type PreviewedTime, previewTicks } from '../domain/preview.js';
import { recordZone } from '../domain/recorded-offsets.js';
import {
  compileStored,
  DEFAULT_GRACE,
  DEFAULT_KEPT_RUNS,
  DEFAULT_MAX_OPEN_RUNS,
  MISSED_CODES,
  OVERLAP_CODES,
  type StoredPolicies,
  timingText,
} from '../domain/schedule.js';
import { type PlannedTick, spanReason, Ticks } from '../domain/ticks.js';
import { tzDataVersion, zoneOffsets } from '../domain/time-zone-offsets.js';
import type { ScheduleRecord } from '../redis/record.js';
import type { ScheduleWrite } from '../redis/schedule-scripts.js';

/** How the queue encodes what each run of a schedule is; the queue's own defaults are merged in. */
export interface EncodedTemplate {
  name: string;
  data: string;
  opts: string;
  priority: number;
  lifo: boolean;
}

/** A schedule's place in Redis as it was read. Times in ms, 0 for none. */
export interface ReadSchedule {
  /** Redis' TIME. */
  now: number;
  record: ScheduleRecord | undefined;
  /** The last tick of a deleted schedule of this id. */
  spentLast: number;
  /** Those that the old or the new definition names. */
  calendars: CalendarSet;
}

/**
 * The write that makes a schedule what a definition says; undefined when it is so already.
 *
 * Pending ticks move only when the definition names other instants than before. Then both are computed from now on,
 * above every tick that fired: an edit fires nothing twice and nothing retroactively.
 */
export function writeOf(
  identity: string,
  policies: StoredPolicies,
  template: EncodedTemplate,
  { now, record, spentLast, calendars }: ReadSchedule,
): ScheduleWrite | undefined {
  const text = JSON.stringify(policies);
  const keepTicks = record !== undefined && firesAtTheSameTimes(record, policies, identity);
  if (keepTicks && text === record.policies && isTemplateOf(record, template)) return undefined;
  const { anchor, counted } = anchorOf(record, policies, now);
  const ticks = new Ticks(compileStored(policies, identity, anchor, calendars), policies, identity);
  const floor = Math.max(counted ? now : ticks.before(now), record?.last ?? 0, spentLast);
  const [cur, next] = keepTicks ? [] : twoTicks(ticks, floor, record?.count ?? 0);
  return {
    expected: record && { inc: record.inc, ver: record.ver, last: record.last },
    asOf: now,
    anchor,
    keepTicks,
    cur: cur?.tick ?? 0,
    curFire: cur?.fireAt ?? 0,
    next: next?.tick ?? 0,
    nextFire: next?.fireAt ?? 0,
    ends: !keepTicks && cur === undefined,
    ...overdueOf(record, identity, now, calendars),
    grace: policies.grace ?? DEFAULT_GRACE,
    runTimeout: policies.runTimeout ?? 0,
    missed: MISSED_CODES[policies.missed],
    overlap: OVERLAP_CODES[policies.overlap ?? 'skip'],
    maxOpen: policies.maxOpenRuns ?? DEFAULT_MAX_OPEN_RUNS,
    maxConcurrent: policies.maxConcurrent ?? (policies.overlap === 'allow' ? 0 : 1),
    keptRows: policies.keepRuns ?? DEFAULT_KEPT_RUNS,
    pauseAfter: policies.pauseOnFailure ?? 0,
    ...template,
    policies: text,
    ...(policies.tz === undefined ? {} : { zone: zoneOf(policies.tz, now) }),
  };
}

/** Why a write ends its schedule, as a sentence; undefined when it does not, or when the definition's own warnings say so. */
export function endsBecause(
  identity: string,
  policies: StoredPolicies,
  { ends, anchor }: Pick<ScheduleWrite, 'ends' | 'anchor'>,
  { now, record, calendars }: ReadSchedule,
): string | undefined {
  if (!ends) return undefined;
  const ran = record?.count ?? 0;
  if (policies.limit !== undefined && ran >= policies.limit) {
    return `it fires no more: ${ran} ticks ran, and its limit is ${policies.limit}`;
  }
  return storedNeverFires(policies, identity, anchor, now, calendars);
}

/** The next ticks as they would come if the definition were written now. */
export function previewWrite(
  identity: string,
  policies: StoredPolicies,
  { now, record, spentLast, calendars }: ReadSchedule,
  count: number,
): PreviewedTime[] {
  const { anchor, counted } = anchorOf(record, policies, now);
  const timing = compileStored(policies, identity, anchor, calendars);
  const before = counted ? now : new Ticks(timing, policies, identity).before(now);
  const left = policies.limit === undefined ? count : Math.max(0, policies.limit - (record?.count ?? 0));
  const floor = Math.max(before, record?.last ?? 0, spentLast);
  return previewTicks(timing, policies, identity, floor, Math.min(count, left));
}

/** What an `every` without an anchor counts from: the old schedule's start, where that stands; ms. */
function anchorOf(record: ScheduleRecord | undefined, policies: StoredPolicies, now: number) {
  const counted = record !== undefined && countsOn(record, policies);
  return { anchor: counted ? record.anchor : now, counted };
}

function zoneOf(tz: string, now: number): ScheduleWrite['zone'] {
  return { tz, offsets: JSON.stringify(recordZone(tzDataVersion, zoneOffsets(tz), now)) };
}

/** What an edit records of the old definition's ticks that are due and did not fire: the newest stands for all. */
function overdueOf(
  record: ScheduleRecord | undefined,
  identity: string,
  now: number,
  calendars: CalendarSet,
): Pick<ScheduleWrite, 'overdueTo' | 'overdueReason'> {
  const first = record?.cur ?? 0;
  const to = record === undefined ? 0 : newestOf(record, identity, now, calendars);
  return { overdueTo: to, overdueReason: spanReason(first, to || first, 'edited') };
}

/** 0 when none is due, or when this machine cannot read the definition. */
function newestOf(record: ScheduleRecord, identity: string, now: number, calendars: CalendarSet): number {
  try {
    const old = JSON.parse(record.policies) as StoredPolicies;
    return compileStored(old, identity, record.anchor, calendars).latest(record.cur - 1, now) ?? 0;
  } catch {
    return 0;
  }
}

function twoTicks(ticks: Ticks, after: number, fired: number): (PlannedTick | undefined)[] {
  const cur = ticks.withinLimit(fired, 0) ? ticks.after(after) : undefined;
  return cur === undefined || !ticks.withinLimit(fired, 1) ? [cur] : [cur, ticks.after(cur.tick)];
}

/** False also for a stored definition that this machine cannot read: its ticks are computed anew. */
function firesAtTheSameTimes(record: ScheduleRecord, policies: StoredPolicies, identity: string): boolean {
  try {
    const old = JSON.parse(record.policies) as StoredPolicies;
    return timingText(old, identity) === timingText(policies, identity);
  } catch {
    return false;
  }
}

/**
 * An `every` that stays as it is keeps what it counts from, whatever else is edited: anchors never move, not even when
 * the stored definition cannot be read.
 */
function countsOn(record: ScheduleRecord, policies: StoredPolicies): boolean {
  try {
    const old = JSON.parse(record.policies) as StoredPolicies;
    return (
      old.every === policies.every &&
      old.phase === policies.phase &&
      old.startsAtOnce === policies.startsAtOnce
    );
  } catch {
    return true;
  }
}

function isTemplateOf(record: ScheduleRecord, template: EncodedTemplate): boolean {
  return (
    record.name === template.name &&
    record.data === template.data &&
    record.opts === template.opts &&
    record.priority === template.priority &&
    record.lifo === template.lifo
  );
}
