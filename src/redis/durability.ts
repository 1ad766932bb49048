import type { Redis } from 'ioredis';
import { CarillonError } from '../domain/errors.js';
import type { Keys } from './keys.js';

/** How many replicas must have a change before its call resolves. */
export interface Durability {
  readonly replicas: number;
  /** ms. */
  readonly timeout: number;
}

/** Those who began before a WAIT was sent share its answer. */
interface Round {
  timeout: number;
  replicas: number;
  acknowledged: Promise<number>;
}

/**
 * Asks by WAIT how many replicas have what this connection wrote. One WAIT serves everybody who comes while the one
 * before is under way: with a dead replica, a thousand adds take two time-outs, not a thousand.
 */
export class ReplicaAcknowledgements {
  /** Changes with each connection: what was written over another one may be on a server that leads no more. */
  #connection = 0;
  #running: Promise<unknown> = Promise.resolve();
  #next: Round | undefined;

  constructor(
    private readonly client: Redis,
    private readonly keys: Keys,
  ) {
    client.on('close', () => {
      this.#connection++;
    });
  }

  /** Names the connection that a change is about to be sent over. */
  get connection(): number {
    return this.#connection;
  }

  /**
   * Resolves when enough replicas have all that was answered before.
   * @param sentOver what `connection` was before the change was sent.
   * @throws CarillonError NOT_DURABLE: the change stands all the same.
   */
  async confirm({ replicas, timeout }: Durability, sentOver: number): Promise<void> {
    if (replicas === 0) return;
    const acknowledged = await this.#join(replicas, timeout);
    if (this.#connection !== sentOver) {
      throw notDurable('the connection was lost before the replicas were asked');
    }
    if (acknowledged >= replicas) return;
    throw notDurable(`${acknowledged} of ${replicas} replicas acknowledged it within ${timeout} ms`);
  }

  #join(replicas: number, timeout: number): Promise<number> {
    let round = this.#next;
    if (round === undefined) {
      const opened: Round = { timeout, replicas, acknowledged: Promise.resolve(0) };
      opened.acknowledged = this.#running.then(() => {
        this.#next = undefined;
        return this.#wait(opened);
      });
      this.#running = opened.acknowledged.catch(() => undefined);
      this.#next = opened;
      round = opened;
    }
    round.timeout = Math.max(round.timeout, timeout);
    round.replicas = Math.max(round.replicas, replicas);
    return round.acknowledged;
  }

  async #wait({ replicas, timeout }: Round): Promise<number> {
    // A repeat that only replays an answer writes nothing; WAIT asks about this connection's last write.
    const [, acknowledged] = await Promise.all([
      this.client.hset(this.keys.meta, 'waited', 1),
      this.client.wait(replicas, timeout),
    ]);
    return acknowledged;
  }
}

function notDurable(why: string): CarillonError {
  return new CarillonError('NOT_DURABLE', `Redis has the change, but ${why}`, {
    field: 'durability',
    todo: 'It stands, and a failover may lose it: repeat the call with the same jobId or requestId to ask again.',
    retryable: true,
  });
}
