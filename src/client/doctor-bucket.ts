import type { DoctorContext } from './doctor-context.js';
import { numberOf, replies } from './doctor-context.js';
import { lookAtRecord, type Place, type RecordLook } from './doctor-place.js';

/** A set-aside record, as far as it says of itself. */
export interface Quarantined {
  /** ms */
  since: number;
  reason: string;
}

/** All that one bucket held, read page by page while it lived. */
export interface BucketLook {
  bucket: number;
  records: Map<string, RecordLook>;
  due: Map<string, number>;
  parked: Map<string, number>;
  plan: Map<string, number>;
  quarantine: Map<string, Quarantined | undefined>;
}

/** Entries a page asks for; payloads of a megabyte make it smaller. */
const PAGE = 200;
const SMALLEST_PAGE = 5;
const PAGE_BYTES = 512 * 1024;
const INDEXES = ['due', 'parked', 'plan'] as const;

/**
 * Reads one bucket. What does not change meanwhile is in it; what changes may be in two of its parts or in none, so
 * that a look tells suspects only.
 */
export async function lookAtBucket({ client, keys }: DoctorContext, bucket: number): Promise<BucketLook> {
  const look: BucketLook = {
    bucket,
    records: new Map(),
    due: new Map(),
    parked: new Map(),
    plan: new Map(),
    quarantine: new Map(),
  };
  const cursors = new Map([...INDEXES, 'jobs', 'quarantine'].map((part) => [part, '0']));
  let count = PAGE;
  while (cursors.size > 0) {
    const pipeline = client.pipeline();
    const parts = [...cursors.keys()];
    for (const [part, cursor] of cursors) {
      if (part === 'jobs') pipeline.hscanBuffer(keys.jobs(bucket), cursor, 'COUNT', count);
      else if (part === 'quarantine') pipeline.hscanBuffer(keys.quarantine(bucket), cursor, 'COUNT', count);
      else pipeline.zscan(keys[part as 'due'](bucket), cursor, 'COUNT', PAGE);
    }
    const pages = replies(await pipeline.exec()) as [Buffer | string, (Buffer | string)[]][];
    let bytes = 0;
    pages.forEach(([next, items], i) => {
      const part = parts[i] as string;
      cursors.set(part, String(next));
      if (String(next) === '0') cursors.delete(part);
      for (let k = 0; k < items.length; k += 2) {
        const identity = String(items[k]);
        const value = items[k + 1] as Buffer | string;
        bytes += value.length;
        if (part === 'jobs') look.records.set(identity, lookAtRecord(identity, value as Buffer));
        else if (part === 'quarantine') look.quarantine.set(identity, readQuarantined(value as Buffer));
        else look[part as 'due'].set(identity, Number(value));
      }
    });
    if (bytes > PAGE_BYTES) count = Math.max(SMALLEST_PAGE, Math.floor(count / 2));
  }
  return look;
}

/** Every identity that a bucket knows, as the look saw it. */
export function* placesOf(look: BucketLook): Generator<Place> {
  const identities = new Set(look.records.keys());
  for (const index of INDEXES) for (const identity of look[index].keys()) identities.add(identity);
  for (const identity of identities) {
    yield {
      bucket: look.bucket,
      identity,
      record: look.records.get(identity),
      due: look.due.get(identity),
      parked: look.parked.get(identity),
      plan: look.plan.get(identity),
    };
  }
}

/** The second look at one identity: all of it at one instant. */
export async function lookAgain(context: DoctorContext, bucket: number, identity: string): Promise<Place> {
  const { client, keys } = context;
  const [bytes, due, parked, plan] = replies(
    await client
      .multi()
      .hgetBuffer(keys.jobs(bucket), identity)
      .zscore(keys.due(bucket), identity)
      .zscore(keys.parked(bucket), identity)
      .zscore(keys.plan(bucket), identity)
      .exec(),
  ) as [Buffer | null, unknown, unknown, unknown];
  return {
    bucket,
    identity,
    record: bytes === null ? undefined : lookAtRecord(identity, bytes),
    due: numberOf(due),
    parked: numberOf(parked),
    plan: numberOf(plan),
  };
}

/** Undefined when the entry is too short to be one. */
export function readQuarantined(bytes: Buffer): Quarantined | undefined {
  if (bytes.length < 8) return undefined;
  const length = bytes.readUInt16BE(6);
  if (bytes.length < 8 + length) return undefined;
  return { since: bytes.readUIntBE(0, 6), reason: bytes.toString('utf8', 8, 8 + length) };
}
