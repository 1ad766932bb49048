import { randomBytes } from 'node:crypto';
import type { Epoch, EpochSource } from '../adopt-fences.js';
import { type ClusterView, readCluster } from './cluster-view.js';
import { type EtcdClient, unchanged } from './etcd-client.js';
import type { EtcdKeys } from './etcd-keys.js';
import { bucketRange } from './partition-layout.js';

/** The part of a fence that tokens are ordered within. */
export function epochText({ number, id }: Epoch): string {
  return `${number}|${id}`;
}

/** What makes an epoch nobody else's: 8 hexadecimal digits. */
export function newEpochId(): string {
  return randomBytes(4).toString('hex');
}

/** Writes the first epoch of a namespace; whoever is first wins. */
export async function createEpoch(client: EtcdClient, keys: EtcdKeys): Promise<void> {
  const epoch: Epoch = { number: 1, id: newEpochId() };
  await client.txn({
    if: [{ key: keys.epoch, createRevision: 0 }],
    success: [{ put: keys.epoch, value: JSON.stringify(epoch) }],
  });
}

/** The epoch in etcd, for whoever adopts fences. */
export class EtcdEpoch implements EpochSource {
  #found: ClusterView['epoch'];

  constructor(
    private readonly client: EtcdClient,
    private readonly keys: EtcdKeys,
  ) {}

  /** A token is vouched for up to the one of the key that stands; where none does, up to etcd's own revision. */
  async read(): Promise<{ epoch: Epoch | undefined; highestToken(bucket: number): number }> {
    const { epoch, partitions, revision } = await readCluster(this.client, this.keys);
    this.#found = epoch;
    const tokens = new Map<number, number>();
    for (const partition of partitions) {
      const { first, last } = bucketRange(partition);
      for (let bucket = first; bucket <= last; bucket++) tokens.set(bucket, partition.token);
    }
    return {
      epoch: epoch === undefined ? undefined : { number: epoch.number, id: epoch.id },
      highestToken: (bucket) => tokens.get(bucket) ?? revision,
    };
  }

  async raise(to: Epoch): Promise<boolean> {
    const key = this.keys.epoch;
    const { succeeded } = await this.client.txn({
      if: [unchanged(key, this.#found)],
      success: [{ put: key, value: JSON.stringify(to) }],
    });
    return succeeded;
  }
}
