import { hostname } from 'node:os';
import { CarillonError } from '../../domain/errors.js';
import { type InstanceVersions, type MemberRecord, readMember } from './cluster-view.js';
import type { EtcdClient } from './etcd-client.js';
import type { EtcdKeys } from './etcd-keys.js';

/** What changes of an instance while it takes part. */
export interface MemberState {
  fit: boolean;
  draining: boolean;
}

/** The member key of this instance: what others know of it. */
export class OwnMember {
  readonly #key: string;
  #published = '';

  constructor(
    keys: EtcdKeys,
    private readonly told: {
      instanceId: string;
      /** ISO 8601. */
      startedAt: string;
      partitions: number;
      versions: InstanceVersions;
    },
  ) {
    this.#key = keys.member(told.instanceId);
  }

  /**
   * Writes the key under a lease that is new.
   * @throws CarillonError ID_IN_USE when another process that lives has our id, BAD_RECORD for a key of nobody's.
   */
  async register(client: EtcdClient, lease: string): Promise<void> {
    const key = this.#key;
    const value = this.#value({ fit: true, draining: false });
    const create = {
      if: [{ key, createRevision: 0 }],
      success: [{ put: key, value, lease }],
      failure: [{ get: key }],
    };
    this.#published = value;
    const { succeeded, found } = await client.txn(create);
    const [other] = found;
    if (succeeded || other === undefined || other.lease === lease) return;
    const holder = readMember(other.value);
    if (holder === undefined) {
      throw new CarillonError('BAD_RECORD', `the key ${key} in etcd cannot be read`, {
        field: 'instanceId',
        todo: 'Delete it: no instance wrote it.',
      });
    }
    const { host, pid, startedAt } = holder;
    if (host !== hostname() || pid !== process.pid || startedAt !== this.told.startedAt) {
      const { instanceId } = this.told;
      throw new CarillonError(
        'ID_IN_USE',
        `another process (${pid} on ${host}) takes part as ${instanceId}`,
        {
          field: 'instanceId',
          todo: 'Give each instance an id of its own, or leave it out; one that was killed is forgotten within a TTL.',
        },
      );
    }
    // Our own, under a former lease. Made anew, so that others see a newcomer.
    await client.txn({ if: [{ key, modRevision: other.modRevision }], success: [{ delete: key }] });
    await client.txn(create);
  }

  /** Writes what changed, if anything did and the key of that create revision still stands. */
  async publish(
    client: EtcdClient,
    lease: string,
    createRevision: number,
    state: MemberState,
  ): Promise<void> {
    const value = this.#value(state);
    if (value === this.#published) return;
    const key = this.#key;
    await client.txn({ if: [{ key, createRevision }], success: [{ put: key, value, lease }] });
    this.#published = value;
  }

  #value({ fit, draining }: MemberState): string {
    const record: MemberRecord = {
      ...this.told,
      host: hostname(),
      pid: process.pid,
      fit,
      ...(fit ? {} : { unfitReason: 'its loop has completed no script for half a TTL' }),
      draining,
    };
    return JSON.stringify(record);
  }
}
