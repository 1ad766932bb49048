import { onTestFinished } from 'vitest';
import type { SchedulerOptions } from '../../src/config/scheduler-options.js';
import { type ClusterView, readCluster } from '../../src/coordination/etcd/cluster-view.js';
import { type EtcdClient, openEtcd } from '../../src/coordination/etcd/etcd-client.js';
import { EtcdKeys } from '../../src/coordination/etcd/etcd-keys.js';
import { Scheduler } from '../../src/scheduler/scheduler.js';
import { onCleanup } from './cleanup.js';
import type { Spine } from './spine.js';
import { LineLogger } from './spine-scheduler.js';

/** The state in etcd of one namespace, as a test looks at it. */
export class EtcdState {
  readonly keys: EtcdKeys;
  readonly client: EtcdClient;

  constructor(hosts: readonly string[], namespace: string) {
    this.keys = new EtcdKeys(namespace);
    this.client = openEtcd({ hosts, callTimeout: 2000 });
    onCleanup(`etcd client of ${namespace}`, () => this.client.close());
  }

  read(): Promise<ClusterView> {
    return readCluster(this.client, this.keys);
  }

  /** How many partitions of the layout each instance leads. */
  async shares(): Promise<Record<string, number>> {
    const { partitions, layout } = await this.read();
    const shares: Record<string, number> = {};
    for (const { instanceId, count } of partitions) {
      if (count === layout?.partitions) shares[instanceId] = (shares[instanceId] ?? 0) + 1;
    }
    return shares;
  }

  async put(key: string, value: unknown): Promise<void> {
    await this.client.txn({ if: [], success: [{ put: key, value: JSON.stringify(value) }] });
  }

  async delete(key: string): Promise<void> {
    await this.client.txn({ if: [], success: [{ delete: key }] });
  }
}

/** A scheduler in this process that takes part by etcd. Stops with the test. */
export async function startMember(
  spine: Spine,
  hosts: string[],
  instanceId: string,
  over: SchedulerOptions = {},
): Promise<{ scheduler: Scheduler; logger: LineLogger }> {
  const { url, namespace, prefix } = spine;
  const logger = new LineLogger();
  const scheduler = new Scheduler({
    redis: url,
    namespace,
    prefix,
    etcd: { hosts },
    ttl: '5s',
    settle: 300,
    instanceId,
    logger,
    ...over,
  });
  onTestFinished(() => scheduler.stop());
  await scheduler.start();
  return { scheduler, logger };
}
