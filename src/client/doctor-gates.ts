import type { DoctorContext } from './doctor-context.js';
import { numberOf, replies } from './doctor-context.js';
import type { Problem } from './doctor-finding.js';
import { lookAtRecord } from './doctor-place.js';

/** A held run as a walk over the records saw it. */
export interface HeldLook {
  bucket: number;
  identity: string;
  group: string;
}

const PAGE = 200;

/**
 * Holds the records of held runs against the indexes of their gates, both ways: what no index has, no gate lets go.
 * @param gates the indexes that exist, a tenant each.
 */
export async function checkGates(
  context: DoctorContext,
  held: readonly HeldLook[],
  gates: readonly { queue: string; group: string }[],
): Promise<void> {
  for (let from = 0; from < held.length; from += PAGE) {
    await suspectUnindexed(context, held.slice(from, from + PAGE));
  }
  for (const gate of gates) await suspectDangling(context, gate);
}

async function suspectUnindexed(context: DoctorContext, page: readonly HeldLook[]): Promise<void> {
  const pipeline = context.client.pipeline();
  for (const { bucket, identity, group } of page) {
    pipeline.zscore(context.keys.gate(queueOf(identity), group), memberOf(bucket, identity));
  }
  const scores = replies(await pipeline.exec());
  page.forEach(({ bucket, identity }, i) => {
    if (scores[i] !== null) return;
    context.findings.suspect({ confirm: () => judgeHeld(context, bucket, identity) });
  });
  const queues = new Map(page.map(({ identity, group }) => [`${queueOf(identity)}:${group}`, identity]));
  for (const [gate, identity] of queues) {
    const queue = queueOf(gate);
    const confirm = () => judgeTurn(context, queue, gate.slice(queue.length + 1), identity);
    if ((await confirm()).length > 0) context.findings.suspect({ confirm });
  }
}

async function judgeHeld(
  { client, keys }: DoctorContext,
  bucket: number,
  identity: string,
): Promise<Problem[]> {
  const bytes = await client.hgetBuffer(keys.jobs(bucket), identity);
  const record = bytes === null ? undefined : lookAtRecord(identity, bytes);
  if (record?.kind !== 'job' || record.state !== 'held') return [];
  const key = keys.gate(queueOf(identity), record.group);
  const [score, again] = replies(
    await client
      .multi()
      .zscore(key, memberOf(bucket, identity))
      .hgetBuffer(keys.jobs(bucket), identity)
      .exec(),
  ) as [unknown, Buffer | null];
  if (numberOf(score) !== undefined || again === null || !again.equals(bytes as Buffer)) return [];
  return [problem(identity, `bucket ${bucket}: it is held, and ${key} does not have it`)];
}

/** A tenant with something held has its turns, and its queue too. */
async function judgeTurn(
  { client, keys }: DoctorContext,
  queue: string,
  group: string,
  identity: string,
): Promise<Problem[]> {
  const [count, ring, head] = replies(
    await client
      .multi()
      .zcard(keys.gate(queue, group))
      .zscore(keys.gateRing(queue), group)
      .zscore(keys.gateHeads, queue)
      .exec(),
  );
  if (Number(count) === 0 || (ring !== null && head !== null)) return [];
  return [problem(identity, `it is held, and its ${ring === null ? 'tenant' : 'queue'} has no turn`)];
}

async function suspectDangling(
  context: DoctorContext,
  gate: { queue: string; group: string },
): Promise<void> {
  const { client, keys } = context;
  let cursor = '0';
  do {
    const [next, list] = await client.zscanBuffer(keys.gate(gate.queue, gate.group), cursor, 'COUNT', PAGE);
    cursor = String(next);
    const members = (list as unknown as Buffer[]).filter((_, i) => i % 2 === 0);
    const pipeline = client.pipeline();
    for (const member of members) pipeline.hgetBuffer(keys.jobs(member[0] as number), identityIn(member));
    const records = replies(await pipeline.exec()) as (Buffer | null)[];
    members.forEach((member, i) => {
      if (!isHeld(member, records[i] ?? null)) {
        context.findings.suspect({ confirm: () => judgeMember(context, gate, member) });
      }
    });
  } while (cursor !== '0');
}

async function judgeMember(
  { client, keys }: DoctorContext,
  { queue, group }: { queue: string; group: string },
  member: Buffer,
): Promise<Problem[]> {
  const [score, bytes] = replies(
    await client
      .multi()
      .zscore(keys.gate(queue, group), member)
      .hgetBuffer(keys.jobs(member[0] as number), identityIn(member))
      .exec(),
  ) as [unknown, Buffer | null];
  if (numberOf(score) === undefined || isHeld(member, bytes)) return [];
  return [problem(identityIn(member), `${keys.gate(queue, group)} has it, and it is not held`)];
}

function isHeld(member: Buffer, bytes: Buffer | null): boolean {
  const record = bytes === null ? undefined : lookAtRecord(identityIn(member), bytes);
  return record?.kind === 'job' && record.state === 'held';
}

function memberOf(bucket: number, identity: string): Buffer {
  return Buffer.concat([Buffer.from([bucket]), Buffer.from(identity)]);
}

function identityIn(member: Buffer): string {
  return member.toString('utf8', 1);
}

function queueOf(identity: string): string {
  return identity.slice(0, Math.max(0, identity.indexOf(':')));
}

function problem(subject: string, detail: string): Problem {
  return { check: 'gate', severity: 'error', subject, detail };
}
