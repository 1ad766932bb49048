import type { Service } from '../support/service.js';
import { DevChild } from './dev-child.js';

/** Where schedulers work. */
interface Place {
  redis: string;
  prefix: string;
  namespace: string;
}

/** The schedulers of `carillon dev`. */
export interface DevSchedulers {
  /** Those in processes of their own; a single one without etcd runs in this process. */
  readonly ids: string[];
  /** Rejects when one ends without being stopped. */
  readonly died: Promise<never>;
  stop(): Promise<void>;
}

/** Starts them, and waits until each has. */
export async function startDevSchedulers(
  place: Place,
  count: number,
  cluster: { hosts: readonly string[]; partitions: number } | undefined,
): Promise<DevSchedulers> {
  await adopt(place, cluster?.hosts);
  if (count === 1 && cluster === undefined) return inThisProcess(place);
  const children: DevChild[] = [];
  const stop = async () => {
    await Promise.all(children.map((child) => child.stop()));
  };
  const ids = Array.from({ length: count }, (_, i) => `dev-${i + 1}`);
  const beginning: Promise<void>[] = [];
  for (const instanceId of ids) {
    const options = {
      ...place,
      instanceId,
      ...(cluster && { etcd: { hosts: cluster.hosts }, partitions: cluster.partitions }),
    };
    const started = new Promise<void>((resolve) => {
      const onLine = (line: string) => {
        if (line === 'started') resolve();
      };
      const what = `the scheduler ${instanceId}`;
      children.push(new DevChild('dev-scheduler', [JSON.stringify(options)], what, onLine));
    });
    beginning.push(started);
  }
  const died = Promise.race(children.map((child) => child.died));
  died.catch(() => undefined);
  try {
    await Promise.race([Promise.all(beginning), died]);
  } catch (error) {
    await stop();
    throw error;
  }
  return { ids, died, stop };
}

async function inThisProcess(place: Place): Promise<DevSchedulers> {
  const { Scheduler } = await import('../scheduler/scheduler.js');
  const scheduler: Service = new Scheduler(place);
  await scheduler.start();
  return { ids: [], died: new Promise<never>(() => undefined), stop: () => scheduler.stop() };
}

/** The etcd of the last start is gone, and so may be its kind of coordination: what it left behind leads no more. */
async function adopt(place: Place, hosts: readonly string[] | undefined): Promise<void> {
  const { adoptFences } = await import('../coordination/adopt-fences.js');
  const { EtcdEpoch, newEpochId } = await import('../coordination/etcd/epoch.js');
  const { FenceStore, StandaloneEpoch } = await import('../redis/fence-store.js');
  const { withShard } = await import('./connect.js');
  await withShard(place, async (shard) => {
    const fences = new FenceStore(shard);
    if (hosts === undefined) return adoptFences(new StandaloneEpoch(shard), fences, newEpochId());
    const { withCluster } = await import('./cluster.js');
    return withCluster({ namespace: place.namespace, etcd: { hosts } }, ({ client, keys }) =>
      adoptFences(new EtcdEpoch(client, keys), fences, newEpochId()),
    );
  });
}
