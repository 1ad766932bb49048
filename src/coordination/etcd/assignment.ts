import { stableHash } from '../../domain/stable-hash.js';

/**
 * Who should lead which partition: rendezvous hashing with a cap of ceil(partitions / instances). Every instance that
 * sees the same members computes the same answer, in whatever order it sees them, and few partitions move when one comes
 * or goes: the pair of an instance and a partition with the highest score is settled first, and so on down.
 * @returns the instance of each partition, by its number; empty without instances.
 */
export function assignPartitions(instances: readonly string[], partitions: number): string[] {
  if (instances.length === 0) return [];
  const cap = Math.ceil(partitions / instances.length);
  const pairs: { instance: string; n: number; score: number }[] = [];
  for (const instance of instances) {
    for (let n = 0; n < partitions; n++) pairs.push({ instance, n, score: stableHash(`${instance}/${n}`) });
  }
  pairs.sort((a, b) => b.score - a.score || a.n - b.n || (a.instance < b.instance ? -1 : 1));
  const load = new Map(instances.map((instance) => [instance, 0]));
  const assigned: string[] = new Array(partitions);
  let left = partitions;
  for (const { instance, n } of pairs) {
    const held = load.get(instance) as number;
    if (assigned[n] !== undefined || held >= cap) continue;
    assigned[n] = instance;
    load.set(instance, held + 1);
    left -= 1;
    if (left === 0) break;
  }
  return assigned;
}
