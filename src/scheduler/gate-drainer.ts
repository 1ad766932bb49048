import { BUCKETS, bucketOf } from '../domain/buckets.js';
import type { GateScripts } from '../redis/gate-scripts.js';
import type { LeaderScripts, OwnedRange } from '../redis/leader-scripts.js';
import type { Logger } from '../support/logger.js';
import { pause } from '../support/pause.js';
import { Service } from '../support/service.js';
import { BatchSize } from './batch-size.js';
import type { DispatchReport } from './dispatch-report.js';

const MAX_BYTES = 1_000_000;
/** Gates that have a turn in one round. */
const GATES = 200;
/** ms between two looks: while something is held, while gates are set, and while there are none: that must cost nothing. */
const REST = { held: 20, set: 100, none: 1000 };
/** ms between two looks at whether it leads. */
const STAND_BY = 500;
const RETRY = 1000;
/** Parked schedules moved in one call. */
const UNPARK = 200;

/**
 * Drains the gates of the queues whose buckets are led here, each under its bucket's fence, and lets schedules go on
 * that were parked while their queue was on hold. The limits themselves are kept by the script, so that two that
 * drain one gate keep them as well.
 */
export class GateDrainer extends Service {
  readonly #batch = new BatchSize();
  #loop: Promise<void> = Promise.resolve();

  constructor(
    private readonly scripts: GateScripts,
    private readonly leader: LeaderScripts,
    private readonly owned: () => OwnedRange[],
    private readonly report: DispatchReport,
    private readonly logger: Logger,
  ) {
    super();
  }

  protected override async onStart(signal: AbortSignal): Promise<void> {
    this.#loop = this.#run(signal);
  }

  protected override async onStop(): Promise<void> {
    await this.#loop;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        await pause(await this.#round(signal), signal);
      } catch (error) {
        // The shard loop is the one that judges Redis; what is held stays held.
        const text = error instanceof Error ? error.message : String(error);
        if (!signal.aborted) this.logger.warn(`the gates were not drained: ${text}`);
        await pause(RETRY, signal);
      }
    }
  }

  /** @returns ms to rest */
  async #round(signal: AbortSignal): Promise<number> {
    const owned = this.owned();
    if (owned.length === 0) return STAND_BY;
    if (await this.scripts.isQuiet()) return REST.none;
    const { now, due, next, released, gates } = await this.scripts.due(GATES);
    for (const queue of released) await this.#unpark(queue, signal);
    let rest = next > 0 ? Math.min(REST.set, Math.max(1, next - now)) : gates > 0 ? REST.set : REST.none;
    for (const queue of due) {
      const bucket = bucketOf(queue);
      if (signal.aborted) return 0;
      if (!this.owned().some(({ first, last }) => bucket >= first && bucket <= last)) continue;
      const limits = { limit: this.#batch.limit, bytes: MAX_BYTES };
      const drained = await this.scripts.drain(this.owned(), queue, bucket, limits);
      if (drained === undefined) continue;
      this.#batch.took(drained.took, drained.moved);
      this.report.drained(drained);
      if (drained.next > 0) rest = Math.min(rest, Math.max(drained.next - drained.now, 0), REST.held);
      // Workers of the queue fetch meanwhile.
      if (drained.working && drained.moved > 0) await pause(Math.ceil(drained.took / 2), signal);
    }
    return rest;
  }

  async #unpark(queue: string, signal: AbortSignal): Promise<void> {
    let from = { bucket: 0, offset: 0 };
    while (from.bucket < BUCKETS && !signal.aborted) {
      const reply = await this.leader.unparkQueue(this.owned(), queue, from, UNPARK);
      if ('broken' in reply) return;
      from = reply.next;
    }
  }
}
