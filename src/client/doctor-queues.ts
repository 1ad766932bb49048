import { formatDuration } from '../domain/durations.js';
import type { DoctorContext } from './doctor-context.js';
import { replies } from './doctor-context.js';
import { readQueues } from './doctor-counts.js';
import type { Problem } from './doctor-finding.js';
import { escapeGlob } from './doctor-keys.js';

/** BullMQ's keys that dispatch touches, with the types they may have; lua/lib/enqueue.lua repeats them. */
const QUEUE_KEYS = {
  wait: 'list',
  active: 'list',
  prioritized: 'zset',
  marker: 'zset',
  events: 'stream',
  meta: 'hash',
  pc: 'string',
} as const;
const PAGE = 500;
/** Ids of one list that are looked at; a longer list is judged by its newest ones. */
const MOST_IDS = 50_000;

/** The queues that BullMQ knows under the prefix: by their meta hashes, which a queue's first user writes. */
export async function bullQueues({ client, base }: DoctorContext): Promise<string[]> {
  const names = new Set<string>();
  const pattern = `${escapeGlob(base)}*:meta`;
  let cursor = '0';
  do {
    const [next, found] = await client.scan(cursor, 'MATCH', pattern, 'COUNT', 1000, 'TYPE', 'hash');
    cursor = next;
    for (const key of found) {
      const name = key.slice(base.length, -':meta'.length);
      if (name !== '' && !name.includes(':')) names.add(name);
    }
  } while (cursor !== '0');
  return [...names];
}

/** Types of a queue's keys, and whether our tier holds it for broken. @returns the number of ids looked at. */
export async function checkQueue(context: DoctorContext, queue: string): Promise<number> {
  const { client, base, findings } = context;
  const names = Object.keys(QUEUE_KEYS) as (keyof typeof QUEUE_KEYS)[];
  const pipeline = client.pipeline();
  for (const name of names) pipeline.type(`${base}${queue}:${name}`);
  const types = replies(await pipeline.exec()) as string[];
  const wrong = new Set<string>();
  names.forEach((name, i) => {
    const [found, wanted] = [types[i] as string, QUEUE_KEYS[name]];
    if (found === 'none' || found === wanted) return;
    wrong.add(name);
    findings.add({
      check: 'queue',
      severity: 'error',
      subject: queue,
      detail: `${base}${queue}:${name} is a ${found}, BullMQ needs a ${wanted}: its runs are parked`,
    });
  });
  let ids = 0;
  if (!wrong.has('wait')) ids += await checkList(context, queue);
  if (!wrong.has('prioritized')) ids += await checkPrioritized(context, queue);
  return ids;
}

/** A mark without a fault is taken away by the next probe, and a second look no longer finds it. */
export function suspectMarks(context: DoctorContext, marked: Iterable<string>): void {
  for (const queue of marked) {
    context.findings.suspect({
      async confirm(): Promise<Problem[]> {
        const mark = (await readQueues(context)).broken.get(queue);
        if (mark === undefined) return [];
        const since = formatDuration(Math.max(0, Math.round((await context.now()) - mark.since)));
        const detail = `it is parked for ${since}: ${mark.reason}`;
        return [{ check: 'queue', severity: 'error', subject: queue, detail }];
      },
    });
  }
}

async function checkList(context: DoctorContext, queue: string): Promise<number> {
  const { client, base, findings } = context;
  const key = `${base}${queue}:wait`;
  let looked = 0;
  while (looked < MOST_IDS) {
    const ids = await client.lrange(key, looked, looked + PAGE - 1);
    looked += ids.length;
    for (const id of await withoutJob(context, queue, ids)) {
      // Older versions of BullMQ keep markers in the list.
      if (id.startsWith('0:')) continue;
      findings.suspect({
        confirm: () => orphan(context, queue, id, 'wait', () => client.multi().lpos(key, id)),
      });
    }
    if (ids.length < PAGE) return looked;
  }
  findings.notes.push(`of the queue ${queue} only the newest ${MOST_IDS} waiting ids were looked at`);
  return looked;
}

async function checkPrioritized(context: DoctorContext, queue: string): Promise<number> {
  const { client, base, findings } = context;
  const key = `${base}${queue}:prioritized`;
  let looked = 0;
  let cursor = '0';
  do {
    const [next, list] = await client.zscan(key, cursor, 'COUNT', PAGE);
    cursor = next;
    const ids = list.filter((_, i) => i % 2 === 0);
    looked += ids.length;
    for (const id of await withoutJob(context, queue, ids)) {
      findings.suspect({
        confirm: () => orphan(context, queue, id, 'prioritized', () => client.multi().zscore(key, id)),
      });
    }
  } while (cursor !== '0' && looked < MOST_IDS);
  return looked;
}

async function withoutJob({ client, base }: DoctorContext, queue: string, ids: string[]): Promise<string[]> {
  if (ids.length === 0) return [];
  const pipeline = client.pipeline();
  for (const id of ids) pipeline.exists(`${base}${queue}:${id}`);
  const found = replies(await pipeline.exec());
  return ids.filter((_, i) => found[i] === 0);
}

async function orphan(
  { base }: DoctorContext,
  queue: string,
  id: string,
  list: string,
  ask: () => ReturnType<DoctorContext['client']['multi']>,
): Promise<Problem[]> {
  const [stands, exists] = replies(await ask().exists(`${base}${queue}:${id}`).exec());
  if (stands === null || exists === 1) return [];
  const detail = `it stands in ${list}, and there is no job ${base}${queue}:${id}`;
  return [{ check: 'orphan', severity: 'error', subject: `${queue} ${id}`, detail }];
}
