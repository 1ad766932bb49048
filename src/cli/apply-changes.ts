import type { Queue } from '../client/queue.js';
import type { ScheduleInfo } from '../client/schedule-info.js';
import type { ScheduleChange, WantedSchedule } from '../client/wanted-schedule.js';
import { type ErrorCode, isCarillonError } from '../domain/errors.js';
import { followNode } from '../domain/followed.js';
import { layersOf } from '../domain/graph.js';
import { withQueue, withRedis } from './connect.js';
import type { Settings } from './settings.js';

/** A schedule that a file asks for. */
export interface WantedEntry {
  readonly queue: string;
  /** Where it stands: `jobs.cron:8`. */
  readonly source: string;
  readonly wanted: WantedSchedule;
  readonly notTranslated: readonly string[];
  readonly warnings: readonly string[];
  /** The tag of what an import of this file creates; undefined for a file without a name. */
  readonly mark?: string | undefined;
}

/** What a file asks for and cannot have. */
export interface RefusedEntry {
  readonly source: string;
  readonly text: string;
  readonly reason: string;
  /** Schedules that may be what earlier imports made of it. */
  readonly ids?: readonly string[];
  readonly code?: ErrorCode;
}

export interface ChangedEntry extends WantedEntry {
  readonly change: ScheduleChange;
}

/** What applying would do. */
export interface Changes {
  readonly entries: readonly ChangedEntry[];
  readonly refused: readonly RefusedEntry[];
  readonly deleted: readonly { readonly queue: string; readonly id: string }[];
}

/** Gives the last word on what is wanted, once it is known what stands; a text refuses it. */
export type Adjust = (
  wanted: WantedSchedule,
  existing: ScheduleInfo | undefined,
  entry: WantedEntry,
) => WantedSchedule | string;

/** Calls under way at once. */
const LANES = 32;

/** Compares what is wanted with what stands. Nothing is written, not even a namespace that is not there. */
export async function compareEntries(
  settings: Settings,
  wanted: readonly WantedEntry[],
  adjust: Adjust = (as) => as,
): Promise<Changes> {
  const { compareSchedule, doubtsOfNew } = await import('../client/wanted-schedule.js');
  const entries: ChangedEntry[] = [];
  const refused: RefusedEntry[] = [];
  const isThere = await namespaceIsThere(settings);
  const compare = (
    entry: WantedEntry,
    existing: ScheduleInfo | undefined,
    doubtsOf: () => readonly string[],
  ) => {
    const { source } = entry;
    try {
      const doubts = doubtsOf();
      const adjusted = adjust(entry.wanted, existing, entry);
      if (typeof adjusted === 'string') refused.push({ source, text: entry.wanted.id, reason: adjusted });
      else {
        const warnings = [...new Set([...entry.warnings, ...doubts])];
        entries.push({ ...entry, wanted: adjusted, change: compareSchedule(existing, adjusted), warnings });
      }
    } catch (error) {
      if (!isCarillonError(error)) throw error;
      refused.push({ source, text: entry.wanted.id, reason: error.message, code: error.code });
    }
  };
  for (const [queue, group] of byQueue(wanted)) {
    if (!isThere) {
      for (const entry of group) compare(entry, undefined, () => doubtsOfNew(queue, entry.wanted));
      continue;
    }
    await withQueue(settings, queue, async ({ schedules }) => {
      const known = await inLanes(group, async ({ wanted: { id, policies } }) => ({
        existing: await schedules.get(id).describe(),
        doubts: await settled(schedules.doubts(id, policies)),
      }));
      for (const [i, entry] of group.entries()) {
        compare(entry, known[i]?.existing, known[i]?.doubts ?? (() => []));
      }
    });
  }
  return { entries, refused, deleted: [] };
}

/** How much there is to write. */
export function sizeOf({ entries, deleted }: Changes): number {
  return entries.filter(({ change }) => change.kind !== 'unchanged').length + deleted.length;
}

/** Writes what differs, what is followed before what follows it. One that fails does not hold up the others. */
export async function writeChanges(settings: Settings, changes: Changes): Promise<RefusedEntry[]> {
  const { storeWanted } = await import('../client/wanted-schedule.js');
  const failed: RefusedEntry[] = [];
  const attempt = async (source: string, text: string, write: () => Promise<unknown>) => {
    try {
      await write();
    } catch (error) {
      if (!isCarillonError(error) || error.retryable) throw error;
      failed.push({ source, text, reason: error.message });
    }
  };
  const open = changes.entries.filter(({ change }) => change.kind !== 'unchanged');
  const nodes = open.map(({ queue, wanted }) => followNode(queue, wanted.id, wanted.policies));
  for (const layer of layersOf(nodes)) {
    for (const [queue, group] of byQueue(layer.map((at) => open[at] as ChangedEntry))) {
      await withQueue(settings, queue, (q) =>
        inLanes(group, ({ source, wanted }) => attempt(source, wanted.id, () => storeWanted(q, wanted))),
      );
    }
  }
  for (const [queue, group] of byQueue(changes.deleted)) {
    const remove = (q: Queue) =>
      inLanes(group, ({ id }) => attempt(queue, id, () => q.schedules.get(id).delete({ reason: 'pruned' })));
    await withQueue(settings, queue, remove);
  }
  return failed;
}

/**
 * Two of one queue and id in one import would overwrite each other: the second is refused.
 * @param todo what keeps them apart.
 */
export function refuseDuplicates(
  wanted: readonly WantedEntry[],
  todo = 'give one of them another id, or another queue',
): { unique: WantedEntry[]; refused: RefusedEntry[] } {
  const first = new Map<string, WantedEntry>();
  const refused: RefusedEntry[] = [];
  for (const entry of wanted) {
    const key = `${entry.queue}:${entry.wanted.id}`;
    const earlier = first.get(key);
    if (earlier === undefined) first.set(key, entry);
    else {
      const reason = `its id is taken by ${earlier.source}; ${todo}`;
      refused.push({ source: entry.source, text: entry.wanted.id, reason });
    }
  }
  return { unique: [...first.values()], refused };
}

export async function namespaceIsThere({ namespace, redis }: Settings): Promise<boolean> {
  const { Keys } = await import('../redis/keys.js');
  return withRedis({ redis }, async (client) => (await client.exists(new Keys(namespace).layout)) === 1);
}

function byQueue<T extends { readonly queue: string }>(all: readonly T[]): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) {
    const group = groups.get(one.queue);
    if (group === undefined) groups.set(one.queue, [one]);
    else group.push(one);
  }
  return groups;
}

/** How a call ended, to be heard of later. What may succeed later is thrown at once. */
async function settled<T>(call: Promise<T>): Promise<() => T> {
  try {
    const value = await call;
    return () => value;
  } catch (error) {
    if (!isCarillonError(error) || error.retryable) throw error;
    return () => {
      throw error;
    };
  }
}

async function inLanes<T, R>(all: readonly T[], act: (one: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  for (let from = 0; from < all.length; from += LANES) {
    results.push(...(await Promise.all(all.slice(from, from + LANES).map(act))));
  }
  return results;
}
