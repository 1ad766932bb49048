import { type Job, Worker, type WorkerOptions } from 'bullmq';
import { onCleanup } from './cleanup.js';
import { eventually } from './eventually.js';
import { QUEUE, type ScheduleWorld } from './schedule-world.js';

type Ending = 'completed' | 'failed';

/**
 * A stock BullMQ worker whose runs end when the test says so; those that are not held end at once. It stops with the
 * test.
 */
export class HandWorker {
  /** Run ids in the order of their starts; an attempt counts as one. */
  readonly starts: string[] = [];
  /** The most runs that were under way at once. */
  most = 0;
  readonly #running = new Map<string, (how: Ending) => void>();
  readonly #held = new Set<string>();
  readonly #holdsAll: boolean;
  #worker!: Worker;

  private constructor(
    private readonly world: ScheduleWorld,
    holdsAll: boolean,
  ) {
    this.#holdsAll = holdsAll;
  }

  /**
   * @param options.holdAll every run waits for {@link end}.
   * @param options.worker BullMQ's own options; concurrency is 10 unless they say otherwise.
   */
  static async start(
    world: ScheduleWorld,
    options: { holdAll?: boolean; worker?: Partial<WorkerOptions> } = {},
  ): Promise<HandWorker> {
    const hand = new HandWorker(world, options.holdAll ?? false);
    const { hostname, port } = new URL(world.spine.url);
    const worker = new Worker(QUEUE, (job) => hand.#run(job), {
      prefix: world.spine.prefix,
      concurrency: 10,
      connection: { host: hostname, port: Number(port) },
      ...options.worker,
    });
    worker.on('error', () => undefined);
    hand.#worker = worker;
    onCleanup(`worker of ${world.spine.namespace}`, async () => {
      for (const end of hand.#running.values()) end('completed');
      await worker.close();
    });
    await worker.waitUntilReady();
    return hand;
  }

  /** Keeps the run of one tick from ending: an ISO time. */
  hold(id: string, time: string): void {
    this.#held.add(runIdOf(id, time));
  }

  /** The ids that are under way, in the order of their starts. */
  get running(): string[] {
    return [...this.#running.keys()];
  }

  /** Ends a run that is under way, and waits until BullMQ knows. */
  async end(runId: string, how: Ending = 'completed'): Promise<void> {
    const end = this.#running.get(runId);
    if (end === undefined) throw new Error(`${runId} is not under way: ${this.running}`);
    const known = new Promise<void>((resolve) => {
      const listen = (job: Job | undefined) => {
        if (job?.id !== runId) return;
        this.#worker.off(how, listen);
        resolve();
      };
      this.#worker.on(how, listen);
    });
    this.#held.delete(runId);
    end(how);
    await known;
  }

  /** Waits until so many starts were seen. */
  async started(count: number): Promise<void> {
    await eventually(() => this.starts.length >= count, { every: 5 });
  }

  /** Waits until the worker has fetched all that waits, and ended all but what is held. */
  async idle(): Promise<void> {
    await eventually(
      async () => {
        const { wait, prioritized, active } = await this.world.queue.getJobCounts(
          'wait',
          'prioritized',
          'active',
        );
        return wait === 0 && prioritized === 0 && active === this.#running.size && this.#isHolding();
      },
      { every: 5 },
    );
  }

  #isHolding(): boolean {
    return this.#holdsAll || this.running.every((runId) => this.#held.has(runId));
  }

  async #run(job: Job): Promise<void> {
    const runId = job.id ?? '';
    this.starts.push(runId);
    const ended = new Promise<Ending>((resolve) => this.#running.set(runId, resolve));
    this.most = Math.max(this.most, this.#running.size);
    if (!this.#holdsAll && !this.#held.has(runId)) this.#running.get(runId)?.('completed');
    const how = await ended;
    this.#running.delete(runId);
    if (how === 'failed') throw new Error(`${runId} was told to fail`);
  }
}

/** The id of a tick's run; `time` as ISO text. */
export function runIdOf(scheduleId: string, time: string): string {
  return `${scheduleId}@${Date.parse(time)}`;
}
