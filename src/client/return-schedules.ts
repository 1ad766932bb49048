import { toBullmqPattern } from '../domain/bullmq-pattern.js';
import { usesSeed } from '../domain/cron.js';
import { splitExpression } from '../domain/cron-expression.js';
import { resolveSeeds } from '../domain/cron-seeded.js';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import { compileSchedule } from '../domain/fire-times.js';
import { identityOf } from '../domain/ids.js';
import { compact } from '../domain/schedule.js';
import { writtenSchedule } from '../domain/written-schedule.js';
import { BullQueue } from '../queue/bullmq.js';
import { redisError } from '../redis/status.js';
import { compareWithBullmq } from './compare-with-bullmq.js';
import type { JobSchedulerOptions } from './job-scheduler-form.js';
import type { Queue } from './queue.js';
import type { ScheduleInfo } from './schedule-info.js';

/** A schedule and the Job Scheduler that it becomes. */
export interface ReturnedSchedule {
  readonly id: string;
  /** `refused`: it stays a schedule. */
  readonly kind: 'returned' | 'refused';
  readonly form?: JobSchedulerOptions;
  readonly reason?: string;
  /** What it says and BullMQ does not do, one sentence each. */
  readonly notTranslated: readonly string[];
}

/** Marks a schedule that BullMQ may have already. */
const MOVING = 'moving to BullMQ: repeat the export';
const TIMING = new Set([
  'cron',
  'tz',
  'every',
  'anchor',
  'phase',
  'startDate',
  'endDate',
  'limit',
  'startsAtOnce',
  'bullmqPattern',
]);

/**
 * Moves the schedules of a queue into Job Schedulers of BullMQ. Of each ours is paused first, BullMQ's stored, and
 * ours deleted; a repeat finishes what broke off.
 * @throws CarillonError OUT_OF_MEMORY, REDIS_UNAVAILABLE
 */
export async function returnSchedules(
  queue: Queue,
  options: { dryRun?: boolean } = {},
): Promise<ReturnedSchedule[]> {
  const { client } = queue.backend.shard;
  const bull = new BullQueue(queue.name, {
    connection: client,
    ...(queue.opts.prefix === undefined ? {} : { prefix: queue.opts.prefix }),
    skipVersionCheck: true,
    skipMetasUpdate: true,
  });
  bull.on('error', () => undefined);
  try {
    const infos: ScheduleInfo[] = [];
    for await (const info of queue.schedules.list()) infos.push(info);
    infos.sort((a, b) => (a.id < b.id ? -1 : 1));
    const returned: ReturnedSchedule[] = [];
    for (const info of infos) returned.push(await returnOne(queue, bull, info, options.dryRun ?? false));
    return returned;
  } catch (error) {
    throw redisError(error);
  } finally {
    await bull.close();
  }
}

async function returnOne(
  queue: Queue,
  bull: BullQueue,
  info: ScheduleInfo,
  dryRun: boolean,
): Promise<ReturnedSchedule> {
  const { id } = info;
  try {
    const form = formOf(queue.name, info);
    compareTimes(queue.name, info, form);
    if (!dryRun) await move(queue, bull, info);
    return { id, kind: 'returned', form, notTranslated: notTranslated(info) };
  } catch (error) {
    if (!isCarillonError(error) || error.retryable) throw error;
    return { id, kind: 'refused', reason: error.message, notTranslated: [] };
  }
}

async function move(queue: Queue, bull: BullQueue, { id }: ScheduleInfo): Promise<void> {
  const handle = queue.schedules.get(id);
  await handle.pause({ note: MOVING });
  const paused = await handle.describe();
  if (paused === undefined) return;
  const job = await bull.upsertJobScheduler(id, formOf(queue.name, paused), {
    name: paused.template.name,
    data: paused.template.data,
    opts: paused.template.opts,
  });
  const next = (job?.timestamp ?? 0) + (job?.delay ?? 0);
  // A tick that came between the pause and the hand-over would be nobody's.
  if (
    job !== undefined &&
    paused.definition.cron !== undefined &&
    paused.next !== undefined &&
    paused.next < next
  ) {
    await handle.trigger();
  }
  await handle.delete({ reason: 'moved to BullMQ' });
}

/** @throws CarillonError UNSUPPORTED for a schedule that BullMQ cannot have */
function formOf(queueName: string, info: ScheduleInfo): JobSchedulerOptions {
  const { state, note, definition, next } = info;
  if (state === 'ended' || next === undefined) throw unsupported('it has no tick left', 'Delete it.');
  if (state !== 'scheduled' && !(state === 'paused' && note === MOVING)) {
    throw unsupported(`it is ${state}, and a Job Scheduler is always active`, 'Resume or delete it first.');
  }
  const { startDate, endDate, limit, tz = 'UTC' } = definition;
  const bounds = {
    ...(endDate === undefined ? {} : { endDate }),
    ...(limit === undefined ? {} : { limit: limit - info.count }),
  };
  // BullMQ counts an every from its start: the next tick keeps the slots where they are.
  if (definition.every !== undefined) return { every: definition.every, startDate: next, ...bounds };
  const [cron, ...more] = definition.cron ?? [];
  if (cron === undefined || more.length > 0) {
    throw unsupported(
      'it has several expressions, and a Job Scheduler has one',
      'Make it several schedules first.',
    );
  }
  const { bullmqPattern } = definition;
  const given =
    bullmqPattern === undefined || usesSeed(bullmqPattern)
      ? toBullmqPattern(withoutSeeds(cron, identityOf(queueName, info.id)))
      : { pattern: bullmqPattern };
  if ('every' in given) return { every: given.every, startDate: next, ...bounds };
  return { pattern: given.pattern, tz, ...(startDate === undefined ? {} : { startDate }), ...bounds };
}

/** `H` and `~` as the values that they have here. */
function withoutSeeds(cron: string, seed: string): string {
  if (!usesSeed(cron)) return cron;
  const source = { text: cron, option: 'cron' };
  const fields = splitExpression(source);
  return 'every' in fields ? cron : Object.values(resolveSeeds(fields, seed, source)).join(' ');
}

/** @throws CarillonError UNSUPPORTED for a pattern that BullMQ would fire at other times */
function compareTimes(
  queueName: string,
  { id, definition, next = 0 }: ScheduleInfo,
  form: JobSchedulerOptions,
): void {
  if (form.pattern === undefined) return;
  const { cron: [cron] = [], tz, gap, fold, endDate } = definition;
  const seed = identityOf(queueName, id);
  const timing = compileSchedule(compact({ cron, tz, gap, fold, endDate }), { seed });
  compareWithBullmq(timing, form.pattern, next - 1);
}

function notTranslated({ definition }: ScheduleInfo): string[] {
  const lost: string[] = [];
  for (const [option, value] of Object.entries(writtenSchedule(definition))) {
    if (TIMING.has(option)) continue;
    const isBullmqs =
      (option === 'missed' && value === 'latest') || (option === 'overlap' && value === 'allow');
    if (!isBullmqs) lost.push(`${option} ${JSON.stringify(value)}`);
  }
  if (definition.overlap === undefined) lost.push('overlap "skip"');
  return lost;
}

function unsupported(problem: string, todo: string): CarillonError {
  return new CarillonError('UNSUPPORTED', problem, { todo });
}
