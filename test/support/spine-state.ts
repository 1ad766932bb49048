import { isDeepStrictEqual } from 'node:util';
import { decodeRecord } from '../../src/redis/record.js';
import type { Spine } from './spine.js';

/** What stands in a namespace and its queues, readable: `<what> <member>` → value. Buckets are left out of the names. */
export type SpineState = Record<string, unknown>;

/** Decoders of our own values, by the first part of a key's name without its bucket. */
const DECODERS: Record<string, (value: Buffer) => unknown> = {
  jobs: readRecord,
  quarantine: readQuarantined,
  spent: readSpent,
  'spent-short': readSpent,
  dedup: readDedup,
};

/** Reads everything that the scripts of a namespace may touch. Streams without their ids, which hold real time. */
export async function readState(spine: Spine): Promise<SpineState> {
  const { tag, layout, none, clock } = spine.keys;
  const ours = await keysLike(spine, `${tag}:*`);
  const theirs = await keysLike(spine, `${spine.prefix}:*`);
  const state: SpineState = {};
  for (const key of ours) {
    if (key === clock) continue;
    if (none.includes(key)) throw new Error(`${key} must never exist`);
    const [bucketOrName = '', second] = key.slice(tag.length + 1).split(/:(.*)/s);
    const name = /^\d+$/.test(bucketOrName) ? (second as string) : key.slice(tag.length + 1);
    await readKey(spine, key, name, state);
  }
  for (const key of theirs)
    if (key !== layout) await readKey(spine, key, key.slice(spine.prefix.length + 1), state);
  return state;
}

/**
 * What `act` changed: each entry that differs, with its new value, `null` for one that is gone. Of a record that
 * changed, only the fields that did.
 */
export async function changesOf<T>(
  spine: Spine,
  act: () => Promise<T>,
): Promise<{ result: T; changes: SpineState }> {
  const before = await readState(spine);
  const result = await act();
  const after = await readState(spine);
  const changes: SpineState = {};
  for (const name of Object.keys({ ...before, ...after })) {
    if (isDeepStrictEqual(before[name], after[name])) continue;
    changes[name] = name in after ? changedFields(before[name], after[name]) : null;
  }
  return { result, changes };
}

function changedFields(before: unknown, after: unknown): unknown {
  if (!isPlain(before) || !isPlain(after)) return after;
  const fields = Object.keys({ ...before, ...after });
  return Object.fromEntries(
    fields
      .filter((field) => !isDeepStrictEqual(before[field], after[field]))
      .map((field) => [field, after[field]]),
  );
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) && !Buffer.isBuffer(value);
}

async function keysLike(spine: Spine, pattern: string): Promise<string[]> {
  const keys: string[] = [];
  for await (const page of spine.client.scanStream({
    match: pattern.replace(/[{}[\]]/g, '\\$&'),
    count: 1000,
  })) {
    keys.push(...(page as string[]));
  }
  return [...new Set(keys)].sort();
}

async function readKey({ client }: Spine, key: string, name: string, state: SpineState): Promise<void> {
  switch (await client.type(key)) {
    case 'hash': {
      const decode = DECODERS[name.split(':')[0] as string];
      const fields = await client.hgetallBuffer(key);
      if (!decode && name.includes(':') && 'opts' in fields) {
        state[name] = Object.fromEntries(
          Object.entries(fields).map(([field, value]) => [field, String(value)]),
        );
        return;
      }
      for (const [field, value] of Object.entries(fields)) {
        state[`${name} ${field}`] = decode ? decode(value) : String(value);
      }
      return;
    }
    case 'zset': {
      const list = await client.zrange(key, '0', '-1', 'WITHSCORES');
      for (let i = 0; i < list.length; i += 2) state[`${name} ${list[i]}`] = Number(list[i + 1]);
      return;
    }
    case 'list':
      state[name] = await client.lrange(key, 0, -1);
      return;
    case 'stream':
      state[name] = (await client.xrange(key, '-', '+')).map(([, fields]) => pairs(fields));
      return;
    default:
      state[name] = await client.get(key);
  }
}

function pairs(list: readonly string[]): Record<string, string> {
  const object: Record<string, string> = {};
  for (let i = 0; i < list.length; i += 2) object[list[i] as string] = list[i + 1] as string;
  return object;
}

function readRecord(bytes: Buffer): unknown {
  try {
    return decodeRecord(bytes);
  } catch {
    return bytes;
  }
}

function readQuarantined(bytes: Buffer): unknown {
  const length = bytes.readUInt16BE(6);
  return {
    since: bytes.readUIntBE(0, 6),
    reason: bytes.toString('utf8', 8, 8 + length),
    record: readRecord(bytes.subarray(8 + length)),
  };
}

const ENDS = ['', 'run', 'cancelled', 'replaced', 'deleted', 'expired'];

/** An ended identity: when, how, the answers of its requests, and the last tick of a schedule. */
function readSpent(bytes: Buffer): unknown {
  // The answer to a request that a record had no place for.
  if (bytes.length < 8) return { kept: bytes.toString() };
  const requests = bytes.readUInt8(7);
  const answers = Array.from({ length: requests }, (_, i) => bytes.readUInt8(8 + i * 8 + 7));
  const end = 8 + requests * 8;
  return {
    at: bytes.readUIntBE(0, 6),
    how: ENDS[bytes.readUInt8(6)],
    answers,
    ...(bytes.length > end ? { last: bytes.readUIntBE(end, 6) } : {}),
  };
}

function readDedup(bytes: Buffer): unknown {
  return { expiry: bytes.readUIntBE(7, 6), bucket: bytes.readUInt8(13), jobId: bytes.toString('utf8', 14) };
}
