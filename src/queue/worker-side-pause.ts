import type { Redis } from 'ioredis';
import { BullQueue, type BullQueueOptions } from './bullmq.js';

/** BullMQ's own pause of a queue: workers fetch nothing of it. */
export class WorkerSidePause {
  constructor(
    private readonly client: Redis,
    private readonly prefix: string,
  ) {}

  async isPaused(queue: string): Promise<boolean> {
    return this.#with(queue, (bull) => bull.isPaused());
  }

  async pause(queue: string): Promise<void> {
    await this.#with(queue, (bull) => bull.pause());
  }

  async resume(queue: string): Promise<void> {
    await this.#with(queue, (bull) => bull.resume());
  }

  async #with<T>(name: string, use: (bull: BullQueue) => Promise<T>): Promise<T> {
    const connection = this.client as unknown as BullQueueOptions['connection'];
    const bull = new BullQueue(name, { connection, prefix: this.prefix, skipMetasUpdate: true });
    bull.on('error', () => undefined);
    try {
      return await use(bull);
    } finally {
      await bull.close();
    }
  }
}
