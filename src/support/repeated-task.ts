import type { Logger } from './logger.js';
import { pause } from './pause.js';
import { Service } from './service.js';

/** A slow loop beside dispatch: works, rests, and survives what its work throws. */
export abstract class RepeatedTask extends Service {
  #loop: Promise<void> = Promise.resolve();

  constructor(
    private readonly title: string,
    /** ms between the end of one round and the start of the next. */
    private readonly rest: number,
    private readonly logger: Logger,
  ) {
    super();
  }

  protected abstract work(signal: AbortSignal): Promise<void>;

  protected override async onStart(signal: AbortSignal): Promise<void> {
    this.#loop = this.#run(signal);
  }

  protected override async onStop(): Promise<void> {
    await this.#loop;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await this.work(signal);
      } catch (error) {
        // The next round tries again; the shard loop is the one that judges Redis.
        const text = error instanceof Error ? error.message : String(error);
        if (!signal.aborted) this.logger.warn({ task: this.title }, `a round failed: ${text}`);
      }
      await pause(this.rest, signal);
    }
  }
}
