import { assignPartitions } from './assignment.js';
import type { ClusterView } from './cluster-view.js';
import { partitionName } from './held-term.js';
import type { Standing } from './membership.js';

/** Which partitions belong to this instance: to take, and to keep until their new owner has settled. */
export class WantedPartitions {
  #input = '';
  #owners: readonly string[] = [];

  constructor(private readonly instanceId: string) {}

  /** The numbers of those that are ours to take, and the names of those that we keep, as `standing` last observed. */
  of(view: ClusterView, standing: Standing, draining: boolean): { mine: Set<number>; kept: Set<string> } {
    const me = this.instanceId;
    const count = view.layout?.partitions ?? 0;
    const members = view.members.map((member) =>
      member.instanceId === me ? { ...member, draining } : member,
    );
    const { all, settled } = standing.candidates(members);
    const owners = this.#assigned(all, count);
    const settledOwners = settled.length === all.length ? owners : assignPartitions(settled, count);
    const mine = new Set<number>();
    const kept = new Set<string>();
    for (let n = 0; n < count; n++) {
      if (owners[n] === me) mine.add(n);
      if (owners[n] === me || settledOwners[n] === me) kept.add(partitionName({ count, n }));
    }
    return { mine, kept };
  }

  /** Computed when the members have changed, not each second. */
  #assigned(instances: readonly string[], count: number): readonly string[] {
    const input = JSON.stringify([count, ...instances]);
    if (this.#input !== input) {
      this.#input = input;
      this.#owners = assignPartitions(instances, count);
    }
    return this.#owners;
  }
}
