import type { ClusterLook } from '../client/doctor-cluster.js';
import type { ClusterView } from '../coordination/etcd/cluster-view.js';
import { bucketRange } from '../coordination/etcd/partition-layout.js';

/** What stands in etcd, as `doctor` judges it. Pure. */
export function clusterLook({ epoch, layout, members, partitions }: ClusterView): ClusterLook {
  return {
    epoch: epoch && { number: epoch.number, id: epoch.id },
    layout: layout && { partitions: layout.partitions, pinned: layout.pinned },
    members: members.map(({ instanceId, partitions: configured, fit, unfitReason, versions }) => ({
      instanceId,
      partitions: configured,
      fit,
      ...(unfitReason === undefined ? {} : { unfitReason }),
      versions: { ...versions },
    })),
    terms: partitions.map(({ count, n, instanceId, token }) => ({
      partition: `${n} of ${count}`,
      ...bucketRange({ count, n }),
      instanceId,
      token,
    })),
  };
}
