import { setTimeout as pause } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { checkCall } from '../config/call-options.js';
import { refuse } from '../config/check.js';
import { BUCKETS } from '../domain/buckets.js';
import { type Duration, parseDuration } from '../domain/durations.js';
import { Keys } from '../redis/keys.js';
import type { ClusterLook } from './doctor-cluster.js';
import type { DoctorContext } from './doctor-context.js';
import { type DoctorCheck, type Finding, Findings } from './doctor-finding.js';
import type { Leader } from './doctor-leader.js';
import { examineNamespace, type Looked } from './doctor-namespace.js';
import { checkServer, redisTime, type ServerLook } from './doctor-server.js';

/** What `doctor` may be told. */
export interface DoctorOptions {
  /** Between the two looks at what seems wrong; longer is surer on a slow machine. Defaults to 1 s, at most 1 min. */
  pause?: Duration;
  /** A leader's heartbeat older than this is nobody's. Defaults to one and a half times the TTL that the leader told. */
  staleAfter?: Duration;
  /** Who leads by etcd, for a namespace that is coordinated by it; `carillon doctor --etcd` reads it. */
  cluster?: () => Promise<ClusterLook>;
}

/** What `doctor` found. Times in ms. */
export interface DoctorReport {
  namespace: string;
  prefix: string;
  /** By Redis' clock. */
  at: number;
  took: number;
  /** No error was found; there may be warnings. */
  healthy: boolean;
  errors: number;
  warnings: number;
  /** Up to 50 of each check. */
  findings: Finding[];
  /** Findings beyond that, by check. */
  omitted: Partial<Record<DoctorCheck, number>>;
  /** What could not be judged this time, as sentences. */
  notes: string[];
  looked: Looked;
  server: ServerLook;
  /** Of a standalone namespace. */
  leader: Leader | undefined;
  /** Who says who leads. */
  coordination: 'standalone' | 'etcd';
}

/** Defaults, then checks. @throws CarillonError INVALID_OPTION, INVALID_DURATION */
export function resolveDoctorOptions(options: DoctorOptions): {
  pause: number;
  staleAfter: number | undefined;
  cluster: DoctorOptions['cluster'];
} {
  checkCall(options, ['pause', 'staleAfter', 'cluster']);
  const { pause = 1000, staleAfter, cluster } = options;
  if (cluster !== undefined && typeof cluster !== 'function') {
    refuse('cluster', cluster, 'must be a function', 'Give one that tells who leads, or leave it out.');
  }
  return {
    pause: parseDuration(pause, { field: 'pause', max: 60_000 }),
    staleAfter:
      staleAfter === undefined ? undefined : parseDuration(staleAfter, { field: 'staleAfter', min: 1000 }),
    cluster,
  };
}

/** Suspects that are looked at again side by side. */
const AT_ONCE = 50;

/**
 * Examines a live namespace without blocking Redis: everything is read in pages, and what seems wrong counts only if a
 * second look, after a pause, says so too. It writes nothing: the scheduler's sweep repairs.
 *
 * @throws CarillonError INVALID_OPTION, INVALID_DURATION, REDIS_UNAVAILABLE
 */
export async function examine(
  client: Redis,
  { namespace, prefix, virtualClock = false }: { namespace: string; prefix: string; virtualClock?: boolean },
  options: DoctorOptions = {},
): Promise<DoctorReport> {
  const { pause: rest, staleAfter, cluster } = resolveDoctorOptions(options);
  const keys = new Keys(namespace);
  const findings = new Findings();
  const now = virtualClock ? async () => Number(await client.get(keys.clock)) : () => redisTime(client);
  const everyBucket = Array.from({ length: BUCKETS }, (_, bucket) => bucket);
  const context: DoctorContext = {
    client,
    keys,
    prefix,
    base: `${prefix}:`,
    findings,
    staleAfter,
    cluster,
    buckets: everyBucket,
    now,
  };

  const started = performance.now();
  const server = await checkServer(context);
  const at = await now();
  const { looked, leader, coordination } = await examineNamespace(context);
  if (findings.suspects.length > 0) {
    await pause(rest);
    await confirmSuspects(findings);
  }

  const omitted: DoctorReport['omitted'] = {};
  for (const [check, count] of findings.counts) {
    const beyond = count.error + count.warning - findings.kept.filter((f) => f.check === check).length;
    if (beyond > 0) omitted[check] = beyond;
  }
  const errors = findings.total('error');
  return {
    namespace,
    prefix,
    at,
    took: Math.round(performance.now() - started),
    healthy: errors === 0,
    errors,
    warnings: findings.total('warning'),
    findings: findings.kept,
    omitted,
    notes: findings.notes,
    looked,
    server,
    leader,
    coordination,
  };
}

async function confirmSuspects(findings: Findings): Promise<void> {
  const { suspects } = findings;
  for (let from = 0; from < suspects.length; from += AT_ONCE) {
    const chunk = suspects.slice(from, from + AT_ONCE);
    for (const problems of await Promise.all(chunk.map((suspect) => suspect.confirm()))) {
      for (const problem of problems) findings.add(problem);
    }
  }
  if (findings.suspectsDropped > 0) {
    findings.notes.push(
      `${findings.suspectsDropped} more suspects were not looked at again: there are too many`,
    );
  }
}
