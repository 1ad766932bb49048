import type { Redis } from 'ioredis';
import { checkCall } from '../config/call-options.js';
import { BUCKETS } from '../domain/buckets.js';
import { CarillonError, shortText } from '../domain/errors.js';
import { checkQueueName, splitIdentity } from '../domain/ids.js';
import type { StoredPolicies } from '../domain/schedule.js';
import { type RecordState, STATES } from '../domain/states.js';
import type { JobScripts } from '../redis/job-scripts.js';
import type { Keys } from '../redis/keys.js';
import { decodeRecord, type JobOrSchedule, type ScheduleRecord } from '../redis/record.js';
import { readQuarantined } from './doctor-bucket.js';
import { checkFilter, matcherOf, type ScheduleFilter } from './schedule-filter.js';

/** What a listing is asked for. */
export interface ListOptions {
  /** Only this queue's. */
  queue?: string;
  /** Entries of one page, 1 to 1,000. Defaults to 100. */
  limit?: number;
  /** The `cursor` of the page before. */
  cursor?: string;
}

export interface JobListOptions extends ListOptions {
  /** Only these states. Defaults to all. */
  states?: readonly RecordState[];
  kind?: 'job' | 'schedule';
  /** Only schedules that carry this tag. */
  tag?: string;
  /** Only what holds this text in its id, name, note, expression or zone, in any case. */
  text?: string;
}

/** One page; there is more while `cursor` is given. What changes meanwhile may be missing or come twice. */
export interface Page<T> {
  items: T[];
  cursor?: string;
}

/** A record in the timers. Times in ms. */
export interface ListedJob {
  queue: string;
  id: string;
  kind: 'job' | 'schedule';
  state: RecordState;
  name: string;
  /** Of a schedule: its pending tick. Undefined when there is none. */
  scheduledFor: number | undefined;
  /** The producer's JSON text. */
  data: string;
  priority: number;
  note: string | undefined;
  /** What repeats of its runs do, by what a handler of its name said last. */
  repeats?: string;
  /** Of a schedule. */
  definition?: StoredPolicies;
}

/** A record that was set aside. */
export interface QuarantinedJob {
  queue: string;
  id: string;
  /** ms */
  since: number;
  reason: string;
}

/** Where a listing goes on: the bucket, its HSCAN cursor, and how many of that page were given already. */
interface Position {
  bucket: number;
  cursor: string;
  skip: number;
}

const LIMIT = 100;
const MOST = 1000;
const SCAN = 200;
const STATE_NAMES = Object.keys(STATES) as RecordState[];

/**
 * @param own what the listing takes besides a queue and the place of a page.
 * @throws CarillonError INVALID_OPTION, INVALID_ID; nothing is asked then.
 */
export function checkListing(options: JobListOptions, own: readonly string[] = []): void {
  checkCall(options, ['queue', 'limit', 'cursor', ...own]);
  if (options.queue !== undefined) checkQueueName(options.queue);
  const { kind, states = [] } = options;
  if (kind !== undefined && kind !== 'job' && kind !== 'schedule') {
    refuse('kind', kind, "Write 'job' or 'schedule'.");
  }
  if (!Array.isArray(states)) refuse('states', states, "Give ['…'].");
  for (const state of states) {
    if (!STATE_NAMES.includes(state)) refuse('states', state, `Write ${STATE_NAMES.join(', ')}.`);
  }
  const { limit = LIMIT } = options;
  if (!Number.isSafeInteger(limit) || limit < 1 || limit > MOST) {
    refuse('limit', limit, `Give a whole number from 1 to ${MOST}.`);
  }
  checkFilter(narrowing(options));
  positionOf(options.cursor);
}

/** A page of records, through all buckets; in no order. The options are checked already. */
export function listJobs(scripts: JobScripts, options: JobListOptions): Promise<Page<ListedJob>> {
  const { queue, kind, states } = options;
  const isMeant = matcherOf(narrowing(options));
  const filter = {
    count: SCAN,
    ...(queue === undefined ? {} : { queue }),
    ...(kind === undefined ? {} : { kind }),
    ...(states === undefined || states.length === 0 ? {} : { states }),
  };
  return pageThrough(options, async (bucket, cursor) => {
    const page = await scripts.list(bucket, cursor, filter);
    const items = page.found.flatMap(({ identity, bytes }) => listed(identity, bytes));
    return { cursor: page.cursor, items: items.filter(isMeant) };
  });
}

function narrowing({ tag, text }: JobListOptions): ScheduleFilter {
  return { ...(tag === undefined ? {} : { tag }), ...(text === undefined ? {} : { text }) };
}

/** A page of what was set aside. The options are checked already. */
export function listQuarantine(
  client: Redis,
  keys: Keys,
  options: ListOptions,
): Promise<Page<QuarantinedJob>> {
  return pageThrough(options, async (bucket, cursor) => {
    const [next, list] = await client.hscanBuffer(keys.quarantine(bucket), cursor, 'COUNT', SCAN);
    const items: QuarantinedJob[] = [];
    for (let i = 0; i < list.length; i += 2) {
      const { queue, id } = halves(String(list[i]));
      if (options.queue !== undefined && queue !== options.queue) continue;
      const kept = readQuarantined(list[i + 1] as Buffer);
      items.push({ queue, id, since: kept?.since ?? 0, reason: kept?.reason ?? 'the entry cannot be read' });
    }
    return { cursor: String(next), items };
  });
}

/** Fills one page from as many HSCAN pages as it takes. */
async function pageThrough<T>(
  options: ListOptions,
  read: (bucket: number, cursor: string) => Promise<{ cursor: string; items: T[] }>,
): Promise<Page<T>> {
  const limit = options.limit ?? LIMIT;
  const position = positionOf(options.cursor);
  const items: T[] = [];
  while (position.bucket < BUCKETS) {
    const page = await read(position.bucket, position.cursor);
    const rest = page.items.slice(position.skip);
    const taken = rest.slice(0, limit - items.length);
    items.push(...taken);
    if (taken.length < rest.length) {
      position.skip += taken.length;
      return { items, cursor: `${position.bucket}.${position.cursor}.${position.skip}` };
    }
    position.skip = 0;
    position.cursor = page.cursor;
    if (page.cursor === '0') position.bucket++;
  }
  return { items };
}

function listed(identity: string, bytes: Buffer): ListedJob[] {
  let record: JobOrSchedule;
  try {
    record = decodeRecord(bytes);
  } catch {
    // `doctor` tells of it; a listing goes on.
    return [];
  }
  const { queue, id } = halves(identity);
  const { kind, state, name, data, priority, note } = record;
  const scheduledFor = record.kind === 'job' ? record.at : record.cur || undefined;
  const job = { queue, id, kind, state, name, scheduledFor, data, priority, note };
  return [record.kind === 'job' ? job : { ...job, definition: definitionOf(record) }];
}

function definitionOf(record: ScheduleRecord): StoredPolicies | undefined {
  try {
    return JSON.parse(record.policies) as StoredPolicies;
  } catch {
    return undefined;
  }
}

function halves(identity: string): { queue: string; id: string } {
  if (identity.indexOf(':') < 1) return { queue: '', id: identity };
  const { queue, jobId } = splitIdentity(identity);
  return { queue, id: jobId };
}

function positionOf(cursor: string | undefined): Position {
  if (cursor === undefined) return { bucket: 0, cursor: '0', skip: 0 };
  const [, bucket, scan, skip] = /^(\d{1,3})\.(\d{1,20})\.(\d{1,9})$/.exec(String(cursor)) ?? [];
  if (bucket === undefined) refuse('cursor', cursor, 'Give the cursor of the page before, as it was.');
  return { bucket: Number(bucket), cursor: scan as string, skip: Number(skip) };
}

function refuse(field: string, given: unknown, todo: string): never {
  throw new CarillonError('INVALID_OPTION', `${field} cannot be ${shortText(given)}`, { field, given, todo });
}
