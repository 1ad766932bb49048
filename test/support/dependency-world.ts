import { type FlowJob, FlowProducer, Queue as StockQueue, Worker } from 'bullmq';
import { onTestFinished } from 'vitest';
import { Admin, Queue, type QueueOptions, Scheduler } from '../../src/index.js';
import { onCleanup } from './cleanup.js';
import { namespaceFor, sharedRedisUrl } from './namespace.js';

/** A prefix of its own, with queues, stock workers, and a scheduler when one is asked for. */
export class DependencyWorld {
  readonly prefix: string;
  /** `<queue>:<job>` in the order in which handlers started. */
  readonly started: string[] = [];
  readonly #queues = new Map<string, Queue>();

  constructor(task: { name: string }) {
    this.prefix = namespaceFor(task);
  }

  queue(name = 'q', options: QueueOptions = {}): Queue {
    let queue = this.#queues.get(name);
    if (queue === undefined) {
      queue = new Queue(name, { connection: sharedRedisUrl(), prefix: this.prefix, ...options });
      const opened = queue;
      onCleanup(`queue ${name}`, () => opened.close());
      this.#queues.set(name, queue);
    }
    return queue;
  }

  async scheduler(): Promise<Scheduler> {
    const scheduler = new Scheduler({ redis: sharedRedisUrl(), prefix: this.prefix });
    onTestFinished(() => scheduler.stop());
    await scheduler.start();
    return scheduler;
  }

  /** Fails each job whose data says so. */
  async worker(...names: string[]): Promise<void> {
    for (const name of names.length === 0 ? ['q'] : names) {
      const { hostname, port } = new URL(sharedRedisUrl());
      const worker = new Worker(
        name,
        async (job) => {
          this.started.push(`${name}:${job.id}`);
          if (job.data?.fails) throw new Error('as told');
          return { done: job.id };
        },
        { prefix: this.prefix, concurrency: 20, connection: { host: hostname, port: Number(port) } },
      );
      worker.on('error', () => undefined);
      onTestFinished(() => worker.close());
      await worker.waitUntilReady();
    }
  }

  /** BullMQ's own queue of the same name. */
  stock(name = 'q'): StockQueue {
    const { hostname, port } = new URL(sharedRedisUrl());
    const stock = new StockQueue(name, {
      prefix: this.prefix,
      connection: { host: hostname, port: Number(port) },
    });
    onCleanup(`stock queue ${name}`, () => stock.close());
    return stock;
  }

  /** A flow of BullMQ's own. */
  async flow(
    flow: FlowJob,
  ): Promise<{ node: string; children: { job: { id?: string | undefined } }[] | undefined }> {
    const { hostname, port } = new URL(sharedRedisUrl());
    const producer = new FlowProducer({
      prefix: this.prefix,
      connection: { host: hostname, port: Number(port) },
    });
    onCleanup('flow producer', () => producer.close());
    const { job, children } = await producer.add(flow);
    return { node: job.id ?? '', children };
  }

  admin(): Admin {
    const admin = new Admin({ connection: sharedRedisUrl(), prefix: this.prefix });
    onCleanup('admin', () => admin.close());
    return admin;
  }

  /** The newest end of a job that BullMQ does not know: what and why. */
  async fate(jobId: string, queue = 'q'): Promise<string | undefined> {
    const [entry] = await this.admin().history({ queue, jobId });
    return entry && `${entry.what}: ${entry.reason}`;
  }

  async stateOf(jobId: string, queue = 'q'): Promise<string | undefined> {
    return (await this.queue(queue).backend.scripts.get(queue, jobId)).record?.state;
  }
}
