import type { ClusterView } from './cluster-view.js';
import type { EtcdClient } from './etcd-client.js';
import type { EtcdKeys } from './etcd-keys.js';
import type { PartitionLayout } from './partition-layout.js';

/**
 * Makes the layout what an operator wants. Instances see it at their next look; no bucket moves, only who leads it.
 * @returns false when somebody else has changed the layout since `view` was read.
 */
export async function setLayout(
  client: EtcdClient,
  keys: EtcdKeys,
  view: ClusterView,
  wanted: PartitionLayout,
): Promise<boolean> {
  const { layout } = view;
  const { succeeded } = await client.txn({
    if: [
      layout === undefined
        ? { key: keys.layout, createRevision: 0 }
        : { key: keys.layout, modRevision: layout.modRevision },
    ],
    success: [
      {
        put: keys.layout,
        value: JSON.stringify({ partitions: wanted.partitions, pinned: wanted.pinned }),
      },
    ],
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

/** Takes that back: the instance takes part again. */
export async function endDrain(client: EtcdClient, keys: EtcdKeys, instanceId: string): Promise<void> {
  await client.txn({ if: [], success: [{ delete: keys.drain(instanceId) }] });
}
