import { createHash } from 'node:crypto';
import type { Redis } from 'ioredis';
import { CarillonError } from '../domain/errors.js';
import { Keys } from './keys.js';
import { RECORD_FORMAT } from './record.js';

/** What all clients and schedulers of a namespace must agree on; written once, when the first of them starts. */
export interface Layout {
  shards: number;
  format: number;
  /** The prefix of the BullMQ queues that the namespace feeds. */
  prefix: string;
}

/** One namespace a prefix: `carillon` for BullMQ's own prefix, else a name made from it. */
export function defaultNamespace(prefix: string): string {
  return prefix === 'bull' ? 'carillon' : `carillon-${prefix.replace(/[{}:]/g, '-')}`;
}

/** The text that each script compares with the shard's. */
export function layoutHash(layout: Layout): string {
  return createHash('sha1')
    .update(JSON.stringify([layout.shards, layout.format, layout.prefix]))
    .digest('hex')
    .slice(0, 12);
}

/**
 * Writes the namespace's layout if there is none, and compares it if there is.
 * @returns the layout's hash, which every script is given.
 * @throws CarillonError WRONG_LAYOUT when the namespace belongs to another prefix, or to another number of shards.
 */
export async function ensureLayout(client: Redis, namespace: string, prefix: string): Promise<string> {
  const wanted: Layout = { shards: 1, format: RECORD_FORMAT, prefix };
  const keys = new Keys(namespace);
  await client.set(keys.layout, JSON.stringify(wanted), 'NX');
  const stored = (await client.get(keys.layout)) ?? '';
  let found: Partial<Layout>;
  try {
    found = JSON.parse(stored) as Partial<Layout>;
  } catch {
    found = {};
  }
  if (found.prefix !== wanted.prefix || found.shards !== wanted.shards || found.format !== wanted.format) {
    throw new CarillonError(
      'WRONG_LAYOUT',
      `the namespace ${namespace} was laid out as ${stored}, not as ${JSON.stringify(wanted)}`,
      {
        field: found.prefix === wanted.prefix ? 'namespace' : 'prefix',
        given: prefix,
        todo: 'Use the prefix that the namespace was created with, or give this prefix a namespace of its own.',
      },
    );
  }
  const hash = layoutHash(wanted);
  await client.hsetnx(keys.meta, 'layout', hash);
  return hash;
}
