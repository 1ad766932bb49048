import type { Redis } from 'ioredis';
import type { RunScripts } from '../redis/run-scripts.js';
import type { Logger } from '../support/logger.js';
import { RepeatedTask } from '../support/repeated-task.js';
import type { RunsAtWork } from './runs-at-work.js';

/** ms between looks; a hint on the channel brings one at once. */
const EVERY = 800;

/** Brings the orders of other processes (cancel, pause) to the runs at work here. */
export class OrderWatch extends RepeatedTask {
  constructor(
    private readonly queue: string,
    private readonly scripts: RunScripts,
    private readonly subscriber: Redis,
    private readonly runs: RunsAtWork,
    private readonly onDrain: (worker: string) => void,
    private readonly log: Logger,
  ) {
    super('order watch', EVERY, log);
  }

  protected override async onStart(signal: AbortSignal): Promise<void> {
    this.subscriber.on('message', this.#heard);
    // A hint only: what it cannot bring, the next look does.
    await this.subscriber
      .subscribe(this.scripts.shard.keys.runs)
      .catch((error: unknown) =>
        this.log.warn({ error: String(error) }, 'orders are found by looking alone'),
      );
    await super.onStart(signal);
  }

  protected override async onStop(): Promise<void> {
    this.subscriber.off('message', this.#heard);
    await super.onStop();
  }

  protected override async work(): Promise<void> {
    await this.#look(this.runs.list().map(({ runId }) => runId));
  }

  async #look(runIds: readonly string[]): Promise<void> {
    const asked = await this.scripts.asked(runIds.map((runId) => ({ queue: this.queue, runId })));
    asked.forEach((order, index) => {
      if (order) this.runs.asked(runIds[index] as string, order);
    });
  }

  readonly #heard = (_channel: string, message: string): void => {
    let hint: { queue?: unknown; runId?: unknown; drain?: unknown };
    try {
      hint = JSON.parse(message) as typeof hint;
    } catch {
      return;
    }
    if (typeof hint.drain === 'string') this.onDrain(hint.drain);
    if (hint.queue !== this.queue || typeof hint.runId !== 'string') return;
    const runId = hint.runId;
    if (!this.runs.list().some((run) => run.runId === runId)) return;
    this.#look([runId]).catch((error: unknown) =>
      this.log.debug({ run: runId }, `an order was not read: ${String(error)}`),
    );
  };
}
