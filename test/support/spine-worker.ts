import { Worker, type WorkerOptions } from 'bullmq';
import { onTestFinished } from 'vitest';
import { eventually } from './eventually.js';
import type { Spine } from './spine.js';

/** A stock BullMQ worker that counts the starts of each run. Closes with the test. */
export class CountingWorker {
  /** Run id → starts. */
  readonly starts = new Map<string, number>();

  static async start(
    spine: Spine,
    queue: string,
    options: Partial<WorkerOptions> = {},
  ): Promise<CountingWorker> {
    const counting = new CountingWorker();
    const { hostname, port } = new URL(spine.url);
    const worker = new Worker(
      queue,
      async (job) => {
        const id = job.id ?? '';
        counting.starts.set(id, (counting.starts.get(id) ?? 0) + 1);
      },
      {
        prefix: spine.prefix,
        concurrency: 100,
        connection: { host: hostname, port: Number(port) },
        ...options,
      },
    );
    worker.on('error', () => undefined);
    onTestFinished(() => worker.close());
    await worker.waitUntilReady();
    return counting;
  }

  /** Resolves when `count` different runs have started. */
  async ran(count: number, timeout = 60_000): Promise<void> {
    await eventually(() => this.starts.size >= count, { timeout });
  }

  /** Ids that started more than once. */
  get doubled(): string[] {
    return [...this.starts].filter(([, starts]) => starts > 1).map(([id]) => id);
  }
}
