import type { ClusterView, LedPartition } from './cluster-view.js';
import { partitionName } from './held-term.js';
import type { EndOfTerm } from './partition-claims.js';
import { overlaps, type Partition } from './partition-layout.js';

/** A partition that may be taken, and how its last term ended if its holder did not say so itself. */
export interface FreePartition extends Partition {
  lost: EndOfTerm | undefined;
}

/**
 * Which partitions are free, also those whose key vanished without a word: etcd may have ended a lease that its holder
 * still trusts, and then the fences refuse that one.
 */
export class FreePartitions {
  /** The holder that was last seen, by partition. */
  readonly #holders = new Map<string, Pick<LedPartition, 'instanceId' | 'token'>>();

  reset(): void {
    this.#holders.clear();
  }

  /** A partition was taken here, since the last read. */
  taken(partition: Partition, instanceId: string, token: number): void {
    this.#holders.set(partitionName(partition), { instanceId, token });
  }

  /** Takes note of a read; `at` is ISO 8601. @returns what is free by it. */
  observe(view: ClusterView, at: string): FreePartition[] {
    const count = view.layout?.partitions ?? 0;
    const held = new Map(view.partitions.map((partition) => [partitionName(partition), partition]));
    const foreign = view.partitions.filter((partition) => partition.count !== count);
    for (const [name, partition] of held) this.#holders.set(name, partition);
    const ends = new Map(view.handOvers.map((end) => [partitionName(end), end.token]));
    const free: FreePartition[] = [];
    for (let n = 0; n < count; n++) {
      const partition = { count, n };
      const name = partitionName(partition);
      if (held.has(name) || foreign.some((other) => overlaps(other, partition))) continue;
      const holder = this.#holders.get(name);
      // A later end than that of the holder we saw: a term that came and went between two reads, given back.
      const vanished = holder !== undefined && (ends.get(name) ?? 0) < holder.token;
      free.push({
        ...partition,
        lost: vanished
          ? { instanceId: holder.instanceId, token: holder.token, at, reason: 'lost its lease' }
          : undefined,
      });
    }
    return free;
  }
}
