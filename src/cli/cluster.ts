import type { ClusterView } from '../coordination/etcd/cluster-view.js';
import type { EtcdClient } from '../coordination/etcd/etcd-client.js';
import type { EtcdKeys } from '../coordination/etcd/etcd-keys.js';
import { CarillonError } from '../domain/errors.js';
import { plain, remark } from './output.js';
import type { Settings } from './settings.js';

/** A namespace in etcd, as commands ask it. */
export interface Cluster {
  readonly client: EtcdClient;
  readonly keys: EtcdKeys;
  /** Everything that stands there now. @throws CarillonError ETCD_UNAVAILABLE */
  read(): Promise<ClusterView>;
}

/**
 * Runs `use` with the namespace's keys in etcd, and closes the connection.
 * @throws CarillonError INVALID_OPTION when nobody said where etcd is
 */
export async function withCluster<T>(
  settings: Pick<Settings, 'etcd' | 'namespace'>,
  use: (cluster: Cluster) => Promise<T>,
): Promise<T> {
  if (settings.etcd === undefined) {
    throw new CarillonError(
      'INVALID_OPTION',
      'partitions and instances are etcd’s, and it is not said where that is',
      {
        field: 'etcd',
        todo: 'Give --etcd http://host:2379, or CARILLON_ETCD. Without etcd one scheduler leads all: `carillon doctor` says which.',
      },
    );
  }
  const { openEtcd } = await import('../coordination/etcd/etcd-client.js');
  const { EtcdKeys: Keys } = await import('../coordination/etcd/etcd-keys.js');
  const { readCluster } = await import('../coordination/etcd/cluster-view.js');
  const { resolveEtcdOptions } = await import('../config/etcd-options.js');
  const client = openEtcd(resolveEtcdOptions(settings.etcd));
  const keys = new Keys(settings.namespace);
  try {
    return await use({ client, keys, read: () => readCluster(client, keys) });
  } finally {
    client.close();
  }
}

/** The same, where instances have worked before: a slip in the namespace would change nothing, and say nothing. */
export async function withKnownCluster<T>(
  settings: Settings,
  use: (cluster: Cluster, view: ClusterView) => Promise<T>,
): Promise<T> {
  return withCluster(settings, async (cluster) => {
    const view = await cluster.read();
    if (view.layout !== undefined || view.members.length > 0) return use(cluster, view);
    throw new CarillonError(
      'NOT_FOUND',
      `no scheduler has taken part in the namespace ${settings.namespace}`,
      {
        field: 'namespace',
        given: settings.namespace,
        todo: 'Check --etcd, --prefix and --namespace; `carillon scheduler --etcd …` begins one.',
      },
    );
  });
}

/** Keys that no instance wrote: they are passed over, and somebody should look at them. */
export function remarkUnreadable({ unreadable }: ClusterView): void {
  for (const key of unreadable)
    remark(`the key ${plain(key)} in etcd cannot be read: no instance wrote it; delete it`);
}
