import { Queue as BullQueue, type ConnectionOptions } from 'bullmq';
import { Queue } from '../../src/index.js';
import { onCleanup } from './cleanup.js';
import { namespaceFor, sharedRedisUrl } from './namespace.js';

/** BullMQ's own queue and ours over the same keys of the shared Redis. */
export interface BullmqPair {
  stock: BullQueue;
  ours: Queue;
  prefix: string;
  /** For workers and the like. */
  connection: ConnectionOptions;
}

/** Both close with the test. */
export async function bullmqPair(task: { name: string }): Promise<BullmqPair> {
  const prefix = namespaceFor(task);
  const { hostname, port, pathname } = new URL(sharedRedisUrl());
  const connection = {
    host: hostname,
    port: Number(port),
    db: Number(pathname.slice(1)),
    maxRetriesPerRequest: null,
  };
  const stock = new BullQueue('q', { connection, prefix });
  const ours = new Queue('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('stock queue', () => stock.close());
  onCleanup('our queue', () => ours.close());
  await Promise.all([stock.waitUntilReady(), ours.waitUntilReady()]);
  return { stock, ours, prefix, connection };
}
