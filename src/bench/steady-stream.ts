import { Redis } from 'ioredis';
import { Queue } from '../client/queue.js';
import { BullWorker } from '../queue/bullmq.js';
import type { BenchRedis } from './bench-redis.js';
import { RedisClock } from './redis-clock.js';
import { until } from './until.js';

const EVERY = 100;
/** Jobs are due at most so long after they are accepted, ms. */
const HORIZON = 1000;
/** ms; what has not come by then does not come. */
const PATIENCE = 60_000;

/** One-time jobs without pause, and a stock worker that says what became of each. */
export class SteadyStream {
  /** Job id → its time, ms of Redis' clock. */
  readonly #due = new Map<string, number>();
  readonly #starts = new Map<string, number>();
  #early = 0;
  #worstLag = 0;
  #failure: unknown;
  #turns: Promise<void> = Promise.resolve();
  readonly #timer: NodeJS.Timeout;

  private constructor(
    private readonly perSecond: number,
    private readonly queue: Queue,
    private readonly worker: BullWorker,
    private readonly client: Redis,
    private readonly clock: RedisClock,
  ) {
    this.#timer = setInterval(() => {
      this.#turns = this.#turns
        .then(() => this.#submit())
        .catch((error: unknown) => {
          this.#failure ??= error;
        });
    }, EVERY);
  }

  static async start(redis: BenchRedis, perSecond: number): Promise<SteadyStream> {
    const connection = { url: redis.url };
    const client = new Redis(redis.url);
    const worker = new BullWorker('q', async ({ id = '' }) => stream.#started(id), {
      connection,
      concurrency: 100,
      autorun: false,
    });
    worker.on('error', () => undefined);
    const queue = new Queue('q', { connection });
    const stream = new SteadyStream(perSecond, queue, worker, client, await RedisClock.of(client));
    worker.run().catch((error: unknown) => {
      stream.#failure ??= error;
    });
    return stream;
  }

  /** Waits until all that is due has started. @returns the longest time from due to start since the last call, ms. */
  async worstLag(): Promise<number> {
    const now = this.clock.now();
    const late = () => [...this.#due].some(([id, due]) => due < now && !this.#starts.has(id));
    await until('all that is due to start', async () => !late(), { timeout: PATIENCE, every: 20 });
    const worst = this.#worstLag;
    this.#worstLag = 0;
    return worst;
  }

  /** Submits no more, waits until all that was accepted has started, and counts. */
  async end(): Promise<{ lost: number; doubled: number; early: number }> {
    clearInterval(this.#timer);
    await this.#turns;
    if (this.#failure !== undefined) throw this.#failure;
    const missing = () => [...this.#due.keys()].filter((id) => !this.#starts.has(id)).length;
    await until('the last start', async () => missing() === 0, { timeout: PATIENCE, every: 50 }).catch(
      () => undefined,
    );
    const doubled = [...this.#starts.values()].filter((starts) => starts > 1).length;
    return { lost: missing(), doubled, early: this.#early };
  }

  async close(): Promise<void> {
    clearInterval(this.#timer);
    await this.#turns;
    await this.worker.close();
    await this.queue.close();
    this.clock.close();
    this.client.disconnect();
  }

  async #submit(): Promise<void> {
    const now = Math.ceil(this.clock.now());
    const from = this.#due.size;
    const count = Math.max(1, Math.round((this.perSecond * EVERY) / 1000));
    const jobs = Array.from({ length: count }, (_, i) => {
      const at = now + (((from + i) * 379) % HORIZON);
      return { name: 'n', data: {}, opts: { jobId: `job-${from + i}`, at } };
    });
    for (const { opts } of jobs) this.#due.set(opts.jobId, opts.at);
    await this.queue.addBulk(jobs);
  }

  #started(id: string): void {
    const lag = this.clock.now() - (this.#due.get(id) ?? 0);
    if (lag < 0) this.#early += 1;
    this.#worstLag = Math.max(this.#worstLag, lag);
    this.#starts.set(id, (this.#starts.get(id) ?? 0) + 1);
  }
}
