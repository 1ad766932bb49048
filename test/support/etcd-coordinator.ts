import { onTestFinished } from 'vitest';
import type { EtcdClient } from '../../src/coordination/etcd/etcd-client.js';
import { openEtcd } from '../../src/coordination/etcd/etcd-client.js';
import {
  EtcdCoordinator,
  type EtcdCoordinatorOptions,
} from '../../src/coordination/etcd/etcd-coordinator.js';
import { ManualClock } from './manual-clock.js';
import { LineLogger } from './spine-scheduler.js';

export const TTL = 5000;

export interface TestCoordinatorOptions extends Partial<EtcdCoordinatorOptions> {
  hosts: readonly string[];
  namespace: string;
  /** Puts something between the coordinator and etcd. */
  wrap?: (client: EtcdClient) => EtcdClient;
  /** Whether its loop makes progress as long as the test does not say otherwise. Defaults to true. */
  fed?: boolean;
}

/**
 * A coordinator on a real etcd, whose monotonic clock is real time plus what the test adds, and whose loop makes progress
 * until it is told to hang. Stops with the test.
 */
export async function startCoordinator(instanceId: string, options: TestCoordinatorOptions) {
  const { hosts, wrap = (client) => client, fed = true, ...over } = options;
  const clock = new ManualClock();
  const logger = new LineLogger();
  const monotonic = () => clock.monotonic() + performance.now();
  const coordinator = new EtcdCoordinator(() => wrap(openEtcd({ hosts, callTimeout: 800 })), {
    instanceId,
    ttl: TTL,
    settle: 200,
    partitions: 4,
    poll: 200,
    onEtcdLoss: 'stop',
    versions: { carillon: '0', bullmq: '6', format: 1, tzdata: '2025c' },
    monotonic,
    wall: Date.now,
    logger,
    ...over,
  });
  let changes = 0;
  coordinator.onChange(() => {
    changes += 1;
  });
  let hangs = !fed;
  const feeding = setInterval(() => {
    if (!hangs) coordinator.fed(monotonic());
  }, 50);
  onTestFinished(async () => {
    clearInterval(feeding);
    await coordinator.stop();
  });
  await coordinator.start();
  return {
    coordinator,
    clock,
    logger,
    changes: () => changes,
    /** Its loop completes no script any more, or does again. */
    hang(now = true) {
      hangs = now;
    },
    /** The first bucket of each partition that it leads now. */
    led: () =>
      coordinator
        .terms()
        .map(({ first }) => first)
        .sort((a, b) => a - b),
  };
}
