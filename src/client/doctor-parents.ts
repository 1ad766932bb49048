import { bucketOf } from '../domain/buckets.js';
import type { AfterEntry } from '../redis/submit-batch.js';
import type { DoctorContext } from './doctor-context.js';
import { replies } from './doctor-context.js';
import type { Problem } from './doctor-finding.js';
import { lookAtRecord } from './doctor-place.js';

const PAGE = 200;

/**
 * Holds what jobs wait for against the jobs themselves, and against what is known of their parents, both ways: a child
 * that nobody will tell waits for ever.
 * @param waiting identities of records in state `waiting`.
 * @param families parents that have a set of children.
 */
export async function checkParents(
  context: DoctorContext,
  waiting: readonly string[],
  families: readonly string[],
): Promise<void> {
  const children = new Set(waiting);
  for (const bucket of context.buckets) {
    let cursor = '0';
    do {
      const [next, list] = await context.client.hscan(context.keys.after(bucket), cursor, 'COUNT', PAGE);
      cursor = next;
      for (let i = 0; i < list.length; i += 2) children.add(list[i] as string);
    } while (cursor !== '0');
  }
  for (const child of children) {
    await suspect(context, () => judgeChild(context, child));
  }
  for (const parent of families) {
    await suspect(context, () => judgeFamily(context, parent));
  }
}

async function suspect(context: DoctorContext, judge: () => Promise<Problem[]>): Promise<void> {
  if ((await judge()).length > 0) context.findings.suspect({ confirm: judge });
}

/** A child with its record, and each parent that it still waits for with that parent's indexes. */
async function judgeChild({ client, keys }: DoctorContext, child: string): Promise<Problem[]> {
  const bucket = bucketOf(child);
  const [bytes, text] = replies(
    await client.multi().hgetBuffer(keys.jobs(bucket), child).hget(keys.after(bucket), child).exec(),
  ) as [Buffer | null, string | null];
  const record = bytes === null ? undefined : lookAtRecord(child, bytes);
  const state = record !== undefined && 'state' in record ? record.state : undefined;
  const entry = text === null ? undefined : readAfter(text);
  const say = (detail: string): Problem[] => [
    { check: 'parents', severity: 'error', subject: child, detail: `bucket ${bucket}: ${detail}` },
  ];
  if (text !== null && entry === undefined) return say('what it waits for cannot be read');
  const open =
    entry?.x === undefined
      ? (entry?.e.filter(([, , outcome]) => outcome === '').map(([parent]) => parent) ?? [])
      : [];
  if (state === 'waiting' && open.length === 0)
    return say('it is waiting, and there is no parent that it waits for');
  if (open.length > 0 && state !== 'waiting' && state !== 'paused') {
    return say(`it waits for ${open[0]}, and ${state === undefined ? 'there is no record' : `is ${state}`}`);
  }
  for (const parent of open) {
    const [look, member, outcome] = replies(
      await client
        .multi()
        .zscore(keys.parents(bucketOf(parent)), parent)
        .sismember(keys.children(parent), child)
        .hget(keys.outcomes(bucketOf(parent)), parent)
        .exec(),
    ) as [string | null, number, string | null];
    if (look === null) return say(`nobody looks at its parent ${parent}`);
    if (member !== 1) return say(`its parent ${parent} does not know of it`);
    if (outcome?.split('|')[2] === '*') return say(`it was not told that its parent ${parent} has ended`);
  }
  return [];
}

/** A parent with children is looked at; those that are to hear of it know so. */
async function judgeFamily({ client, keys }: DoctorContext, parent: string): Promise<Problem[]> {
  const bucket = bucketOf(parent);
  const [children, look, outcome] = replies(
    await client
      .multi()
      .smembers(keys.children(parent))
      .zscore(keys.parents(bucket), parent)
      .hget(keys.outcomes(bucket), parent)
      .exec(),
  ) as [string[], string | null, string | null];
  const say = (detail: string): Problem => ({
    check: 'parents',
    severity: 'error',
    subject: parent,
    detail: `bucket ${bucket}: ${detail}`,
  });
  if (children.length === 0) return [];
  if (look === null) return [say('others wait for it, and nobody looks at it')];
  if (outcome !== null) return [];
  for (const child of children) {
    const text = await client.hget(keys.after(bucketOf(child)), child);
    const names = text === null ? [] : (readAfter(text)?.e ?? []).map(([name]) => name);
    if (!names.includes(parent)) return [say(`${child} is among its children, and does not wait for it`)];
  }
  return [];
}

function readAfter(text: string): AfterEntry | undefined {
  try {
    const entry = JSON.parse(text) as AfterEntry;
    return Array.isArray(entry.e) ? entry : undefined;
  } catch {
    return undefined;
  }
}
