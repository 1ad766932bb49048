import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type EtcdCluster, type EtcdProcessOptions, startEtcd } from '../../src/support/etcd-process.js';
import { ownChild, ownFolder } from './child-guard.js';
import { onCleanup } from './cleanup.js';

/** An etcd of this test's or file's own, of `members` members; gone when the test or file that started it ends. */
export async function startTestEtcd(
  over: Pick<EtcdProcessOptions, 'members' | 'settings'> = {},
): Promise<EtcdCluster> {
  const dir = await mkdtemp(join(tmpdir(), 'carillon-etcd-'));
  ownFolder(dir);
  const cluster = await startEtcd({
    dir,
    ...over,
    onSpawn: ownChild,
    instead: 'run scripts/setup.sh etcd, or name a binary in CARILLON_ETCD_SERVER.',
  });
  onCleanup('etcd', async () => {
    await Promise.all(cluster.members.map((member) => member.kill9()));
    await rm(dir, { recursive: true, force: true });
  });
  return cluster;
}
