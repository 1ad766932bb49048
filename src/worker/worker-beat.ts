import type { WorkerFacts, WorkerRegistry } from '../redis/worker-registry.js';
import type { Logger } from '../support/logger.js';
import { RepeatedTask } from '../support/repeated-task.js';

/** ms between beats. */
const EVERY = 5000;

/** Tells that this worker lives, and hears whether it is to drain. */
export class WorkerBeat extends RepeatedTask {
  constructor(
    private readonly registry: WorkerRegistry,
    private readonly facts: () => WorkerFacts,
    private readonly onDrain: (note: string | undefined) => void,
    logger: Logger,
  ) {
    super('worker beat', EVERY, logger);
  }

  /** One beat now: after a hint, before the next is due. */
  async beat(): Promise<void> {
    const { drain } = await this.registry.beat(this.facts());
    this.onDrain(drain?.note);
  }

  protected override work(): Promise<void> {
    return this.beat();
  }

  protected override async onStop(): Promise<void> {
    await super.onStop();
    // It would be forgotten anyway.
    await this.registry.beat(this.facts(), true).catch(() => undefined);
  }
}
