import { randomUUID } from 'node:crypto';
import { CarillonError } from '../domain/errors.js';
import { asNumber, asText } from './replies.js';
import type { Shard } from './shard.js';
import { statusError } from './status.js';

/** The heartbeat of standalone coordination, in the shard that it leads. */
export class HeartbeatScripts {
  /** Used when this is the first leadership that the namespace ever had. */
  readonly #epoch: string = randomUUID();

  constructor(private readonly shard: Shard) {}

  /** `ttl` in ms: for so long after a beat nobody else gets it, whatever TTL they have. */
  async hold(holder: string, token: number, ttl: number, force: boolean) {
    const { status, rest } = await this.#call(holder, token, ttl, force ? 'force' : 'hold');
    switch (status) {
      case 'HELD':
      case 'ACQUIRED':
        return { status, token: asNumber(rest[0]), epoch: asText(rest[1]), now: asNumber(rest[2]) } as const;
      case 'STANDBY':
        return { status, holder: asText(rest[0]), age: asNumber(rest[1]), now: asNumber(rest[2]) } as const;
      case 'LOST':
        return { status, holder: asText(rest[0]), now: asNumber(rest[1]) } as const;
      default:
        throw statusError(status);
    }
  }

  async release(holder: string, token: number): Promise<void> {
    const { status } = await this.#call(holder, token, 0, 'release');
    if (status !== 'RELEASED') throw new CarillonError('BAD_SCRIPT', `hold-leadership answered ${status}`);
  }

  #call(holder: string, token: number, ttl: number, verb: string) {
    return this.shard.run('hold-leadership', 'allow-oom', [holder, ttl, verb, this.#epoch, token]);
  }
}
