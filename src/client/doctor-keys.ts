import { BUCKETS } from '../domain/buckets.js';
import type { DoctorContext } from './doctor-context.js';
import { replies } from './doctor-context.js';
import type { Problem } from './doctor-finding.js';

/** What a key under the tag is: which type Redis must give it, and whose it is. */
export type KeyKind =
  | {
      type: KeyType;
      part:
        | 'meta'
        | 'fence'
        | 'heads'
        | 'queues'
        | 'leader'
        | 'history'
        | 'calendars'
        | 'zones'
        | 'zone-moves'
        | 'clock'
        | 'watched'
        | 'looks'
        | 'latch:dependencies'
        | 'latch:processed'
        | 'latch:failed'
        | 'workers'
        | 'beats'
        | 'drains'
        | 'effects'
        | 'dead-since'
        | 'gates'
        | 'gate-heads'
        | 'gate-parked';
    }
  | { type: KeyType; part: 'bucket'; bucket: number }
  | { type: KeyType; part: 'spent' | 'spentShort'; bucket: number; generation: number }
  | { type: KeyType; part: 'dedup'; queue: string }
  | { type: KeyType; part: 'once' | 'dead-seen' }
  | { type: KeyType; part: 'gate'; queue: string; group: string }
  | { type: KeyType; part: 'gateRing' | 'gateTokens'; queue: string }
  | { type: KeyType; part: 'ledger' | 'children' | 'followers'; identity: string }
  | { part: 'none' };

type KeyType = 'string' | 'hash' | 'set' | 'zset' | 'stream';

const ONES = {
  meta: 'hash',
  fence: 'hash',
  heads: 'zset',
  queues: 'hash',
  leader: 'hash',
  history: 'stream',
  calendars: 'hash',
  zones: 'hash',
  'zone-moves': 'hash',
  clock: 'string',
  watched: 'set',
  looks: 'zset',
  'latch:dependencies': 'set',
  'latch:processed': 'hash',
  'latch:failed': 'hash',
  workers: 'hash',
  beats: 'zset',
  drains: 'hash',
  effects: 'hash',
  'dead-since': 'string',
  gates: 'hash',
  'gate-heads': 'zset',
  'gate-parked': 'set',
} as const;
const OF_BUCKET: Readonly<Record<string, KeyType>> = {
  jobs: 'hash',
  due: 'zset',
  plan: 'zset',
  parked: 'zset',
  quarantine: 'hash',
  parents: 'zset',
  outcomes: 'hash',
  after: 'hash',
};
const PAGE = 1000;

/** What stands behind the tag and its colon; undefined for what no part of Carillon writes. Pure. */
export function kindOfKey(rest: string): KeyKind | undefined {
  if (Object.hasOwn(ONES, rest)) {
    const part = rest as keyof typeof ONES;
    return { type: ONES[part], part };
  }
  if (rest === 'none1' || rest === 'none2' || rest === 'latch') return { part: 'none' };
  if (rest.startsWith('dedup:') && !rest.slice(6).includes(':') && rest.length > 6) {
    return { type: 'hash', part: 'dedup', queue: rest.slice(6) };
  }
  if (/^dead-seen:[^:]+$/.test(rest)) return { type: 'zset', part: 'dead-seen' };
  if (/^once:[^:]+:./s.test(rest)) return { type: 'string', part: 'once' };
  const gate = /^gate(-ring|-tokens)?:([^:]+)(?::(.*))?$/s.exec(rest);
  if (gate !== null && (gate[1] === undefined) === (gate[3] !== undefined)) {
    const [, what, queue = '', group = ''] = gate;
    if (what === undefined) return { type: 'zset', part: 'gate', queue, group };
    return what === '-ring'
      ? { type: 'zset', part: 'gateRing', queue }
      : { type: 'hash', part: 'gateTokens', queue };
  }
  if (rest.startsWith('ledger:') && rest.indexOf(':', 7) > 7) {
    return { type: 'hash', part: 'ledger', identity: rest.slice(7) };
  }
  if (rest.startsWith('followers:') && rest.indexOf(':', 10) > 10) {
    return { type: 'set', part: 'followers', identity: rest.slice(10) };
  }
  if (rest.startsWith('children:') && rest.indexOf(':', 9) > 9) {
    return { type: 'set', part: 'children', identity: rest.slice(9) };
  }
  const [, number, name = '', generation] = /^(0|[1-9]\d*):([a-z-]+)(?::([1-9]\d*|0))?$/.exec(rest) ?? [];
  const bucket = Number(number);
  if (number === undefined || bucket >= BUCKETS) return undefined;
  if (generation !== undefined) {
    const part = name === 'spent' ? 'spent' : name === 'spent-short' ? 'spentShort' : undefined;
    return part && { type: 'hash', part, bucket, generation: Number(generation) };
  }
  const type = Object.hasOwn(OF_BUCKET, name) ? OF_BUCKET[name] : undefined;
  return type && { type, part: 'bucket', bucket };
}

/** What the walk over all keys found for the checks that come after it. */
export interface KeysLook {
  keys: number;
  /** Buckets with a key of the wrong type: nothing else of them can be read. */
  unreadable: Set<number>;
  /** Parts of the shard with the wrong type. */
  unreadableParts: Set<string>;
  /** Queues with deduplication entries. */
  dedupQueues: string[];
  /** Identities that have a ledger. */
  ledgers: string[];
  /** Identities that have children. */
  families: string[];
  /** Identities of schedules that others follow. */
  followed: string[];
  /** Tenants with something held, by their queues. */
  gates: { queue: string; group: string }[];
}

/** Walks all keys of the database once, by SCAN; those under the tag are held against what is known. */
export async function checkKeys({ client, keys, findings }: DoctorContext): Promise<KeysLook> {
  const look: KeysLook = {
    keys: 0,
    unreadable: new Set(),
    unreadableParts: new Set(),
    dedupQueues: [],
    ledgers: [],
    families: [],
    followed: [],
    gates: [],
  };
  const head = `${keys.tag}:`;
  const seen = new Set<string>();
  const meta = (await client.type(keys.meta)) === 'hash';
  const [spent, spentShort] = meta ? await client.hmget(keys.meta, 'spent', 'spentShort') : [];
  const generations = { spent: Number(spent ?? Number.NaN), spentShort: Number(spentShort ?? Number.NaN) };
  let cursor = '0';
  do {
    const [next, found] = await client.scan(cursor, 'MATCH', `${escapeGlob(head)}*`, 'COUNT', PAGE);
    cursor = next;
    const fresh = found.filter((key) => !seen.has(key));
    for (const key of fresh) seen.add(key);
    if (fresh.length === 0) continue;
    const pipeline = client.pipeline();
    for (const key of fresh) pipeline.type(key);
    const types = replies(await pipeline.exec()) as string[];
    fresh.forEach((key, i) => {
      const type = types[i] as string;
      if (type === 'none') return;
      look.keys++;
      const kind = kindOfKey(key.slice(head.length));
      for (const problem of judgeKey(key, type, kind, generations)) findings.add(problem);
      if (kind === undefined || kind.part === 'none') return;
      if (type === kind.type) {
        if (kind.part === 'dedup') look.dedupQueues.push(kind.queue);
        if (kind.part === 'ledger') look.ledgers.push(kind.identity);
        if (kind.part === 'followers') look.followed.push(kind.identity);
        if (kind.part === 'gate') look.gates.push({ queue: kind.queue, group: kind.group });
        if (kind.part === 'children') look.families.push(kind.identity);
      } else if (kind.part === 'bucket') look.unreadable.add(kind.bucket);
      else look.unreadableParts.add(kind.part);
    });
  } while (cursor !== '0');
  return look;
}

function judgeKey(
  key: string,
  type: string,
  kind: KeyKind | undefined,
  generations: { spent: number; spentShort: number },
): Problem[] {
  const say = (severity: Problem['severity'], detail: string): Problem[] => [
    { check: 'key', severity, subject: key, detail },
  ];
  if (kind === undefined) return say('warning', `no part of Carillon writes this ${type}`);
  if (kind.part === 'none') {
    return say('error', 'it must never exist: scripts, ours or BullMQ’s, lean on that');
  }
  if (type !== kind.type) return say('error', `it is a ${type}, and must be a ${kind.type}`);
  if (kind.part === 'spent' || kind.part === 'spentShort') {
    const present = generations[kind.part];
    // Two live; they may have turned since.
    if (kind.generation < present - 1 || kind.generation > present + 1) {
      return say(
        'warning',
        `its generation is ${kind.generation}, the present one ${present}: nobody reads it`,
      );
    }
  }
  return [];
}

/** A text that SCAN's MATCH takes as it is. */
export function escapeGlob(text: string): string {
  return text.replace(/[\\*?[\]]/g, '\\$&');
}
