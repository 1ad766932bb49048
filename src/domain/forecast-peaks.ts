import type { FiringGroup, FiringGroups } from './forecast-groups.js';
import { loadOf, type MinuteLoad } from './forecast-load.js';
import { MINUTE_MS } from './forecast-shape.js';

/** A minute in which a queue gets far more than it usually does. */
export interface Peak {
  readonly queue: string;
  /** Its start, ms. */
  readonly at: number;
  /** Firings to be expected in it. */
  readonly count: number;
  /** What fires then, the most first; at most five. */
  readonly contributors: readonly Contributor[];
  /** What would become of it with more jitter; undefined where jitter would change little. */
  readonly withJitter: FlattenedPeak | undefined;
}

/** Schedules that are written alike, or the one-time jobs, of a queue. */
export interface Contributor {
  /** `0 0 * * * (UTC)`, `every 5m`, `one-time jobs`. */
  readonly what: string;
  /** Firings to be expected in the minute. */
  readonly count: number;
  /** How many schedules they come from; 0 for one-time jobs. */
  readonly schedules: number;
  /** The ids of the first few. */
  readonly examples: readonly string[];
}

/** A peak if all its schedules had at least this jitter. */
export interface FlattenedPeak {
  /** ms */
  readonly jitter: number;
  /** Firings in the busiest minute of those over which the peak is spread, and its start, ms. */
  readonly count: number;
  readonly at: number;
}

/** Less than this is no peak, nor less than twice what the queue has in a minute on average. */
const SMALLEST_PEAK = 10;
const TIMES_MEAN = 2;
/** Minutes this near a higher one belong to it. */
const REACH = 15;
const MOST_CONTRIBUTORS = 5;
const LADDER = [1, 2, 5, 10, 15, 30, 60].map((minutes) => minutes * MINUTE_MS);
/** A jitter is enough that leaves a tenth of the peak; one that leaves more than this much is not worth it. */
const ENOUGH = 0.1;
const WORTH_IT = 0.8;
/** Groups beyond these carry too little to change what is suggested. */
const MOST_SPREAD = 500;
export const ONE_TIME = 'one-time jobs';

/** The highest peaks of all queues, highest first. */
export function findPeaks(load: MinuteLoad, groups: FiringGroups, most: number): Peak[] {
  const highest = load.queues
    .flatMap((queue) => summits(load, queue, most))
    .sort((a, b) => b.count - a.count || a.minute - b.minute)
    .slice(0, most);
  const byQueue = new Map(highest.map(({ queue }) => [queue, [] as FiringGroup[]]));
  if (byQueue.size > 0) {
    for (const { groups: members } of groups.shapes()) {
      for (const group of members) byQueue.get(group.queue)?.push(group);
    }
  }
  return highest.map((summit) => explain(load, byQueue.get(summit.queue) ?? [], summit));
}

interface Summit {
  readonly queue: string;
  readonly minute: number;
  readonly count: number;
  readonly mean: number;
}

function summits(load: MinuteLoad, queue: string, most: number): Summit[] {
  const counts = load.of(queue);
  const mean = counts.reduce((sum, count) => sum + count, 0) / counts.length;
  const least = Math.max(SMALLEST_PEAK, TIMES_MEAN * mean);
  const minutes = [...counts.keys()]
    .filter((minute) => (counts[minute] as number) >= least)
    .sort((a, b) => (counts[b] as number) - (counts[a] as number) || a - b);
  const found: Summit[] = [];
  for (const minute of minutes) {
    if (found.length === most) break;
    if (found.some((summit) => Math.abs(summit.minute - minute) <= REACH)) continue;
    found.push({ queue, minute, count: counts[minute] as number, mean });
  }
  return found;
}

interface Share {
  readonly group: FiringGroup;
  readonly count: number;
}

function explain(load: MinuteLoad, groups: readonly FiringGroup[], summit: Summit): Peak {
  const at = load.from + summit.minute * MINUTE_MS;
  const shares: Share[] = [];
  let scheduled = 0;
  for (const group of groups) {
    const count = loadOf(group, at, at + MINUTE_MS)[0] ?? 0;
    if (count === 0) continue;
    shares.push({ group, count });
    scheduled += count;
  }
  shares.sort((a, b) => b.count - a.count);
  const oneTime = Math.max(0, summit.count - scheduled);
  return {
    queue: summit.queue,
    at,
    count: summit.count,
    contributors: contributorsOf(shares, oneTime),
    withJitter: flatten(load, summit, shares.slice(0, MOST_SPREAD)),
  };
}

function contributorsOf(shares: readonly Share[], oneTime: number): Contributor[] {
  const found = new Map<string, { what: string; count: number; schedules: number; examples: string[] }>();
  for (const { group, count } of shares) {
    const what = group.shape.label;
    const known = found.get(what);
    if (known === undefined) {
      found.set(what, { what, count, schedules: group.schedules, examples: [...group.examples] });
    } else {
      known.count += count;
      known.schedules += group.schedules;
      if (known.examples.length < group.examples.length) known.examples = [...group.examples];
    }
  }
  // A share of less than half a firing is an error of rounding.
  if (oneTime >= 0.5) found.set(ONE_TIME, { what: ONE_TIME, count: oneTime, schedules: 0, examples: [] });
  return [...found.values()].sort((a, b) => b.count - a.count).slice(0, MOST_CONTRIBUTORS);
}

/** The smallest jitter that is enough, else the one that leaves least. */
function flatten(load: MinuteLoad, summit: Summit, shares: readonly Share[]): FlattenedPeak | undefined {
  const enough = Math.max(summit.count * ENOUGH, summit.mean * TIMES_MEAN);
  let best: FlattenedPeak | undefined;
  for (const jitter of LADDER) {
    const flat = spreadOver(load, summit, shares, jitter);
    if (best === undefined || flat.count < best.count) best = flat;
    if (flat.count <= enough) break;
  }
  return best !== undefined && best.count <= summit.count * WORTH_IT ? best : undefined;
}

/** The busiest minute of the peak and those after it over which a jitter spreads it. */
function spreadOver(
  load: MinuteLoad,
  { queue, minute }: Summit,
  shares: readonly Share[],
  jitter: number,
): FlattenedPeak {
  const last = Math.min(load.minutes, minute + Math.ceil(jitter / MINUTE_MS) + 1);
  const from = load.from + minute * MINUTE_MS;
  const to = load.from + last * MINUTE_MS;
  const counts = load.of(queue).slice(minute, last);
  for (const { group } of shares) {
    const { shape, schedules } = group;
    if (shape.jitter >= jitter) continue;
    const now = loadOf(group, from, to);
    const then = loadOf({ shape: { ...shape, jitter }, schedules }, from, to);
    counts.forEach((count, i) => {
      counts[i] = count - (now[i] as number) + (then[i] as number);
    });
  }
  let busiest = 0;
  counts.forEach((count, i) => {
    if (count > (counts[busiest] as number)) busiest = i;
  });
  return { jitter, count: counts[busiest] ?? 0, at: from + busiest * MINUTE_MS };
}
