import { fromBullmqPattern } from '../domain/bullmq-pattern.js';
import { checkSchedule } from '../domain/check-schedule.js';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import { checkScheduleId, identityOf } from '../domain/ids.js';
import type { ScheduleDefinition, StoredPolicies } from '../domain/schedule.js';
import { type Difference, differences, writtenSchedule } from '../domain/written-schedule.js';
import { decodeOptions } from '../queue/job-json.js';
import { MoveScripts } from '../redis/move-scripts.js';
import { redisError, statusError } from '../redis/status.js';
import { storePaused } from './paused-schedule.js';
import type { Queue } from './queue.js';
import type { ScheduleInfo } from './schedule-info.js';
import type { ScheduleTemplate } from './schedules-port.js';
import { doubtsOfNew } from './wanted-schedule.js';

/** A Job Scheduler of BullMQ and what becomes of it. */
export interface AdoptedScheduler {
  readonly id: string;
  /**
   * `added`: it becomes a schedule. `kept`: a schedule of its id stands, stays as it is, and BullMQ's goes.
   * `finished`: an earlier moving broke off. `refused`: it stays in BullMQ.
   */
  readonly kind: 'added' | 'kept' | 'finished' | 'refused';
  /** Undefined when it is refused. */
  readonly definition?: StoredPolicies;
  readonly reason?: string;
  readonly warnings: readonly string[];
  /** Of one that is kept: where BullMQ's (from) is not what stands (to). */
  readonly differences: readonly Difference[];
}

/** Marks a schedule that is stored already while BullMQ may still have its own. */
const MOVING = 'moving from BullMQ: repeat the import';
const PAGE = 200;

type Fields = Readonly<Record<string, string>>;
interface Read {
  readonly policies: StoredPolicies;
  readonly template: ScheduleTemplate;
  readonly warnings: readonly string[];
}

/**
 * Moves the Job Schedulers of a queue into schedules. Of each the schedule is stored first, paused; then BullMQ's is
 * removed with its next run, and the schedule fires. A crash in between leaves no tick to both and none to neither
 * once the call is repeated.
 * @param options.tz the zone of patterns without one, which BullMQ reads in the zone of whichever host computes them.
 * @throws CarillonError QUEUE_BROKEN, OUT_OF_MEMORY, REDIS_UNAVAILABLE
 */
export async function adoptSchedulers(
  queue: Queue,
  options: { tz: string; dryRun?: boolean },
): Promise<AdoptedScheduler[]> {
  try {
    const { client, keys } = queue.backend.shard;
    const found = await readSchedulers(queue);
    const moved: AdoptedScheduler[] = [];
    // Looking at a namespace that is not there must not make one.
    const isEmpty = options.dryRun === true && (await client.exists(keys.layout)) === 0;
    for (const [id, { next, fields }] of found) {
      moved.push(await adoptOne(queue, id, next, fields, { ...options, isEmpty }));
    }
    if (isEmpty) return moved;
    for await (const info of queue.schedules.list()) {
      if (!isMoving(info) || found.has(info.id)) continue;
      if (!options.dryRun) await queue.schedules.get(info.id).resume();
      moved.push({
        id: info.id,
        kind: 'finished',
        definition: info.definition,
        warnings: [],
        differences: [],
      });
    }
    return moved;
  } catch (error) {
    throw redisError(error);
  }
}

async function adoptOne(
  queue: Queue,
  id: string,
  next: number,
  fields: Fields,
  options: { tz: string; dryRun?: boolean; isEmpty: boolean },
): Promise<AdoptedScheduler> {
  try {
    const pending = await isPending(queue, id, next);
    const read = readFields(checkScheduleId(id), next, pending, fields, queue.name, options.tz);
    const existing = options.isEmpty ? undefined : await queue.schedules.get(id).describe();
    const stands = existing !== undefined && !isMoving(existing);
    const { policies: definition } = read;
    const doubtsOf = () =>
      options.isEmpty
        ? doubtsOfNew(queue.name, { id, policies: definition })
        : queue.schedules.doubts(id, definition);
    const warnings = [...new Set([...read.warnings, ...(stands ? [] : await doubtsOf())])];
    if (!options.dryRun) {
      if (stands) await new MoveScripts(queue.backend.shard).dropJobScheduler(queue.name, id);
      else await move(queue, id, read);
    }
    if (!stands) return { id, kind: existing ? 'finished' : 'added', definition, warnings, differences: [] };
    const found = differences(writtenSchedule(definition), writtenSchedule(existing.definition));
    return { id, kind: 'kept', definition: existing.definition, warnings, differences: found };
  } catch (error) {
    const isJson = error instanceof SyntaxError;
    if (!isJson && (!isCarillonError(error) || error.retryable)) throw error;
    const reason = isJson ? 'its data or options are no JSON' : error.message;
    return { id, kind: 'refused', reason, warnings: [], differences: [] };
  }
}

async function move(queue: Queue, id: string, { policies, template }: Read): Promise<void> {
  const stored = await storePaused(queue, id, policies, template, MOVING);
  const dropped = await new MoveScripts(queue.backend.shard).dropJobScheduler(queue.name, id);
  const handle = queue.schedules.get(id);
  if (dropped !== undefined && !dropped.pending && stored.next !== undefined && stored.next <= dropped.next) {
    // BullMQ took that tick in the meantime: ours begins after it.
    await handle.delete();
    await queue.schedules.store(id, policies, template);
    return;
  }
  if (stored.state === 'paused') await handle.resume();
}

function isMoving({ state, note }: ScheduleInfo): boolean {
  return state === 'paused' && note === MOVING;
}

/** Whether its next run still waits for its time. */
async function isPending(queue: Queue, id: string, next: number): Promise<boolean> {
  const { client } = queue.backend.shard;
  return (await client.zscore(queue.toKey('delayed'), `repeat:${id}:${next}`)) !== null;
}

async function readSchedulers(queue: Queue): Promise<Map<string, { next: number; fields: Fields }>> {
  const { client } = queue.backend.shard;
  const key = queue.toKey('repeat');
  const type = await client.type(key);
  if (type !== 'zset' && type !== 'none') throw statusError('QUEUE_BROKEN', `repeat is a ${type}`);
  const found = new Map<string, { next: number; fields: Fields }>();
  for (let offset = 0; ; offset += PAGE) {
    const page = await client.zrange(key, `${offset}`, `${offset + PAGE - 1}`, 'WITHSCORES');
    if (page.length === 0) return found;
    for (let i = 0; i < page.length; i += 2) {
      const id = page[i] as string;
      found.set(id, { next: Number(page[i + 1]), fields: await client.hgetall(`${key}:${id}`) });
    }
  }
}

function readFields(
  id: string,
  next: number,
  pending: boolean,
  fields: Fields,
  queueName: string,
  defaultTz: string,
): Read {
  if (fields.ic === undefined) {
    const todo = 'Make it a Job Scheduler with BullMQ 5 first: upsertJobScheduler.';
    throw new CarillonError('UNSUPPORTED', 'it is a repeatable job of an older BullMQ, not a Job Scheduler', {
      todo,
    });
  }
  const warnings: string[] = [];
  const definition: ScheduleDefinition = {
    ...timingOf(next, fields, defaultTz, warnings),
    ...(fields.startDate === undefined ? {} : { startDate: Number(fields.startDate) }),
    ...(fields.endDate === undefined ? {} : { endDate: Number(fields.endDate) }),
    ...limitOf(pending, fields),
    missed: 'latest',
    overlap: 'allow',
  };
  const template: ScheduleTemplate = {
    name: fields.name ?? id,
    data: JSON.parse(fields.data ?? '{}') as unknown,
    opts: decodeOptions(fields.opts ?? '{}'),
  };
  const policies = checkSchedule(definition, identityOf(queueName, id));
  const { pattern } = fields;
  // The getters tell it as it was written, and code that writes it again changes nothing.
  if (pattern !== undefined && definition.cron !== undefined && definition.cron !== pattern) {
    policies.bullmqPattern = pattern;
  }
  return { policies, template, warnings };
}

function timingOf(
  next: number,
  fields: Fields,
  defaultTz: string,
  warnings: string[],
): Pick<ScheduleDefinition, 'cron' | 'tz' | 'every' | 'anchor'> {
  // The next run says where its slots lie, whatever offset and start made them so.
  if (fields.every !== undefined) return { every: Number(fields.every), anchor: next };
  const { cron, warnings: doubts } = fromBullmqPattern(fields.pattern ?? '');
  warnings.push(...doubts);
  if (fields.tz === undefined) {
    warnings.push(
      `no tz: BullMQ reads it in the zone of whichever host computes it; here it is ${defaultTz}`,
    );
  }
  return { cron, tz: fields.tz ?? defaultTz };
}

/** BullMQ counts the run that is to come among its iterations. */
function limitOf(pending: boolean, { limit, ic }: Fields): { limit?: number } {
  if (limit === undefined) return {};
  const left = Number(limit) - Number(ic) + (pending ? 1 : 0);
  if (left < 1) {
    throw new CarillonError('UNSUPPORTED', 'its limit is reached', {
      todo: 'Remove it: removeJobScheduler.',
    });
  }
  return { limit: left };
}
