import { BUCKETS, bucketOf } from '../domain/buckets.js';
import { type BucketLook, lookAgain, lookAtBucket, placesOf } from './doctor-bucket.js';
import { checkCluster, isLedByEtcd, ledBuckets } from './doctor-cluster.js';
import type { DoctorContext } from './doctor-context.js';
import { readQueues, suspectCounts, Tally } from './doctor-counts.js';
import { checkDedup } from './doctor-dedup.js';
import type { Problem } from './doctor-finding.js';
import { checkFollowers } from './doctor-followers.js';
import { checkGates, type HeldLook } from './doctor-gates.js';
import { checkKeys } from './doctor-keys.js';
import {
  checkFences,
  checkHeads,
  type Earliest,
  judgeLeader,
  type Leader,
  readLeader,
} from './doctor-leader.js';
import { checkLedgers } from './doctor-ledgers.js';
import { checkOverdue } from './doctor-overdue.js';
import { checkParents } from './doctor-parents.js';
import { judgePlace } from './doctor-place.js';
import { bullQueues, checkQueue, suspectMarks } from './doctor-queues.js';
import { checkLayout } from './doctor-server.js';
import { checkUntold } from './doctor-untold.js';

/** How much was looked at. */
export interface Looked {
  keys: number;
  records: number;
  quarantined: number;
  queues: number;
  /** Ids in BullMQ's wait and prioritized lists. */
  runs: number;
  deduplicated: number;
}

/** The first look at everything but the server: what is certain is told, what may be torn becomes a suspect. */
export async function examineNamespace(
  all: DoctorContext,
): Promise<{ looked: Looked; leader: Leader | undefined; coordination: 'standalone' | 'etcd' }> {
  const { keys, findings } = all;
  const looked = { keys: 0, records: 0, quarantined: 0, queues: 0, runs: 0, deduplicated: 0 };
  if ((await checkLayout(all)) === 'absent') return { looked, leader: undefined, coordination: 'standalone' };

  const found = await checkKeys(all);
  looked.keys = found.keys;
  const readable = (part: string) => !found.unreadableParts.has(part);
  const byEtcd =
    all.cluster !== undefined || (readable('fence') && readable('leader') && (await isLedByEtcd(all)));
  const led = all.cluster === undefined ? new Set<number>() : ledBuckets(await all.cluster());
  const context = {
    ...all,
    buckets: all.buckets.filter((bucket) => !found.unreadable.has(bucket)),
    ...(byEtcd ? { led: (bucket: number) => led.has(bucket) } : {}),
  };
  if (found.unreadable.size > 0) {
    findings.notes.push(
      `${found.unreadable.size} bucket(s) with a key of the wrong type were not judged further`,
    );
  }

  const walk = await walkBuckets(context, readable('queues'));
  looked.records = walk.records;
  looked.quarantined = walk.quarantined;
  const leader = readable('leader') ? await readLeader(context, await context.now()) : undefined;
  if (byEtcd) {
    if (readable('fence')) await checkCluster(context, walk.pending);
    if (all.cluster === undefined) {
      findings.notes.push(
        'etcd says who leads this namespace: leaders and fences are judged when doctor is told where it is (--etcd)',
      );
    }
  } else {
    for (const problem of judgeLeader(context, leader, walk.pending)) findings.add(problem);
    if (readable('fence') && readable('leader')) await checkFences(context);
  }
  if (readable('heads')) await checkHeads(context, leader, walk.earliest);
  if (readable('leader')) await checkOverdue(context, walk.earliest);
  if (readable('meta')) await checkCounter(context, walk.newest);

  const queues = new Set([...walk.queues, ...found.dedupQueues, ...(await bullQueues(context))]);
  if (readable('queues')) {
    if (context.buckets.length === BUCKETS) suspectCounts(context, walk.tally);
    const { counts, broken, unknown } = await readQueues(context);
    for (const field of counts.keys()) queues.add(field.slice(0, field.indexOf(':')));
    for (const queue of broken.keys()) queues.add(queue);
    for (const field of unknown) {
      findings.add({
        check: 'key',
        severity: 'warning',
        subject: `${keys.queues} ${field}`,
        detail: 'nobody reads it',
      });
    }
    suspectMarks(context, broken.keys());
    await suspectParked(context, walk.parkedQueues, broken);
  }
  await checkLedgers(
    context,
    found.ledgers.filter((identity) => !found.unreadable.has(bucketOf(identity))),
  );
  if (readable('dead-since') && readable('workers')) await checkUntold(context, walk.removing);
  await checkGates(context, walk.held, found.gates);
  await checkParents(context, walk.waiting, found.families);
  await checkFollowers(context, walk.following, found.followed);
  for (const queue of found.dedupQueues) looked.deduplicated += await checkDedup(context, queue);
  queues.delete('');
  for (const queue of queues) looked.runs += await checkQueue(context, queue);
  looked.queues = queues.size;
  return { looked, leader, coordination: byEtcd ? 'etcd' : 'standalone' };
}

/** One walk over all buckets: every record held against its indexes, and what other checks need to know of them. */
async function walkBuckets(context: DoctorContext, countable: boolean) {
  const { findings } = context;
  const tally = new Tally(context);
  const queues = new Set<string>();
  const parkedQueues = new Map<string, { bucket: number; identity: string }>();
  const earliest: Earliest[] = [];
  const [waiting, following]: [string[], string[]] = [[], []];
  const held: HeldLook[] = [];
  const removing = new Map<string, string[]>();
  let [records, quarantined, pending, newest] = [0, 0, 0, 0];
  for (const bucket of context.buckets) {
    const look = await lookAtBucket(context, bucket);
    if (countable) await tally.met(look);
    for (const place of placesOf(look)) {
      const { identity, record } = place;
      if (judgePlace(place).length > 0) {
        findings.suspect({ confirm: async () => judgePlace(await lookAgain(context, bucket, identity)) });
      }
      const queue = identity.slice(0, Math.max(0, identity.indexOf(':')));
      queues.add(queue);
      if (record?.kind !== 'job' && record?.kind !== 'schedule') continue;
      newest = Math.max(newest, record.inc, record.ver);
      if (record.kind === 'job' && record.state === 'held') held.push({ bucket, identity, ...record });
      if (record.removesDead) removing.set(queue, [...(removing.get(queue) ?? []).slice(0, 2), identity]);
      if (record.state === 'waiting') waiting.push(identity);
      if (record.kind === 'schedule' && record.follows.length > 0) following.push(identity);
      if (record.state === 'parked') parkedQueues.set(queue, { bucket, identity });
    }
    for (const problem of judgeQuarantine(look)) findings.add(problem);
    earliest.push({ bucket, due: least(look.due), plan: least(look.plan) });
    records += look.records.size;
    quarantined += look.quarantine.size;
    pending += look.due.size + look.plan.size;
  }
  if (countable) await tally.sample();
  return {
    tally,
    queues,
    parkedQueues,
    waiting,
    following,
    held,
    removing,
    earliest,
    records,
    quarantined,
    pending,
    newest,
  };
}

function judgeQuarantine(look: BucketLook): Problem[] {
  return [...look.quarantine].map(([subject, kept]): Problem => {
    if (kept === undefined) {
      return { check: 'quarantine', severity: 'error', subject, detail: 'the entry cannot be read' };
    }
    const detail = `set aside at ${new Date(kept.since).toISOString()}: ${kept.reason}`;
    return { check: 'quarantine', severity: 'warning', subject, detail };
  });
}

/** A parked record waits for the probe of its queue; without the queue's mark nobody probes. */
async function suspectParked(
  context: DoctorContext,
  parked: ReadonlyMap<string, { bucket: number; identity: string }>,
  broken: ReadonlyMap<string, unknown>,
): Promise<void> {
  for (const [queue, { bucket, identity }] of parked) {
    if (broken.has(queue) || (await context.client.sismember(context.keys.gateParked, queue)) === 1) continue;
    context.findings.suspect({
      async confirm(): Promise<Problem[]> {
        const { record } = await lookAgain(context, bucket, identity);
        const marked =
          (await readQueues(context)).broken.has(queue) ||
          (await context.client.sismember(context.keys.gateParked, queue)) === 1;
        if (marked || record === undefined || !('state' in record) || record.state !== 'parked') return [];
        const detail = `bucket ${bucket}: it is parked, and its queue is not marked as broken`;
        return [{ check: 'parked', severity: 'error', subject: identity, detail }];
      },
    });
  }
}

/** Read after all records: it never falls, so that none may be above it. */
async function checkCounter({ client, keys, findings }: DoctorContext, newest: number): Promise<void> {
  const counter = Number((await client.hget(keys.meta, 'inc')) ?? 0);
  if (newest <= counter) return;
  const detail = `the counter is ${counter}, a record has ${newest}`;
  findings.add({ check: 'counter', severity: 'error', subject: keys.meta, detail });
}

function least(scores: ReadonlyMap<string, number>): number | undefined {
  let found: number | undefined;
  for (const score of scores.values()) if (found === undefined || score < found) found = score;
  return found;
}
