import { type OwnedRange, packOwned } from './owned-ranges.js';
import { asList, asNumber, asText } from './replies.js';
import type { Shard } from './shard.js';
import { statusError } from './status.js';

/** What one look at the runs that others wait for did. */
export interface ParentsLook {
  now: number;
  /** Parents that were looked at and children that were told. */
  looked: number;
  /** Children that wait for nothing but their time any more. */
  released: number;
  /** Children that were ended or paused by policy, and why. */
  ended: { child: string; what: string }[];
  /** Watched runs that BullMQ has under way. */
  open: number;
  /** When the next look is due, ms; 0 for never. */
  nextLook: number;
  /** There is more to do at once. */
  more: boolean;
}

/** Identities of one call. */
const ANNOUNCED = 250;

/** The calls about runs that others wait for. */
export class ParentScripts {
  constructor(private readonly shard: Shard) {}

  /** Has the outcomes of jobs kept that are about to be added. */
  async announce(identities: readonly string[]): Promise<void> {
    for (let from = 0; from < identities.length; from += ANNOUNCED) {
      const list = JSON.stringify(identities.slice(from, from + ANNOUNCED));
      const { status } = await this.shard.run('announce-parents', 'deny-oom', [this.shard.base, list]);
      if (status !== 'OK') throw statusError(status);
    }
  }

  /**
   * Decides outcomes and tells children, in the buckets of `owned`.
   * @param keep ms that an outcome is kept after it was decided.
   */
  async look(owned: readonly OwnedRange[], limit: number, keep: number): Promise<ParentsLook> {
    const args = [this.shard.base, packOwned(owned), limit, keep];
    const { status, rest } = await this.shard.run('look-at-parents', 'deny-oom', args);
    if (status !== 'OK') throw statusError(status);
    const list = asList(rest[3]);
    const ended: ParentsLook['ended'] = [];
    for (let i = 0; i < list.length; i += 2)
      ended.push({ child: asText(list[i]), what: asText(list[i + 1]) });
    return {
      now: asNumber(rest[0]),
      looked: asNumber(rest[1]),
      released: asNumber(rest[2]),
      ended,
      open: asNumber(rest[4]),
      nextLook: asNumber(rest[5]),
      more: asNumber(rest[6]) > 0,
    };
  }
}
