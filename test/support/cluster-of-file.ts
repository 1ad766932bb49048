import { afterAll, beforeAll, test } from 'vitest';
import { fileEnds } from './cleanup.js';
import { Cluster } from './cluster.js';

/** The cluster of the test file that imports it; it stands when the first test begins. */
export let cluster: Cluster;

beforeAll(async () => {
  cluster = await Cluster.start();
}, 90_000);
// Its connections must be gone when the file's leaks are looked for.
afterAll(fileEnds);

/** A test of a fault that the whole cluster undergoes. */
export function fault(name: string, act: () => Promise<void>, timeout = 120_000): void {
  test(name, () => cluster.undergoes(act), timeout);
}
