import type { Epoch } from '../adopt-fences.js';
import type { EtcdClient, KeyValue } from './etcd-client.js';
import type { EtcdKeys } from './etcd-keys.js';
import type { PartitionLayout } from './partition-layout.js';

/** What an instance runs; others read it before a newer form of anything is written. */
export interface InstanceVersions {
  carillon: string;
  bullmq: string;
  format: number;
  tzdata: string;
}

/** What an instance publishes of itself. */
export interface MemberRecord {
  instanceId: string;
  host: string;
  pid: number;
  /** ISO 8601. */
  startedAt: string;
  /** The number of partitions it is configured to. */
  partitions: number;
  versions: InstanceVersions;
  /** Whether its loop gets through to Redis. */
  fit: boolean;
  unfitReason?: string;
  /** It hands over and takes nothing. */
  draining: boolean;
}

export interface Member extends MemberRecord {
  lease: string;
  createRevision: number;
}

/** A partition that somebody leads; `token` is what its fences carry. */
export interface LedPartition {
  count: number;
  n: number;
  instanceId: string;
  /** ISO 8601, since when. */
  at: string;
  token: number;
  lease: string;
}

/** How the last term of a partition ended. */
export interface HandOver {
  count: number;
  n: number;
  /** Whose term it was, as far as known, and its token. */
  instanceId: string;
  token: number;
  /** ISO 8601. */
  at: string;
  reason: string;
}

/** Everything that stands in etcd for a namespace, as of one revision. */
export interface ClusterView {
  revision: number;
  epoch: (Epoch & { modRevision: number }) | undefined;
  layout: (PartitionLayout & { modRevision: number }) | undefined;
  members: Member[];
  partitions: LedPartition[];
  handOvers: HandOver[];
  /** Instances that an operator told to hand over. */
  drains: { instanceId: string; at: string; note?: string; modRevision: number }[];
  /** Keys of ours whose value is none of ours. */
  unreadable: string[];
}

/**
 * Reads a namespace's keys at once.
 * @throws CarillonError ETCD_UNAVAILABLE
 */
export async function readCluster(client: EtcdClient, keys: EtcdKeys): Promise<ClusterView> {
  const { revision, keys: found } = await client.range(keys.prefix);
  const view: ClusterView = {
    revision,
    epoch: undefined,
    layout: undefined,
    members: [],
    partitions: [],
    handOvers: [],
    drains: [],
    unreadable: [],
  };
  for (const entry of found) take(view, keys, entry);
  return view;
}

function take(view: ClusterView, keys: EtcdKeys, entry: KeyValue): void {
  const parsed = keys.parse(entry.key);
  const value = jsonOf(entry.value);
  if (parsed === undefined) return;
  if (value === undefined) {
    view.unreadable.push(entry.key);
    return;
  }
  const { modRevision, createRevision, lease } = entry;
  switch (parsed.kind) {
    case 'epoch':
      if (isPositive(value.number) && typeof value.id === 'string')
        view.epoch = { number: value.number, id: value.id, modRevision };
      else view.unreadable.push(entry.key);
      return;
    case 'layout':
      if (isPositive(value.partitions) && value.partitions <= 256)
        view.layout = { partitions: value.partitions, pinned: value.pinned === true, modRevision };
      else view.unreadable.push(entry.key);
      return;
    case 'members':
      if (isMember(value))
        view.members.push({ ...value, instanceId: parsed.instanceId, lease, createRevision });
      else view.unreadable.push(entry.key);
      return;
    case 'partitions':
      view.partitions.push({
        count: parsed.count,
        n: parsed.n,
        instanceId: String(value.instanceId),
        at: String(value.at),
        token: createRevision,
        lease,
      });
      return;
    case 'last':
      view.handOvers.push({
        count: parsed.count,
        n: parsed.n,
        instanceId: String(value.instanceId),
        token: Number(value.token),
        at: String(value.at),
        reason: String(value.reason),
      });
      return;
    case 'drain':
      view.drains.push({
        instanceId: parsed.instanceId,
        at: String(value.at),
        modRevision,
        ...(typeof value.note === 'string' ? { note: value.note } : {}),
      });
  }
}

/** What a member key holds, or undefined when an instance did not write it. */
export function readMember(text: string): MemberRecord | undefined {
  const value = jsonOf(text);
  return value !== undefined && isMember(value) ? value : undefined;
}

/** Newer versions may tell more. */
function isMember(value: object): value is MemberRecord {
  const { host, pid, startedAt, partitions, versions, fit, draining } = value as Partial<MemberRecord>;
  return (
    typeof host === 'string' &&
    typeof startedAt === 'string' &&
    isPositive(pid) &&
    isPositive(partitions) &&
    typeof versions === 'object' &&
    versions !== null &&
    typeof fit === 'boolean' &&
    typeof draining === 'boolean'
  );
}

function isPositive(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

function jsonOf(text: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined;
  } catch {
    return undefined;
  }
}
