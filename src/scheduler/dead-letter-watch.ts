import { bucketOf } from '../domain/buckets.js';
import { deadReasonOf } from '../domain/dead-reason.js';
import { jobIdOfRun } from '../domain/ids.js';
import type { OwnedRange } from '../redis/leader-scripts.js';
import type { Shard } from '../redis/shard.js';
import type { Logger } from '../support/logger.js';
import { RepeatedTask } from '../support/repeated-task.js';

/** ms between looks. */
const EVERY = 2000;
const PAGE = 50;
/** A post that is not answered in time has failed, ms. */
const POST_TIMEOUT = 5000;
/** Rests after a failed post, ms. */
const REST_MIN = 1000;
const REST_MAX = 60_000;
/** A letter that is refused so often is passed over, so that those behind it are told. */
const TRIES = 20;

/** What is posted of a run that has died. */
export interface DeadNotice {
  event: 'dead';
  namespace: string;
  queue: string;
  id: string;
  name: string;
  source: string;
  reason: string;
  error: string;
  attempts: number;
  /** ms since 1970. */
  diedAt: number;
}

/** How far the dead letters of a queue were told: the time of death of the last one, and its id. */
interface Cursor {
  score: number;
  id: string;
}

/**
 * Posts each dead letter of the queues that this instance leads to a webhook, oldest first, at least once: the cursor in
 * Redis moves when the receiver has answered 2xx. Those that died before it first looked are not told.
 */
export class DeadLetterWatch extends RepeatedTask {
  readonly #rests = new Map<string, { until: number; tries: number }>();

  constructor(
    private readonly shard: Shard,
    private readonly url: string,
    private readonly owned: () => OwnedRange[],
    private readonly monotonic: () => number,
    private readonly log: Logger,
  ) {
    super('dead letter watch', EVERY, log);
  }

  protected override async work(signal: AbortSignal): Promise<void> {
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
      await this.#tell(queue, signal);
    }
  }

  async #tell(queue: string, signal: AbortSignal): Promise<void> {
    const { client, keys, base } = this.shard;
    const failed = `${base}${queue}:failed`;
    const from = await this.#cursor(queue);
    const page = await client.zrange(failed, from.score, '+inf', 'BYSCORE', 'LIMIT', 0, PAGE, 'WITHSCORES');
    for (let i = 0; i < page.length && !signal.aborted; i += 2) {
      const [id = '', score] = [page[i], Number(page[i + 1])];
      // Of one time those of a lower id come first, as Redis sorts them.
      if (score === from.score && Buffer.compare(Buffer.from(id), Buffer.from(from.id)) <= 0) continue;
      const notice = await this.#notice(queue, id, score);
      if (notice !== undefined && !(await this.#post(queue, notice, signal))) return;
      await client.hset(keys.deadTold, queue, `${score} ${id}`);
    }
  }

  async #cursor(queue: string): Promise<Cursor> {
    const { client, keys } = this.shard;
    const [seconds, micros] = (await client.time()) as unknown as [string, string];
    const now = Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
    await client.hsetnx(keys.deadTold, queue, `${now} `);
    const [, score = '', id = ''] =
      /^(\d+(?:\.\d+)?) (.*)$/s.exec((await client.hget(keys.deadTold, queue)) ?? '') ?? [];
    return { score: score === '' ? now : Number(score), id };
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
  async #post(queue: string, notice: DeadNotice, signal: AbortSignal): Promise<boolean> {
    try {
      const reply = await fetch(this.url, {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          'idempotency-key': `${notice.namespace}:${queue}:${notice.id}:${notice.diedAt}`,
        },
        body: JSON.stringify(notice),
        signal: AbortSignal.any([signal, AbortSignal.timeout(POST_TIMEOUT)]),
      });
      await reply.body?.cancel();
      if (!reply.ok) throw new Error(`it answered ${reply.status}`);
      this.#rests.delete(queue);
      return true;
    } catch (error) {
      if (signal.aborted) return false;
      const tries = (this.#rests.get(queue)?.tries ?? 0) + 1;
      const fields = { queue, run: notice.id, tries, error: String(error) };
      if (tries >= TRIES) {
        this.#rests.delete(queue);
        this.log.error(fields, 'gave up telling of a dead letter; it stays in its queue');
        return true;
      }
      const rest = Math.min(REST_MAX, REST_MIN * 2 ** (tries - 1));
      this.#rests.set(queue, { until: this.monotonic() + rest, tries });
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
