import { BoundedMap } from './bounded-map.js';
import type { CalendarSet } from './calendar.js';
import { type CronPattern, usesSeed } from './cron.js';
import { formatDuration } from './durations.js';
import type { EveryTimes, FiringShape } from './forecast-shape.js';
import { identityOf } from './ids.js';
import { compileStored, compileTimes, type StoredPolicies } from './schedule.js';

/** A schedule as far as a forecast needs it. */
export interface ForecastDefinition {
  readonly queue: string;
  readonly id: string;
  readonly policies: StoredPolicies;
  /** What an `every` without anchor counts from, ms. */
  readonly createdAt: number;
  /** Those that the definition names. */
  readonly calendars?: CalendarSet;
  /** Ticks that fired so far; matters beside a `limit` only. */
  readonly count?: number;
}

/** Schedules of one queue that fire alike. */
export interface FiringGroup {
  readonly queue: string;
  readonly shape: FiringShape;
  schedules: number;
  /** The ids of the first few. */
  readonly examples: string[];
}

const MOST_EXAMPLES = 3;

/** Sorts schedules into groups that fire alike, so that times are computed once a group. */
export class FiringGroups {
  readonly #shapes = new Map<string, { shape: FiringShape; groups: Map<string, FiringGroup> }>();

  /** @param from where the forecast begins, ms. */
  constructor(private readonly from: number) {}

  add(definition: ForecastDefinition): void {
    const { queue, id } = definition;
    const key = keyOf(definition, this.from);
    let entry = this.#shapes.get(key);
    if (entry === undefined) {
      entry = { shape: shapeOf(definition, this.from), groups: new Map() };
      this.#shapes.set(key, entry);
    }
    let group = entry.groups.get(queue);
    if (group === undefined) {
      group = { queue, shape: entry.shape, schedules: 0, examples: [] };
      entry.groups.set(queue, group);
    }
    group.schedules += 1;
    if (group.examples.length < MOST_EXAMPLES) group.examples.push(id);
  }

  /** Each shape once, with the groups that have it. */
  *shapes(): Generator<{ shape: FiringShape; groups: Iterable<FiringGroup> }> {
    for (const { shape, groups } of this.#shapes.values()) yield { shape, groups: groups.values() };
  }
}

/** Two definitions with one key fire at the same times and are written alike. */
function keyOf(definition: ForecastDefinition, from: number): string {
  const { policies, count = 0 } = definition;
  const { cron, tz, gap, fold, startDate, endDate, jitter, limit, exclude, onExcluded } = policies;
  const left = limit === undefined ? '' : limit - count;
  const excluded = exclude === undefined ? '' : `${JSON.stringify(exclude)} ${onExcluded ?? ''}`;
  const bounds = `${startDate ?? ''} ${endDate ?? ''} ${jitter ?? ''} ${left} ${excluded}`;
  if (cron === undefined) {
    const every = intervalOf(definition, from);
    return every === undefined
      ? `${JSON.stringify(policies)} ${definition.createdAt}`
      : `${every.every} ${every.offset} ${bounds}`;
  }
  const text = cron.length === 1 ? (cron[0] as string) : cron.join('\n');
  const written = `${text} ${tz ?? ''} ${gap ?? ''} ${fold ?? ''} ${bounds}`;
  return isAlike(text) ? written : `${written} ${seededTimes(definition)}`;
}

/** Whether an expression fires alike for every schedule, whatever its id and age. */
function isAlike(cron: string): boolean {
  let alike = alikes.get(cron);
  if (alike === undefined) {
    alike = !usesSeed(cron) && !/@every/i.test(cron);
    alikes.set(cron, alike);
  }
  return alike;
}

const alikes = new BoundedMap<boolean>(10_000);

/** What the identity and the age of a schedule make of its expressions. */
function seededTimes({ queue, id, policies, createdAt }: ForecastDefinition): string {
  const timing = compileTimes(policies, identityOf(queue, id), createdAt);
  const patterns = timing.rules.map(({ pattern }) => numberOf(pattern)).join(' ');
  return timing.everies.length > 0 ? `${patterns} ${createdAt}` : patterns;
}

/** Patterns are shared by all expressions that name the same times, and their texts are long. */
function numberOf(pattern: CronPattern): number {
  let number = numbers.get(pattern);
  if (number === undefined) {
    number = ++lastNumber;
    numbers.set(pattern, number);
  }
  return number;
}

const numbers = new WeakMap<CronPattern, number>();
let lastNumber = 0;

/**
 * An unbounded interval by its numbers. Its offset is that of a second, where that changes no minute, so that many
 * schedules of one interval, each created at another moment, share some.
 */
function intervalOf({ policies, createdAt }: ForecastDefinition, from: number): EveryTimes | undefined {
  const { every, startDate, endDate, startsAtOnce, exclude } = policies;
  if (every === undefined || (startDate ?? endDate ?? exclude) !== undefined) return undefined;
  const anchor = startsAtOnce ? createdAt : (policies.anchor ?? createdAt);
  const base = anchor + (policies.phase ?? 0);
  // Up to its anchor an interval has no ticks.
  if (Math.max(base, createdAt) >= from) return undefined;
  const offset = base % every;
  return { every, offset: every % 1000 === 0 ? Math.floor(offset / 1000) * 1000 : offset };
}

function shapeOf(definition: ForecastDefinition, from: number): FiringShape {
  const { queue, id, policies, createdAt, calendars } = definition;
  const { jitter = 0, limit } = policies;
  const remaining =
    limit === undefined ? Number.POSITIVE_INFINITY : Math.max(0, limit - (definition.count ?? 0));
  const times =
    intervalOf(definition, from) ?? compileStored(policies, identityOf(queue, id), createdAt, calendars);
  return { label: labelOf(policies), jitter, remaining, times };
}

function labelOf({ cron, every, tz = 'UTC', jitter }: StoredPolicies): string {
  const more = cron !== undefined && cron.length > 1 ? ` and ${cron.length - 1} more` : '';
  const times = cron === undefined ? `every ${formatDuration(every ?? 0)}` : `${cron[0]}${more} (${tz})`;
  return jitter === undefined ? times : `${times}, jitter ${formatDuration(jitter)}`;
}
