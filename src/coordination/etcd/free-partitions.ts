import type { ClusterView, LedPartition } from './cluster-view.js';
import { partitionName } from './held-term.js';
import type { EndOfTerm } from './partition-claims.js';
import { overlaps, type Partition } from './partition-layout.js';

/** A partition that may be taken in so many ms, and how its last term ended if its holder did not say so itself. */
export interface FreePartition extends Partition {
  in: number;
  lost: EndOfTerm | undefined;
}

/**
 * Which partitions are free, and since when. One whose holder gave it back may be taken at once; one whose key vanished
 * without a word only after a while, in which its holder finds out: etcd may end a lease that its holder still trusts.
 */
export class FreePartitions {
  /** The holder that was last seen, by partition. */
  readonly #holders = new Map<string, Pick<LedPartition, 'instanceId' | 'token'>>();
  readonly #freeSince = new Map<string, number>();

  constructor(
    /** ms that a vanished key is waited for. */
    private readonly wait: number,
  ) {}

  reset(): void {
    this.#holders.clear();
    this.#freeSince.clear();
  }

  /** A partition was taken here, since the last read. */
  taken(partition: Partition, instanceId: string, token: number): void {
    this.#holders.set(partitionName(partition), { instanceId, token });
    this.#freeSince.delete(partitionName(partition));
  }

  /** Takes note of a read at this monotonic instant (ms); `at` is ISO 8601. @returns what is free by it. */
  observe(view: ClusterView, now: number, at: string): FreePartition[] {
    const count = view.layout?.partitions ?? 0;
    const held = new Map(view.partitions.map((partition) => [partitionName(partition), partition]));
    const foreign = view.partitions.filter((partition) => partition.count !== count);
    for (const [name, partition] of held) {
      this.#holders.set(name, partition);
      this.#freeSince.delete(name);
    }
    const ends = new Map(view.handOvers.map((end) => [partitionName(end), end.token]));
    const free: FreePartition[] = [];
    for (let n = 0; n < count; n++) {
      const partition = { count, n };
      const name = partitionName(partition);
      if (held.has(name) || foreign.some((other) => overlaps(other, partition))) continue;
      const since = this.#freeSince.get(name) ?? now;
      this.#freeSince.set(name, since);
      const holder = this.#holders.get(name);
      // A later end than that of the holder we saw: a term that came and went between two reads, given back.
      const vanished = holder !== undefined && (ends.get(name) ?? 0) < holder.token;
      free.push({
        ...partition,
        in: vanished ? since + this.wait - now : 0,
        lost: vanished
          ? { instanceId: holder.instanceId, token: holder.token, at, reason: 'lost its lease' }
          : undefined,
      });
    }
    return free;
  }
}
