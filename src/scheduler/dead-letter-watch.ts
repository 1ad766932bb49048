import { bucketOf } from '../domain/buckets.js';
import { type DeadNotice, deadReasonOf } from '../domain/dead-reason.js';
import { jobIdOfRun } from '../domain/ids.js';
import type { OwnedRange } from '../redis/leader-scripts.js';
import type { Shard } from '../redis/shard.js';
import type { Logger } from '../support/logger.js';
import { RepeatedTask } from '../support/repeated-task.js';
import { RefusedNotice } from './dead-receivers.js';

/** ms between looks. */
const EVERY = 2000;
const PAGE = 50;
/** Rests after a failed post, ms. */
const REST_MIN = 1000;
const REST_MAX = 60_000;
/** A letter that the receiver refuses (4xx) so often is passed over, so that those behind it are told. */
const TRIES = 20;
/**
 * Times of death are the workers' own: one may be written behind a later one, by a slower worker or by one whose clock is
 * behind. So far back each look goes, ms.
 */
const SKEW = 300_000;

/**
 * Hands each dead letter of the queues that this instance leads to a receiver, at least once: it is noted in Redis as told
 * when the receiver has it. What died before a watch first ran in the namespace is not told; of a queue that came later,
 * all is.
 */
export class DeadLetterWatch extends RepeatedTask {
  readonly #rests = new Map<string, { until: number; tries: number; refusals: number }>();
  /** Queue → what its failed set looked like when all of it was told. */
  readonly #told = new Map<string, string>();
  #since: number | undefined;

  constructor(
    private readonly shard: Shard,
    private readonly receiver: (notice: DeadNotice, signal: AbortSignal) => Promise<void>,
    private readonly owned: () => OwnedRange[],
    private readonly monotonic: () => number,
    private readonly log: Logger,
  ) {
    super('dead letter watch', EVERY, log);
  }

  /** Whatever dies once this has started is told. */
  protected override async onStart(signal: AbortSignal): Promise<void> {
    // The first round tries again.
    await this.#readSince().catch(() => undefined);
    await super.onStart(signal);
  }

  protected override async work(signal: AbortSignal): Promise<void> {
    const since = await this.#readSince();
    const owned = this.owned();
    if (owned.length === 0) return;
    const { client, keys } = this.shard;
    const fields = await client.hkeys(keys.queues);
    const queues = new Set(fields.map((field) => field.slice(0, field.lastIndexOf(':'))));
    for (const queue of queues) {
      if (signal.aborted) return;
      const bucket = bucketOf(queue);
      if (!owned.some(({ first, last }) => bucket >= first && bucket <= last)) continue;
      if ((this.#rests.get(queue)?.until ?? 0) > this.monotonic()) continue;
      await this.#tell(queue, since, signal);
    }
  }

  async #tell(queue: string, since: number, signal: AbortSignal): Promise<void> {
    const { client, keys, base } = this.shard;
    const failed = `${base}${queue}:failed`;
    const seen = keys.deadSeen(queue);
    // What this look knows of the failed set; nothing new costs two small questions.
    const [count, newest] = await Promise.all([
      client.zcard(failed),
      client.zrevrange(failed, 0, 0, 'WITHSCORES'),
    ]);
    const look = `${count} ${newest.join(' ')}`;
    if (this.#told.get(queue) === look) return;
    const [, last = '0'] = await client.zrevrange(seen, 0, 0, 'WITHSCORES');
    const from = Math.max(since, Number(last) - SKEW);
    for (let offset = 0; ; offset += PAGE) {
      const page = await client.zrange(failed, from, '+inf', 'BYSCORE', 'LIMIT', offset, PAGE, 'WITHSCORES');
      const ids = page.filter((_, i) => i % 2 === 0);
      if (ids.length === 0) break;
      const told = await client.zmscore(seen, ...ids);
      for (const [i, id] of ids.entries()) {
        const score = Number(page[2 * i + 1]);
        if (Number(told[i] ?? -1) === score) continue;
        const notice = await this.#notice(queue, id, score);
        if (notice !== undefined && !(await this.#hand(queue, notice, signal))) return;
        await client.zadd(seen, score, id);
        if (signal.aborted) return;
      }
      if (ids.length < PAGE) break;
    }
    const [, end = '0'] = await client.zrevrange(seen, 0, 0, 'WITHSCORES');
    await client.zremrangebyscore(seen, '-inf', `(${Number(end) - 2 * SKEW}`);
    this.#told.set(queue, look);
  }

  /** ms; what died before is not told. One for all queues: those that come later lose none. */
  async #readSince(): Promise<number> {
    if (this.#since !== undefined) return this.#since;
    const { client, keys } = this.shard;
    const [seconds, micros] = (await client.time()) as unknown as [string, string];
    const now = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
    await client.setnx(keys.deadSince, now);
    const since = Number.parseFloat((await client.get(keys.deadSince)) ?? '');
    this.#since = Number.isFinite(since) ? since : now;
    return this.#since;
  }

  /** Undefined when somebody took it away meanwhile. */
  async #notice(queue: string, id: string, diedAt: number): Promise<DeadNotice | undefined> {
    const { client, base, namespace } = this.shard;
    const [name, failedReason, made, opts] = await client.hmget(
      `${base}${queue}:${id}`,
      'name',
      'failedReason',
      'atm',
      'opts',
    );
    if (name === null || name === undefined) return undefined;
    const error = failedReason ?? '';
    const attempts = Number(made ?? 0);
    const reason = deadReasonOf({ failedReason: error, attemptsMade: attempts, attempts: attemptsOf(opts) });
    return {
      event: 'dead',
      namespace,
      queue,
      id,
      name,
      source: jobIdOfRun(id),
      reason,
      error,
      attempts,
      diedAt,
    };
  }

  /** True when the receiver has it, or has refused it too often. */
  async #hand(queue: string, notice: DeadNotice, signal: AbortSignal): Promise<boolean> {
    try {
      await this.receiver(notice, signal);
      this.#rests.delete(queue);
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      const before = this.#rests.get(queue) ?? { tries: 0, refusals: 0 };
      const tries = before.tries + 1;
      const refusals = before.refusals + (error instanceof RefusedNotice ? 1 : 0);
      const fields = { queue, run: notice.id, tries, error: String(error) };
      if (refusals >= TRIES) {
        this.#rests.delete(queue);
        this.log.error(fields, 'gave up telling of a dead letter; it stays in its queue');
        return true;
      }
      const rest = Math.min(REST_MAX, REST_MIN * 2 ** Math.min(tries - 1, 10));
      this.#rests.set(queue, { until: this.monotonic() + rest, tries, refusals });
      this.log.warn(fields, 'could not tell of a dead letter; it is tried again');
      return false;
    }
  }
}

function attemptsOf(opts: string | null | undefined): number {
  try {
    return Number((JSON.parse(opts ?? '{}') as { attempts?: unknown }).attempts ?? 0);
  } catch {
    return 0;
  }
}
