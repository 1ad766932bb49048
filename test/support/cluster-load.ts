import { Worker } from 'bullmq';
import { Queue } from '../../src/client/queue.js';
import { bucketOf } from '../../src/domain/buckets.js';
import { onCleanup } from './cleanup.js';
import { eventually } from './eventually.js';
import { History } from './history.js';
import type { ClusterHistory, LeaderCall } from './history-checker.js';
import type { Spine } from './spine.js';

export const LOAD_QUEUE = 'q';

const EVERY = 100;
const JOBS_A_TURN = 4;
/** Jobs are due at most so long after they are accepted, ms. */
const HORIZON = 1000;
const TICK = 1000;
/** Each tick of these must run, late or not. */
const COMPLETE = ['all-1', 'all-2', 'all-3', 'all-4'];
/** Of these a tick may be skipped, by their own policy. */
const LOSSY = ['latest', 'skip'] as const;

/**
 * One-time jobs and ticks without pause, straight to Redis past every fault, and a stock worker that takes them: what
 * came of each is known from outside.
 */
export class ClusterLoad {
  readonly #accepted = new Map<string, number>();
  readonly #possible = new Map<string, number>();
  readonly #starts = new Map<string, number>();
  /** Ids of ticks that came while 64 of their schedule had not ended: skipped, as its policy says. */
  readonly #backlog = new Set<string>();
  /** The first tick of each schedule, ms. */
  readonly #firstTick = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;
  #turns = new Set<Promise<void>>();
  #count = 0;
  /** What submits answered that failed. */
  readonly refusals: string[] = [];

  private constructor(
    private readonly spine: Spine,
    private readonly queue: Queue,
  ) {}

  /** Submits from now on; ends with the file. */
  static async start(spine: Spine): Promise<ClusterLoad> {
    const { namespace, prefix, url } = spine;
    // BullMQ's queue writes the bound of its event stream, 10,000 unless it is told another.
    const streams = { events: { maxLen: 100_000_000 } };
    const queue = new Queue(LOAD_QUEUE, { connection: url, namespace, prefix, streams });
    onCleanup(`load of ${namespace}`, () => queue.close());
    const load = new ClusterLoad(spine, queue);
    await load.#startWorker();
    for (const id of [...COMPLETE, ...LOSSY]) {
      await queue.schedules.upsert(id, {
        every: TICK,
        anchor: 0,
        overlap: 'allow',
        maxOpenRuns: 64,
        keepRuns: 255,
        ...(id === 'latest' || id === 'skip' ? { missed: id } : { missed: 'all', maxCatchup: 1000 }),
      });
      const info = await queue.schedules.get(id).describe();
      load.#firstTick.set(id, info?.last ?? info?.next ?? Number.NaN);
    }
    load.resume();
    onCleanup(`submits of ${namespace}`, () => load.pause());
    return load;
  }

  /** Ends when the running submits have their answers. */
  async pause(): Promise<void> {
    clearInterval(this.#timer);
    this.#timer = undefined;
    await Promise.all(this.#turns);
  }

  resume(): void {
    this.#timer ??= setInterval(() => {
      const turn = this.#submit().finally(() => this.#turns.delete(turn));
      this.#turns.add(turn);
    }, EVERY);
  }

  /** How many one-time jobs were accepted. */
  get accepted(): number {
    return this.#accepted.size;
  }

  get started(): number {
    return this.#starts.size;
  }

  /**
   * Waits until all that was accepted and is due was dispatched and started, ticks with it, and tells the history. Call it
   * while the load is paused; ticks go on.
   */
  async settled(calls: readonly LeaderCall[], timeout = 60_000): Promise<ClusterHistory> {
    const { client, keys } = this.spine;
    await eventually(async () => Number(await client.hget(keys.queues, `${LOAD_QUEUE}:scheduled`)) === 0, {
      timeout,
    });
    const accepted = new Map(this.#accepted);
    for (const id of COMPLETE) {
      for (const tick of await this.#ticksOf(id, timeout)) {
        const runId = `${id}@${tick}`;
        if (!this.#backlog.has(runId)) accepted.set(runId, tick);
      }
    }
    const { added, waiting } = await eventually(
      async () => {
        const history = await History.read(this.spine, LOAD_QUEUE);
        return [...history.waiting.keys()].every((id) => this.#starts.has(id)) && history;
      },
      { timeout, every: 200 },
    );
    const possible = new Map(this.#possible);
    for (const runId of waiting.keys()) {
      const [id = '', tick] = runId.split('@');
      if (this.#firstTick.has(id) && Number(tick) % TICK === 0) possible.set(runId, Number(tick));
    }
    // What started since the stream was read is for the next time.
    const started = new Map([...this.#starts].filter(([id]) => waiting.has(id) || !id.includes('@')));
    return { accepted, possible, stored: added, dispatched: waiting, started, calls };
  }

  /**
   * The longest time between due and dispatch of the one-time jobs that were due in a span of Redis' time, ms.
   * @param buckets only those of these buckets.
   */
  async worstLag(from: number, to: number, buckets?: readonly number[]): Promise<number> {
    const now = await this.spine.now();
    const { waiting } = await History.read(this.spine, LOAD_QUEUE);
    let worst = 0;
    for (const [id, at] of this.#accepted) {
      if (at < from || at > to) continue;
      if (buckets?.includes(bucketOf(`${LOAD_QUEUE}:${id}`)) === false) continue;
      // What has not come yet has waited until now.
      worst = Math.max(worst, (waiting.get(id)?.[0] ?? now) - at);
    }
    return worst;
  }

  /** Every tick up to the last that was fired, once none of them waits any more. */
  async #ticksOf(id: string, timeout: number): Promise<number[]> {
    const schedule = this.queue.schedules.get(id);
    const info = await eventually(
      async () => {
        const read = await schedule.describe();
        return read !== undefined && (read.waiting ?? []).length === 0 && read;
      },
      { timeout },
    );
    for (const { scheduledFor, reason } of await schedule.runs()) {
      if (reason === 'backlog') this.#backlog.add(`${id}@${scheduledFor}`);
    }
    const first = this.#firstTick.get(id) ?? Number.NaN;
    const last = info.last ?? 0;
    return Array.from({ length: Math.max(0, (last - first) / TICK + 1) }, (_, i) => first + i * TICK);
  }

  async #submit(): Promise<void> {
    const now = await this.spine.now();
    const jobs = Array.from({ length: JOBS_A_TURN }, () => {
      this.#count += 1;
      // The horizon walked through in odd steps: some are due at once, none together.
      const at = now + ((this.#count * 379) % HORIZON);
      return { name: 'work', data: {}, opts: { jobId: `job-${this.#count}`, at } };
    });
    for (const { opts } of jobs) this.#possible.set(opts.jobId, opts.at);
    try {
      await this.queue.addBulk(jobs);
      for (const { opts } of jobs) this.#accepted.set(opts.jobId, opts.at);
    } catch (error) {
      this.refusals.push(String(error));
    }
  }

  async #startWorker(): Promise<void> {
    const { hostname, port } = new URL(this.spine.url);
    const worker = new Worker(
      LOAD_QUEUE,
      async ({ id = '' }) => {
        this.#starts.set(id, (this.#starts.get(id) ?? 0) + 1);
      },
      { prefix: this.spine.prefix, concurrency: 50, connection: { host: hostname, port: Number(port) } },
    );
    worker.on('error', () => undefined);
    onCleanup(`worker of ${this.spine.namespace}`, () => worker.close());
    await worker.waitUntilReady();
  }
}
