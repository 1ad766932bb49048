import { LeaderScripts } from './leader-scripts.js';
import type { Shard } from './shard.js';
import { statusError } from './status.js';

/** The fences of a shard, for whoever adopts them. */
export class FenceStore {
  readonly #scripts: LeaderScripts;

  constructor(private readonly shard: Shard) {
    this.#scripts = new LeaderScripts(shard);
  }

  /** Bucket → fence text, of those that have one. */
  async read(): Promise<ReadonlyMap<number, string>> {
    await this.shard.ready();
    const fences = await this.shard.client.hgetall(this.shard.keys.fence);
    return new Map(Object.entries(fences).map(([bucket, fence]) => [Number(bucket), fence]));
  }

  /** Raises those of a range that are below `fence`. @returns the buckets of the range that are above. */
  async raise(first: number, last: number, fence: string): Promise<number[]> {
    const { fenced, otherEpoch } = await this.#scripts.takeOver([{ first, last, servedFrom: 0, fence }]);
    return [...fenced, ...otherEpoch];
  }
}

/** The epoch of standalone coordination, in the shard that it leads. */
export class StandaloneEpoch {
  #read = '';

  constructor(private readonly shard: Shard) {}

  /** Its tokens are above every fence by themselves. */
  async read(): Promise<{
    epoch: { number: number; id: string } | undefined;
    highestToken(bucket: number): number;
  }> {
    await this.shard.ready();
    this.#read = (await this.shard.client.hget(this.shard.keys.leader, 'epoch')) ?? '';
    const [, number, id] = /^(\d+)\|([^|]*)$/.exec(this.#read) ?? [];
    return {
      epoch: number === undefined || id === undefined ? undefined : { number: Number(number), id },
      highestToken: () => Number.POSITIVE_INFINITY,
    };
  }

  /** Writes over what {@link read} found last. False when somebody else wrote meanwhile. */
  async raise({ number, id }: { number: number; id: string }): Promise<boolean> {
    const { status } = await this.shard.run('adopt-epoch', 'allow-oom', [this.#read, `${number}|${id}`]);
    if (status !== 'OK' && status !== 'CONFLICT') throw statusError(status);
    return status === 'OK';
  }
}
