import type { GateLimits } from '../domain/gate.js';
import { type OwnedRange, packOwned } from './owned-ranges.js';
import { asList, asNumber, asText } from './replies.js';
import type { Shard } from './shard.js';
import { redisError, statusError } from './status.js';

/** The field of `T:gates` that stands for every queue. */
export const ALL_QUEUES = '';

/** What is to be done at the gates of a shard. */
export interface DueGates {
  now: number;
  /** Queues with held runs whose turn has come. */
  due: string[];
  /** When the next one's comes, ms; 0 for none. */
  next: number;
  /** Queues that went on after a hold, with schedules parked meanwhile. */
  released: string[];
  /** How many queues have a gate. */
  gates: number;
}

export interface GateDrained {
  now: number;
  moved: number;
  /** When to drain again, ms; 0 for not before somebody says so. */
  next: number;
  trouble: string[];
  /** ms of Redis. */
  took: number;
  /** Workers have runs of the queue. */
  working: boolean;
}

/** A change of limits: `null` takes one away. */
export type GateChange = { [K in keyof GateLimits]?: GateLimits[K] | null };

/** The calls about gates. */
export class GateScripts {
  constructor(private readonly shard: Shard) {}

  /** Whether there is no gate, and nothing held: one cheap command. */
  async isQuiet(): Promise<boolean> {
    const { client, keys } = this.shard;
    return (await client.exists(keys.gates, keys.gateHeads, keys.gateParked)) === 0;
  }

  async due(limit: number): Promise<DueGates> {
    const { status, rest } = await this.shard.run('due-gates', 'read-only', [limit]);
    if (status !== 'OK') throw statusError(status);
    return {
      now: asNumber(rest[0]),
      due: asList(rest[1]).map(asText),
      next: asNumber(rest[2]),
      released: asList(rest[3]).map(asText),
      gates: asNumber(rest[4]),
    };
  }

  /** One batch of one queue. Undefined when another leads `bucket` now. */
  async drain(
    owned: readonly OwnedRange[],
    queue: string,
    bucket: number,
    { limit, bytes }: { limit: number; bytes: number },
  ): Promise<GateDrained | undefined> {
    const { base, namespace } = this.shard;
    const args = [base, namespace, packOwned(owned), queue, bucket, limit, bytes];
    const { status, rest } = await this.shard.run('drain-gate', 'deny-oom', args);
    if (status === 'FENCED') return undefined;
    if (status !== 'OK') throw statusError(status);
    return {
      now: asNumber(rest[0]),
      moved: asNumber(rest[1]),
      next: asNumber(rest[2]),
      trouble: asList(rest[3]).map(asText),
      took: asNumber(rest[4]) / 1000,
      working: asNumber(rest[5]) > 0,
    };
  }

  /** Changes limits; `whole` drops those that are not named. @returns what holds from now on */
  async set(queue: string, change: GateChange, whole: boolean): Promise<GateLimits> {
    const args = [queue, JSON.stringify(change), whole ? 1 : 0];
    const { status, rest } = await this.shard.run('set-gate', 'allow-oom', args);
    if (status !== 'OK') throw statusError(status);
    return readLimits(asText(rest[1]));
  }

  /** Every gate by its queue; {@link ALL_QUEUES} for the pause of everything. It writes nothing. */
  async all(): Promise<Map<string, GateLimits>> {
    try {
      const found = await this.shard.client.hgetall(this.shard.keys.gates);
      return new Map(Object.entries(found).map(([queue, text]) => [queue, readLimits(text)]));
    } catch (error) {
      throw redisError(error);
    }
  }

  /** How many runs each queue's gate holds. It writes nothing. */
  async held(queues: readonly string[]): Promise<number[]> {
    if (queues.length === 0) return [];
    const { client, keys } = this.shard;
    const counts = await client.hmget(keys.queues, ...queues.map((queue) => `${queue}:held`));
    return counts.map((count) => Number(count ?? 0));
  }

  /** Queues with something held. */
  async queues(): Promise<string[]> {
    return this.shard.client.zrange(this.shard.keys.gateHeads, '0', '-1');
  }
}

function readLimits(text: string): GateLimits {
  return text === '' ? {} : (JSON.parse(text) as GateLimits);
}
