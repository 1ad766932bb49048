import type { ClusterView, Member } from './cluster-view.js';
import type { EtcdClient } from './etcd-client.js';
import type { EtcdKeys } from './etcd-keys.js';
import { endDrain } from './operator-changes.js';

/**
 * What an operator asked of this process: to hand over and take nothing. It outlives a lost lease, and ends with the
 * process; what was asked of one that was killed, whose id we have, is taken back when it is seen.
 */
export class DrainOrder {
  /** The lowest create revision of our member key: what was asked before that was asked of another process. */
  #beganAt = Number.POSITIVE_INFINITY;
  #asked = false;
  #wasAsked = false;

  constructor(
    private readonly keys: EtcdKeys,
    private readonly instanceId: string,
  ) {}

  get asked(): boolean {
    return this.#asked;
  }

  /** Takes note of a read in which `me` is our own member key. @returns whether it was asked, or taken back, since. */
  async heed(client: EtcdClient, view: ClusterView, me: Member): Promise<boolean> {
    this.#beganAt = Math.min(this.#beganAt, me.createRevision);
    const drain = view.drains.find((one) => one.instanceId === this.instanceId);
    const asked = drain !== undefined && drain.modRevision > this.#beganAt;
    if (drain !== undefined && !asked) await endDrain(client, this.keys, drain);
    const changed = asked !== this.#asked;
    this.#asked = asked;
    this.#wasAsked ||= asked;
    return changed;
  }

  /** Another session begins: what stands is read anew. */
  forget(): void {
    this.#asked = false;
  }

  /** The process ends, and the order with it. */
  async end(client: EtcdClient): Promise<void> {
    if (this.#wasAsked) await endDrain(client, this.keys, { instanceId: this.instanceId });
  }
}
