import { readHistory } from '../client/history.js';
import type { Queue } from '../client/queue.js';
import { bucketOf } from '../domain/buckets.js';
import { identityOf } from '../domain/ids.js';
import { endOf } from '../redis/job-scripts.js';
import { readRunFacts } from '../redis/run-facts.js';
import type { AfterEntry } from '../redis/submit-batch.js';
import { WorkerRegistry } from '../redis/worker-registry.js';
import { storedData } from './exact-json.js';
import { utc } from './output.js';
import { retriesOf } from './retries-text.js';

/** A job as `jobs get` shows it. */
export interface JobDescription {
  queue: string;
  id: string;
  /** Who has it now. */
  where: 'timers' | 'bullmq' | 'quarantine' | 'ended';
  state: string;
  name?: string;
  due?: string;
  scheduledFor?: number;
  data?: unknown;
  opts?: unknown;
  priority?: number;
  attempts?: number;
  /** What follows a failure. */
  retries?: string;
  failed?: string;
  result?: unknown;
  note?: string;
  since?: string;
  /** What a repeat of a run does, by what its handler said last. */
  repeats?: string;
  /** Of a run that a worker has. */
  worker?: unknown;
  lockEndsIn?: string;
  token?: string;
  checkpoint?: unknown;
  asked?: string;
  /** What it waits for, or waited for. */
  after?: string[];
}

/** What repeats of a job's runs do, by what its handler said last. */
async function repeatsOf(queue: Queue, name: string): Promise<string> {
  const [repeats] = await new WorkerRegistry(queue.backend.shard).repeatsOf(queue.name, [name]);
  return repeats as string;
}

/** Looks for a job in the timers, in BullMQ and among what was set aside; undefined when nobody knows it. */
export async function describeJob(queue: Queue, id: string): Promise<JobDescription | undefined> {
  const head = { queue: queue.name, id };
  const { record, quarantined, ended } = await queue.backend.scripts.get(queue.name, id);
  if (record !== undefined) {
    const time = record.kind === 'job' ? record.at : record.cur;
    const { state, name, data, opts, priority, note } = record;
    return {
      ...head,
      where: 'timers',
      state: record.kind === 'schedule' ? `${state} (a schedule)` : state,
      name,
      due: utc(time),
      scheduledFor: time,
      data: storedData(data),
      opts: opts === '' ? {} : parsed(opts),
      priority,
      retries: retriesOf(opts === '' ? {} : parsed(opts)),
      repeats: await repeatsOf(queue, name),
      ...(note === undefined ? {} : { note }),
      ...(await waitsFor(queue, id)),
    };
  }
  const job = await queue.getJob(id);
  if (job !== undefined) {
    const { name, opts, priority, scheduledFor, attemptsMade, failedReason, returnvalue } = job;
    const { worker, lockEndsIn, token, checkpoint, asked } = await readRunFacts(
      queue.backend.shard,
      queue.name,
      id,
    );
    return {
      ...head,
      where: 'bullmq',
      state: await job.getState(),
      name,
      due: utc(scheduledFor),
      scheduledFor,
      data: await payloadOf(queue, job),
      opts,
      priority,
      attempts: attemptsMade,
      retries: retriesOf(opts),
      repeats: await repeatsOf(queue, name),
      ...(worker === undefined ? {} : { worker }),
      ...(lockEndsIn === undefined ? {} : { lockEndsIn: `${lockEndsIn} ms` }),
      ...(token === undefined ? {} : { token }),
      ...(checkpoint === undefined ? {} : { checkpoint }),
      ...(asked === undefined ? {} : { asked: `${asked.verb}${asked.reason ? `: ${asked.reason}` : ''}` }),
      ...(failedReason === undefined ? {} : { failed: failedReason }),
      ...(returnvalue === undefined || returnvalue === null ? {} : { result: returnvalue }),
    };
  }
  if (quarantined !== undefined) {
    const { reason, since } = quarantined;
    return { ...head, where: 'quarantine', state: 'set aside', note: reason, since: utc(since) };
  }
  if (ended !== undefined) {
    const state = endOf(ended);
    return { ...head, where: 'ended', state, since: utc(ended.at), ...(await whyEnded(queue, id, state)) };
  }
  return undefined;
}

/** The payload of a job of BullMQ's as it is stored. */
export async function payloadOf(
  queue: Queue,
  { id, data }: { id?: string | undefined; data: unknown },
): Promise<unknown> {
  const text = await queue.backend.shard.client.hget(queue.toKey(id ?? ''), 'data');
  return text === null ? data : storedData(text);
}

/** What the history says of an end without a run, and what a job waited for that ended by policy. */
async function whyEnded(
  queue: Queue,
  id: string,
  state: string,
): Promise<{ note?: string; after?: string[] }> {
  if (state === 'fired') return {};
  const { client, keys } = queue.backend.shard;
  const [entry] = await readHistory(client, keys, { limit: 1, queue: queue.name, jobId: id });
  return { ...(entry?.reason ? { note: entry.reason } : {}), ...(await waitsFor(queue, id, true)) };
}

async function waitsFor(queue: Queue, id: string, ended = false): Promise<{ after?: string[] }> {
  const { client, keys } = queue.backend.shard;
  const identity = identityOf(queue.name, id);
  const text = await client.hget(keys.after(bucketOf(identity)), identity);
  if (text === null) return {};
  const { e, x } = JSON.parse(text) as AfterEntry;
  // Of an earlier job of the id.
  if ((x !== undefined) !== ended) return {};
  return { after: e.map(([parent, on, outcome]) => `${parent} (${outcome === '' ? `on ${on}` : outcome})`) };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
