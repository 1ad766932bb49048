import type { Redis } from 'ioredis';
import { CarillonError } from '../domain/errors.js';
import type { Keys } from '../redis/keys.js';
import type { ClusterLook } from './doctor-cluster.js';
import type { Findings } from './doctor-finding.js';

/** What every check is given. All of it only reads. */
export interface DoctorContext {
  readonly client: Redis;
  readonly keys: Keys;
  readonly prefix: string;
  /** What stands before a BullMQ queue's name in its keys. */
  readonly base: string;
  readonly findings: Findings;
  /** A heartbeat older than this (ms) is nobody's; undefined to go by the leader's own TTL. */
  readonly staleAfter: number | undefined;
  /** The buckets to look at: those whose keys have their types. */
  readonly buckets: readonly number[];
  /** Who leads by etcd; undefined when nobody can be asked. */
  readonly cluster?: (() => Promise<ClusterLook>) | undefined;
  /** Of a namespace that is led by etcd: whether a bucket is known to have a leader. */
  readonly led?: (bucket: number) => boolean;
  /** Redis' clock in ms, or the test kit's. */
  now(): Promise<number>;
}

/** A pipeline's or transaction's replies, in order. @throws the first error among them, or that it was not run. */
export function replies(results: [Error | null, unknown][] | null): unknown[] {
  if (results === null) throw new CarillonError('REDIS_UNAVAILABLE', 'Redis did not run a transaction');
  return results.map(([error, reply]) => {
    if (error !== null) throw error;
    return reply;
  });
}

/** A score or count as Redis gives it; undefined for none. */
export function numberOf(reply: unknown): number | undefined {
  return reply === null || reply === undefined ? undefined : Number(reply);
}
