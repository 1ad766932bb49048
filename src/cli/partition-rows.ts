import type { ClusterView, HandOver, LedPartition } from '../coordination/etcd/cluster-view.js';
import { bucketRange, overlaps, type Partition } from '../coordination/etcd/partition-layout.js';
import { type FenceStanding, standingOf } from '../domain/fence.js';
import type { BucketLoad } from '../redis/bucket-loads.js';

/**
 * How a partition stands: `led`; `taking over` (its fences are not all raised yet); `handing over` (its leader is
 * draining, or the number of partitions changes); `waiting` (for a partition of another count to be handed over);
 * `leaderless`; `refused` (fences in Redis are above etcd, which was rebuilt or restored: `carillon fence adopt`).
 */
export type PartitionState = 'led' | 'taking over' | 'handing over' | 'waiting' | 'leaderless' | 'refused';

/** A line of `partitions list`. */
export interface PartitionRow {
  partition: number;
  /** Of how many. */
  of: number;
  /** Its buckets. */
  first: number;
  last: number;
  state: PartitionState;
  leader: string | null;
  token: number | null;
  /** ISO 8601, since when it is led so. */
  since: string | null;
  /** How far its oldest due timer lies in the past, ms; 0 when nothing is due. */
  lag: number;
  /** Timers, due or not. */
  pending: number;
  /** Buckets with a timer that is due. */
  dueHeads: number;
  /** How the term before ended. */
  lastHandOver: { at: string; reason: string; from: string; token: number } | null;
}

/** Every partition of the layout, and those of an earlier layout that are still led. Pure; `now` in ms of Redis' clock. */
export function partitionRows(
  view: ClusterView,
  buckets: readonly BucketLoad[],
  now: number,
): PartitionRow[] {
  const count = view.layout?.partitions ?? 0;
  const wanted = Array.from({ length: count }, (_, n): Partition => ({ count, n }));
  const leaving = view.partitions.filter((led) => led.count !== count);
  return [...wanted, ...leaving].map((partition) => rowOf(partition, view, buckets, now));
}

function rowOf(
  { count, n }: Partition,
  view: ClusterView,
  buckets: readonly BucketLoad[],
  now: number,
): PartitionRow {
  const { first, last } = bucketRange({ count, n });
  const mine = buckets.slice(first, last + 1);
  const heads = mine.flatMap(({ head }) => (head === undefined || head > now ? [] : [head]));
  const led = view.partitions.find((other) => other.count === count && other.n === n);
  const before = view.handOvers.find((other) => other.count === count && other.n === n);
  return {
    partition: n,
    of: count,
    first,
    last,
    state: led === undefined ? freeState({ count, n }, view) : ledState(led, view, mine),
    leader: led?.instanceId ?? null,
    token: led?.token ?? null,
    since: led?.at ?? null,
    lag: heads.length === 0 ? 0 : Math.round(now - Math.min(...heads)),
    pending: mine.reduce((sum, { pending }) => sum + pending, 0),
    dueHeads: heads.length,
    lastHandOver: before === undefined ? null : handOverOf(before),
  };
}

function handOverOf({ at, reason, instanceId, token }: HandOver): PartitionRow['lastHandOver'] {
  return { at, reason, from: instanceId, token };
}

function freeState(partition: Partition, view: ClusterView): PartitionState {
  return view.partitions.some((other) => overlaps(other, partition)) ? 'waiting' : 'leaderless';
}

function ledState(led: LedPartition, view: ClusterView, buckets: readonly BucketLoad[]): PartitionState {
  const { epoch } = view;
  if (epoch !== undefined) {
    const term = { number: epoch.number, epochId: epoch.id, token: led.token, holder: led.instanceId };
    const standings = new Set<FenceStanding>(buckets.map(({ fence }) => standingOf(fence, term)));
    if (standings.has('above') || standings.has('other epoch')) return 'refused';
    if (standings.has('below')) return 'taking over';
  }
  if (led.count !== view.layout?.partitions) return 'handing over';
  const leader = view.members.find(({ instanceId }) => instanceId === led.instanceId);
  return leader?.draining || view.drains.some(({ instanceId }) => instanceId === led.instanceId)
    ? 'handing over'
    : 'led';
}
