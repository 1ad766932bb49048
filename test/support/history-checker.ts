/** A leader's script as Redis carried it out, in Redis' order. */
export interface LeaderCall {
  /** ms of Redis' clock. */
  readonly at: number;
  /** The connection's address: one a scheduler's loop. */
  readonly client: string;
  readonly script: string;
  /** The ranges that it claimed to lead, by which fence: `<epoch number>|<epoch id>|<token>|<holder>`. */
  readonly claims: readonly { first: number; last: number; fence: string }[];
  /** Buckets whose fence it raised. */
  readonly raised: number[];
  /** Buckets of which it changed a key. */
  readonly wrote: number[];
}

/** What was seen of a cluster under faults, from its outside. */
export interface ClusterHistory {
  /** Run id → ms before which it must not enter the queue: what clients were told is accepted, and ticks that must run. */
  readonly accepted: ReadonlyMap<string, number>;
  /** The same of runs that may come or not: the call got no answer, or a policy may skip the tick. */
  readonly possible: ReadonlyMap<string, number>;
  /** Run id → how often it was stored in the queue, and when it became visible to workers (ms of Redis' clock). */
  readonly stored: ReadonlyMap<string, number>;
  readonly dispatched: ReadonlyMap<string, readonly number[]>;
  /** Run id → how often a worker that no fault touches started it. */
  readonly started: ReadonlyMap<string, number>;
  readonly calls: readonly LeaderCall[];
}

/**
 * Holds a history against the invariants I1, I2, I3 and I5 (I4 is asked of `doctor`).
 * @param fenced false where the scripts were loaded without their fence check: their order is not judged.
 * @returns one line a violation: `<invariant> <what> <which>`.
 */
export function violationsOf(history: ClusterHistory, fenced = true): string[] {
  return [...runViolations(history), ...(fenced ? fenceViolations(history.calls) : [])];
}

function runViolations({ accepted, possible, stored, dispatched, started }: ClusterHistory): string[] {
  const found: string[] = [];
  for (const runId of accepted.keys()) {
    if (!dispatched.has(runId)) found.push(`I1 lost: ${runId}`);
  }
  for (const [runId, times] of dispatched) {
    if (times.length > 1 || (stored.get(runId) ?? 0) > 1) found.push(`I3 enqueued twice: ${runId}`);
    const notBefore = accepted.get(runId) ?? possible.get(runId);
    if (notBefore === undefined) found.push(`I3 nobody asked for: ${runId}`);
    else if (times.some((time) => time < notBefore)) found.push(`I2 early: ${runId}`);
    const starts = started.get(runId) ?? 0;
    if (starts === 0) found.push(`I1 never started: ${runId}`);
    if (starts > 1) found.push(`I3 started twice: ${runId}`);
  }
  for (const runId of started.keys()) {
    if (!dispatched.has(runId)) found.push(`I3 started without dispatch: ${runId}`);
  }
  return found;
}

interface Fence {
  number: number;
  token: number;
  text: string;
}

/** I5: per bucket, the fences of the scripts that changed anything never fall, and each was raised before its first. */
function fenceViolations(calls: readonly LeaderCall[]): string[] {
  const found: string[] = [];
  const highest = new Map<number, Fence>();
  for (const call of calls) {
    for (const bucket of call.raised) {
      const fence = fenceIn(call, bucket);
      const before = highest.get(bucket);
      if (before !== undefined && !isAbove(fence, before)) {
        found.push(`I5 fence of bucket ${bucket} fell: ${before.text} → ${fence.text}`);
      }
      highest.set(bucket, fence);
    }
    for (const bucket of call.wrote) {
      const fence = fenceIn(call, bucket);
      const raised = highest.get(bucket);
      if (raised?.text === fence.text) continue;
      found.push(
        raised === undefined || isAbove(fence, raised)
          ? `I5 ${call.script} wrote bucket ${bucket} before its take-over: ${fence.text}`
          : `I5 ${call.script} of a stale leader wrote bucket ${bucket}: ${fence.text} after ${raised.text}`,
      );
    }
  }
  return found;
}

function fenceIn({ claims, script }: LeaderCall, bucket: number): Fence {
  const text = claims.find(({ first, last }) => bucket >= first && bucket <= last)?.fence;
  if (text === undefined) return { number: -1, token: -1, text: `${script} without a claim` };
  const [number, , token] = text.split('|');
  return { number: Number(number), token: Number(token), text };
}

function isAbove(left: Fence, right: Fence): boolean {
  return left.number === right.number ? left.token > right.token : left.number > right.number;
}
