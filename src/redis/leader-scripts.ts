import { type OwnedRange, packOwned } from './owned-ranges.js';
import { asBytes, asList, asNumber, asText } from './replies.js';
import type { Reply } from './script-runner.js';
import type { Shard } from './shard.js';
import { statusError } from './status.js';

export type { OwnedRange };

export interface PopResult {
  now: number;
  popped: number;
  /** The earliest known head of an owned bucket in ms; 0 when none is near. */
  nextHead: number;
  /** Buckets with schedules for the planner, if it was asked for them. */
  planned: number[];
  /** Buckets whose fence is above ours: the term is over. */
  fenced: number[];
  /** Buckets whose fence is below ours: a failover lost the raise. */
  lower: number[];
  /** What was set aside, parked or repaired, one line each: `<WORD> <detail>`. */
  trouble: string[];
  /** Bytes of records read, and how many there were. */
  bytes: number;
  taken: number;
  /** ms that the script itself took, without waiting for its turn; 0 on a server that holds its clock meanwhile. */
  took: number;
  /** ms from `now`, which is whole, to the end of the script. */
  past: number;
  /** Workers have runs of a queue that it looked at. */
  working: boolean;
}

export interface PlanItem {
  bucket: number;
  identity: string;
  record: Buffer;
  askedAt: number;
}

/** How far the parked records of a queue were gone through. */
export interface ParkedPosition {
  bucket: number;
  /** Records of other queues that were stepped over in that bucket. */
  offset: number;
}

/** An answer of the planner; lua/set-next.lua says what each operation means. */
export type PlanAnswer = { bucket: number; identity: string; inc: string; ver: string } & (
  | { op: 'append'; tail: number; tick: number; fireAt: number }
  | {
      op: 'resolve';
      cur: number;
      last: number;
      newLast: number;
      newCur: number;
      newCurFire: number;
      newNext: number;
      newNextFire: number;
      /** Missed ticks that run after all. */
      catchUp: number[];
      ends: boolean;
      /** Why it is suspended, by its own policy. */
      suspends?: string;
      /** Rows for the ledger. */
      skipped: { at: number; what: string; reason: string }[];
    }
  | {
      op: 'replan';
      cur: number;
      last: number;
      next: number;
      newCur: number;
      newCurFire: number;
      newNext: number;
      newNextFire: number;
    }
  | { op: 'defer'; planAt: number }
  | { op: 'suspend'; reason: string }
  | { op: 'end'; tail: number }
  | { op: 'forget' }
  | { op: 'quarantine'; reason: string }
);

/** The calls that a leader makes on its shard; all but reads are judged by fence. */
export class LeaderScripts {
  constructor(private readonly shard: Shard) {}

  /**
   * Moves what is due. `limit` records and `bytes` at most in one call. `planning` asks for the buckets to plan too.
   * `headroom` runs the twin that Redis lets grow memory above maxmemory; a TIME past `latest` (ms) fires nothing.
   */
  async popDue(
    owned: readonly OwnedRange[],
    options: {
      limit: number;
      bytes: number;
      prove: boolean;
      planning?: boolean;
      headroom?: boolean;
      latest?: number;
    },
  ): Promise<PopResult | { clockJumpedTo: number }> {
    const { status, rest } = await this.shard.run('pop-due', options.headroom ? 'allow-oom' : 'deny-oom', [
      this.shard.base,
      this.shard.namespace,
      packOwned(owned),
      options.limit,
      options.bytes,
      options.prove ? 1 : 0,
      Math.floor(options.latest ?? 0),
      (options.planning ?? true) ? 1 : 0,
    ]);
    if (status === 'CLOCK_JUMP') return { clockJumpedTo: asNumber(rest[0]) };
    if (status !== 'OK') throw statusError(status);
    return {
      now: asNumber(rest[0]),
      popped: asNumber(rest[1]),
      nextHead: asNumber(rest[2]),
      planned: asList(rest[3]).map(asNumber),
      fenced: asList(rest[4]).map(asNumber),
      lower: asList(rest[5]).map(asNumber),
      trouble: asList(rest[6]).map(asText),
      bytes: asNumber(rest[7]),
      took: asNumber(rest[8]) / 1000,
      taken: asNumber(rest[9]),
      past: asNumber(rest[10]) / 1000,
      working: asNumber(rest[11]) > 0,
    };
  }

  async readPlan(
    buckets: readonly number[],
    limit: number,
    bytes: number,
  ): Promise<{ now: number; items: PlanItem[] }> {
    const rest = await this.#run('read-plan', 'read-only', [buckets.join(','), limit, bytes]);
    const list = asList(rest[1]);
    const items: PlanItem[] = [];
    for (let i = 0; i < list.length; i += 4) {
      items.push({
        bucket: asNumber(list[i]),
        identity: asText(list[i + 1]),
        record: asBytes(list[i + 2]),
        askedAt: asNumber(list[i + 3]),
      });
    }
    return { now: asNumber(rest[0]), items };
  }

  /** One outcome an answer: `OK`, `CONFLICT`, `KEPT`, `FENCED` or `BAD_RECORD ...`. */
  async setNext(
    owned: readonly OwnedRange[],
    answers: readonly PlanAnswer[],
  ): Promise<{ outcomes: string[]; now: number }> {
    const rest = await this.#run('set-next', 'deny-oom', [packOwned(owned), JSON.stringify(answers)]);
    return { outcomes: asList(rest[0]).map(asText), now: asNumber(rest[1]) };
  }

  /** Raises the fences of the ranges. */
  async takeOver(
    owned: readonly OwnedRange[],
  ): Promise<{ raised: number; fenced: number[]; otherEpoch: number[]; now: number }> {
    const rest = await this.#run('take-over', 'allow-oom', [packOwned(owned)]);
    return {
      raised: asNumber(rest[0]),
      fenced: asList(rest[1]).map(asNumber),
      otherEpoch: asList(rest[2]).map(asNumber),
      now: asNumber(rest[3]),
    };
  }

  /**
   * Waits up to `ms` until a replica has what was written here, fences say. False when none has it by then; true when
   * there is none to wait for.
   */
  async awaitReplica(ms: number): Promise<boolean> {
    const { client } = this.shard;
    // Who may not ask cannot wait either.
    const role = (await client.call('ROLE').catch(() => [])) as Reply[];
    if (asList(role[2] ?? []).length === 0) return true;
    return (await client.wait(1, ms)) > 0;
  }

  /** Probes a broken queue and moves on from `from`; `next.bucket` is 256 when all owned buckets are done. */
  async unparkQueue(
    owned: readonly OwnedRange[],
    queue: string,
    from: ParkedPosition,
    limit: number,
  ): Promise<{ broken: string } | { moved: number; next: ParkedPosition }> {
    const args = [this.shard.base, packOwned(owned), queue, from.bucket, from.offset, limit];
    const { status, rest } = await this.shard.run('unpark-queue', 'deny-oom', args);
    if (status === 'BROKEN') return { broken: asText(rest[0]) };
    if (status === 'HELD') return { broken: 'it is on hold' };
    if (status !== 'OK') throw statusError(status);
    return { moved: asNumber(rest[0]), next: { bucket: asNumber(rest[1]), offset: asNumber(rest[2]) } };
  }

  /** Re-reads all heads; returns how many buckets have something pending. */
  async refreshHeads(owned: readonly OwnedRange[]): Promise<number> {
    return asNumber((await this.#run('refresh-heads', 'allow-oom', [packOwned(owned)]))[0]);
  }

  /** Repairs the indexes of one page of a bucket. */
  async sweepBucket(
    owned: readonly OwnedRange[],
    bucket: number,
    cursor: string,
    count: number,
  ): Promise<{ cursor: string; repaired: string[] }> {
    const rest = await this.#run('sweep-bucket', 'deny-oom', [packOwned(owned), bucket, cursor, count]);
    return { cursor: asText(rest[0]), repaired: asList(rest[1]).map(asText) };
  }

  /** Ages the duplicate windows and the history; all in ms. */
  async rotateSpent(window: number, shortWindow: number, history: number): Promise<number> {
    return asNumber((await this.#run('rotate-spent', 'allow-oom', [window, shortWindow, history]))[0]);
  }

  async #run(
    name: string,
    flag: 'deny-oom' | 'allow-oom' | 'read-only',
    args: (string | number | Buffer)[],
  ): Promise<Reply[]> {
    const { status, rest } = await this.shard.run(name, flag, args);
    if (status !== 'OK') throw statusError(status);
    return rest;
  }
}
