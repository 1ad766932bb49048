import type { Term } from '../coordinator.js';
import { bucketRange, type Partition } from './partition-layout.js';
import type { EtcdSession } from './session.js';

/** A term of etcd: valid while its session is, until it is ended. */
export class HeldTerm implements Term, Partition {
  readonly first: number;
  readonly last: number;
  readonly count: number;
  readonly n: number;
  #ended = false;

  constructor(
    partition: Partition,
    readonly token: number,
    readonly epoch: string,
    readonly holder: string,
    private readonly session: EtcdSession,
  ) {
    this.count = partition.count;
    this.n = partition.n;
    const { first, last } = bucketRange(partition);
    this.first = first;
    this.last = last;
  }

  /** It never begins again, also where etcd has not heard of its end yet. */
  get ended(): boolean {
    return this.#ended;
  }

  isValid(): boolean {
    return !this.#ended && this.session.isValid();
  }

  end(): void {
    this.#ended = true;
  }
}

/** A partition as a key of maps. */
export function partitionName({ count, n }: Partition): string {
  return `${count}/${n}`;
}
