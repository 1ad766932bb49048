import type { ClusterView, HandOver } from './cluster-view.js';
import type { EtcdClient } from './etcd-client.js';
import type { EtcdKeys } from './etcd-keys.js';
import type { Partition } from './partition-layout.js';

/** Whose keys are written, and when by the wall clock. */
export interface Claimant {
  instanceId: string;
  lease: string;
  /** ISO 8601. */
  at: string;
}

/** How a term ended, as it is written. */
export type EndOfTerm = Omit<HandOver, 'count' | 'n'>;

/** Partitions given back in one transaction: etcd takes 128 operations, and each needs two. */
const BATCH = 50;

/**
 * Takes a free partition, if it is still free and the layout is still the one that was read. A layout of that revision
 * also says that no key of another count can have come since: each acquisition compares it.
 * @param lost how the last holder's term ended, where it could not tell itself.
 * @returns the token, or undefined when somebody else has it. An answer that was lost on the way is recognised by the
 *   lease when it is asked again.
 */
export async function claimPartition(
  client: EtcdClient,
  keys: EtcdKeys,
  { count, n }: Partition,
  { instanceId, lease, at }: Claimant,
  { layout, epoch }: Pick<ClusterView, 'layout' | 'epoch'>,
  lost: EndOfTerm | undefined,
): Promise<number | undefined> {
  const key = keys.partition(count, n);
  const { succeeded, revision, found } = await client.txn({
    if: [
      { key, createRevision: 0 },
      { key: keys.layout, modRevision: layout?.modRevision ?? 0 },
      { key: keys.epoch, modRevision: epoch?.modRevision ?? 0 },
    ],
    success: [
      { put: key, value: JSON.stringify({ instanceId, at }), lease },
      ...(lost === undefined ? [] : [{ put: keys.handOver(count, n), value: JSON.stringify(lost) }]),
    ],
    failure: [{ get: key }],
  });
  if (succeeded) return revision;
  const [holder] = found;
  return holder?.lease === lease ? holder.createRevision : undefined;
}

/** Gives partitions back, each if its key is still the one of that token. */
export async function releasePartitions(
  client: EtcdClient,
  keys: EtcdKeys,
  terms: readonly (Partition & { token: number })[],
  { instanceId, at, reason }: Omit<EndOfTerm, 'token'>,
): Promise<void> {
  for (let from = 0; from < terms.length; from += BATCH) {
    const batch = terms.slice(from, from + BATCH);
    if (await releaseAtOnce(batch)) continue;
    for (const term of batch) await releaseAtOnce([term]);
  }

  async function releaseAtOnce(batch: readonly (Partition & { token: number })[]): Promise<boolean> {
    const { succeeded } = await client.txn({
      if: batch.map(({ count, n, token }) => ({ key: keys.partition(count, n), createRevision: token })),
      success: batch.flatMap(({ count, n, token }) => [
        { delete: keys.partition(count, n) },
        {
          put: keys.handOver(count, n),
          value: JSON.stringify({ instanceId, token, at, reason } satisfies EndOfTerm),
        },
      ]),
    });
    return succeeded;
  }
}
