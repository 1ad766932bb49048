import type { ClusterView } from './cluster-view.js';
import { type EtcdClient, unchanged } from './etcd-client.js';
import type { EtcdKeys } from './etcd-keys.js';
import type { PartitionLayout } from './partition-layout.js';

/**
 * Makes the layout another one. Instances see it at their next look; no bucket moves, only who leads it.
 * @returns false when somebody else has changed the layout since `view` was read.
 */
export async function setLayout(
  client: EtcdClient,
  keys: EtcdKeys,
  view: ClusterView,
  wanted: PartitionLayout,
): Promise<boolean> {
  const { partitions, pinned } = wanted;
  const { succeeded } = await client.txn({
    if: [unchanged(keys.layout, view.layout)],
    success: [{ put: keys.layout, value: JSON.stringify({ partitions, pinned }) }],
  });
  return succeeded;
}

/** Asks an instance to hand over and take nothing. @param at ISO 8601 */
export async function askToDrain(
  client: EtcdClient,
  keys: EtcdKeys,
  instanceId: string,
  { at, note }: { at: string; note?: string | undefined },
): Promise<void> {
  const value = JSON.stringify({ at, ...(note === undefined ? {} : { note }) });
  await client.txn({ if: [], success: [{ put: keys.drain(instanceId), value }] });
}

/** Takes that back: the instance takes part again. With a `modRevision`, only the order of that revision. */
export async function endDrain(
  client: EtcdClient,
  keys: EtcdKeys,
  order: { instanceId: string; modRevision?: number },
): Promise<void> {
  const key = keys.drain(order.instanceId);
  const { modRevision } = order;
  await client.txn({
    if: modRevision === undefined ? [] : [{ key, modRevision }],
    success: [{ delete: key }],
  });
}
