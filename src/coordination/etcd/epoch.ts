import { randomBytes } from 'node:crypto';
import type { ClusterView, Epoch } from './cluster-view.js';
import type { EtcdClient } from './etcd-client.js';
import type { EtcdKeys } from './etcd-keys.js';

/** The part of a fence that tokens are ordered within. */
export function epochText({ number, id }: Epoch): string {
  return `${number}|${id}`;
}

/** An epoch of that number which is nobody else's. */
export function newEpoch(number: number): Epoch {
  return { number, id: randomBytes(4).toString('hex') };
}

/** Writes the first epoch of a namespace; whoever is first wins. */
export async function createEpoch(client: EtcdClient, keys: EtcdKeys): Promise<void> {
  await client.txn({
    if: [{ key: keys.epoch, createRevision: 0 }],
    success: [{ put: keys.epoch, value: JSON.stringify(newEpoch(1)) }],
  });
}

/** Writes an epoch over the one that was read. False when somebody else was quicker. */
export async function raiseEpoch(
  client: EtcdClient,
  keys: EtcdKeys,
  from: ClusterView['epoch'],
  to: Epoch,
): Promise<boolean> {
  const { succeeded } = await client.txn({
    if: [
      from === undefined
        ? { key: keys.epoch, createRevision: 0 }
        : { key: keys.epoch, modRevision: from.modRevision },
    ],
    success: [{ put: keys.epoch, value: JSON.stringify(to) }],
  });
  return succeeded;
}
