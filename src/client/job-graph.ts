import { identityOf, splitIdentity } from '../domain/ids.js';
import type { ParentFound, ParentScripts } from '../redis/parent-scripts.js';
import type { ParentCondition } from '../redis/submit-batch.js';
import type { WorkerRegistry } from '../redis/worker-registry.js';
import { tellRepeats } from './tell-repeats.js';

/** A job of a graph, as far as it is known: a parent's outcome is kept for an hour after it ended. */
export interface GraphNodeInfo {
  queue: string;
  jobId: string;
  /** Its job name, while its record or its run is kept. */
  name?: string;
  /** What repeats of its run do, by what its handler says. */
  repeats?: string;
  /**
   * The state of its record while it is in the timers; `dispatched` or `running` in BullMQ; its outcome afterwards
   * (succeeded, dead, cancelled, skipped, removed, lost); `unknown` when it is forgotten.
   */
  state: string;
  /** When it is due, ms; only while it waits. */
  scheduledFor?: number;
  /** Why it stands as it does, where there is more to say. */
  note?: string;
  /** What it waits for, or waited for: `outcome` is empty while that is not known. */
  after: { queue: string; jobId: string; on: ParentCondition; outcome: string }[];
  /** Identities of those that wait, or waited, for it. */
  children: string[];
  /** Children that are not shown. */
  more: number;
}

/** What is read around a job at most. */
const MOST_NODES = 1000;
const CHILDREN = 200;
/** States of runs that BullMQ has and that run, or may be put back. */
const RUNS: ReadonlySet<string> = new Set(['dispatched', 'running', 'dead']);

/**
 * All jobs that hang together with one: those it waits for, those that wait for it, and so on, in the order of finding.
 * @returns by identity; the job that was asked for is the first. At most 1,000.
 */
export async function readGraph(
  scripts: ParentScripts,
  workers: WorkerRegistry,
  queue: string,
  jobId: string,
): Promise<Map<string, GraphNodeInfo>> {
  const nodes = new Map<string, GraphNodeInfo>();
  const first = identityOf(queue, jobId);
  const seen = new Set([first]);
  let layer = [first];
  while (layer.length > 0) {
    const next: string[] = [];
    for (const found of await scripts.read(layer, CHILDREN)) {
      nodes.set(found.identity, infoOf(found));
      for (const identity of [...(found.after?.e ?? []).map(([parent]) => parent), ...found.children]) {
        if (seen.has(identity) || seen.size >= MOST_NODES) continue;
        seen.add(identity);
        next.push(identity);
      }
    }
    layer = next;
  }
  // Of those that may run yet, or again: dead ones too.
  const inBullmq = [...nodes].filter(([, node]) => RUNS.has(node.state)).map(([identity]) => identity);
  for (const [identity, name] of await scripts.namesOf(inBullmq)) {
    Object.assign(nodes.get(identity) as GraphNodeInfo, { name });
  }
  await tellRepeats(workers, nodes.values());
  return nodes;
}

function infoOf(found: ParentFound): GraphNodeInfo {
  const { queue, jobId } = splitIdentity(found.identity);
  const { record } = found;
  const inTimers = record !== undefined && (found.state === 'pending' || found.state === 'telling');
  const words: Readonly<Record<string, string>> = { open: 'dispatched', started: 'running' };
  const note = record?.note ?? found.reason;
  return {
    queue,
    jobId,
    ...(inTimers ? { name: record.name } : {}),
    state: inTimers ? record.state : (words[found.state] ?? found.state),
    ...(record?.kind === 'job' ? { scheduledFor: record.at } : {}),
    ...(note === '' ? {} : { note }),
    after: (found.after?.e ?? []).map(([parent, on, outcome]) => ({ ...splitIdentity(parent), on, outcome })),
    children: found.children,
    more: found.more,
  };
}
