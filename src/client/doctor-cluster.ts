import { BUCKETS } from '../domain/buckets.js';
import { parseFence, standingOf } from '../domain/fence.js';
import type { DoctorContext } from './doctor-context.js';
import type { Problem } from './doctor-finding.js';

/** One unbroken leadership of a range of buckets, as etcd has it. */
export interface ClusterTerm {
  /** Such as `3 of 16`. */
  partition: string;
  first: number;
  last: number;
  instanceId: string;
  token: number;
}

/** An instance that takes part. */
export interface ClusterMember {
  instanceId: string;
  /** How many partitions it is configured to. */
  partitions: number;
  fit: boolean;
  unfitReason?: string;
  /** What it runs, by name. */
  versions: Readonly<Record<string, string | number>>;
}

/** Who leads a namespace by etcd, as plain data: whoever can ask etcd reads it. */
export interface ClusterLook {
  epoch: { number: number; id: string } | undefined;
  layout: { partitions: number; pinned: boolean } | undefined;
  terms: readonly ClusterTerm[];
  members: readonly ClusterMember[];
}

/** Whether the fences of a namespace were raised by leaders that etcd chose: none is of the epoch that Redis keeps. */
export async function isLedByEtcd({ client, keys }: DoctorContext): Promise<boolean> {
  const [fences, own] = await Promise.all([client.hvals(keys.fence), client.hget(keys.leader, 'epoch')]);
  const epochs = fences.flatMap((text) => {
    const fence = parseFence(text);
    return fence === undefined ? [] : [`${fence.number}|${fence.epochId}`];
  });
  // An id of etcd's has eight digits; others are what a person or a fault wrote.
  return (
    epochs.length > 0 && !epochs.includes(own ?? '') && epochs.some((epoch) => /\|[0-9a-f]{8}$/.test(epoch))
  );
}

/** Which buckets have a leader. Pure. */
export function ledBuckets({ terms }: ClusterLook): Set<number> {
  const led = new Set<number>();
  for (const { first, last } of terms) for (let bucket = first; bucket <= last; bucket++) led.add(bucket);
  return led;
}

/** Holds what etcd says against itself and against the fences; what moves just now is looked at again. */
export async function checkCluster(context: DoctorContext, pending: number): Promise<void> {
  const { cluster, findings, client, keys } = context;
  if (cluster === undefined) return;
  const look = async () => {
    const [now, fences] = await Promise.all([cluster(), client.hgetall(keys.fence)]);
    return [...judgeTerms(now, pending), ...judgeClusterFences(now, fences)];
  };
  if ((await look()).length > 0) findings.suspect({ confirm: look });
  for (const problem of judgeMembers(await cluster())) findings.add(problem);
}

/** Partitions without a leader: their timers wait. Pure. */
export function judgeTerms(look: ClusterLook, pending: number): Problem[] {
  const led = ledBuckets(look);
  const missing = BUCKETS - led.size;
  if (missing === 0 || (pending === 0 && look.members.length === 0)) return [];
  const ranges = rangesOf((bucket) => !led.has(bucket));
  const who = look.members.length === 0 ? 'no instance takes part' : `${look.members.length} take part`;
  const detail = `buckets ${ranges} have no leader; ${who}`;
  return [{ check: 'leader', severity: pending > 0 ? 'error' : 'warning', subject: 'partitions', detail }];
}

/** Every bucket's fence is its leader's (I5). Pure. */
export function judgeClusterFences(look: ClusterLook, fences: Readonly<Record<string, string>>): Problem[] {
  const epoch = { number: look.epoch?.number ?? 0, epochId: look.epoch?.id ?? '' };
  // Whoever leads such buckets gives them back at once: they are told of whether or not somebody does just now.
  const isForeign = (bucket: number) =>
    standingOf(fences[bucket], { ...epoch, token: 0, holder: '' }) === 'other epoch';
  const problems = foreignFences(isForeign, fences);
  for (const { partition, first, last, instanceId, token } of look.terms) {
    const wrong = new Map<string, number[]>();
    for (let bucket = first; bucket <= last; bucket++) {
      const standing = standingOf(fences[bucket], { ...epoch, token, holder: instanceId });
      if (standing === 'held' || isForeign(bucket)) continue;
      wrong.set(standing, [...(wrong.get(standing) ?? []), bucket]);
    }
    for (const [standing, buckets] of wrong) {
      const example = fences[buckets[0] as number] ?? 'missing';
      const what = {
        below: `not raised to the token of ${instanceId}, ${token}`,
        above: `above the token of ${instanceId}, ${token}: etcd is behind them`,
      }[standing as 'below' | 'above'];
      problems.push({
        check: 'fence',
        severity: 'error',
        subject: `partition ${partition}`,
        detail: `the fences of ${buckets.length} bucket(s) are ${what} (${example})`,
      });
    }
  }
  return problems;
}

function foreignFences(
  isForeign: (bucket: number) => boolean,
  fences: Readonly<Record<string, string>>,
): Problem[] {
  const buckets = Array.from({ length: BUCKETS }, (_, bucket) => bucket).filter(isForeign);
  const [example] = buckets;
  if (example === undefined) return [];
  const detail =
    `the fences of ${buckets.length} bucket(s) are of another epoch than etcd’s: etcd was rebuilt or restored ` +
    `(${fences[example]})`;
  return [{ check: 'fence', severity: 'error', subject: `buckets ${rangesOf(isForeign)}`, detail }];
}

/** What instances tell of themselves: one configuration, one version, and all of them fit. Pure. */
export function judgeMembers({ members, layout }: ClusterLook): Problem[] {
  const problems: Problem[] = [];
  const warn = (subject: string, detail: string) =>
    problems.push({ check: 'instances', severity: 'warning', subject, detail });
  for (const { instanceId, fit, unfitReason } of members) {
    if (!fit) warn(instanceId, `it is unfit: ${unfitReason ?? 'it does not say why'}`);
  }
  const told = (name: string, read: (member: ClusterMember) => string | number | undefined) => {
    const values = new Map<string, string[]>();
    for (const member of members) {
      const value = String(read(member));
      values.set(value, [...(values.get(value) ?? []), member.instanceId]);
    }
    if (values.size < 2) return;
    const list = [...values].map(([value, ids]) => `${value} (${ids.length})`).join(', ');
    warn(name, `instances differ: ${list}`);
  };
  if (layout?.pinned !== true) told('partitions', ({ partitions }) => partitions);
  for (const name of new Set(members.flatMap(({ versions }) => Object.keys(versions)))) {
    told(name, ({ versions }) => versions[name]);
  }
  return problems;
}

/** `0-15, 32` of the buckets that are meant. Pure. */
function rangesOf(isMeant: (bucket: number) => boolean): string {
  const ranges: string[] = [];
  for (let first = 0; first < BUCKETS; first++) {
    if (!isMeant(first)) continue;
    let last = first;
    while (last + 1 < BUCKETS && isMeant(last + 1)) last++;
    ranges.push(first === last ? String(first) : `${first}-${last}`);
    first = last;
  }
  return ranges.join(', ');
}
