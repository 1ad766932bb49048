import type { OwnedRange } from '../redis/leader-scripts.js';
import type { ParentScripts } from '../redis/parent-scripts.js';
import type { Logger } from '../support/logger.js';
import { RepeatedTask } from '../support/repeated-task.js';

/** ms between two rounds; most of them only compare a clock. */
const REST = 50;
/** At the latest while something is watched, ms. */
const QUIET_REST = 500;
/** While nothing is: that must cost nothing, ms. */
const IDLE_REST = 1000;
/** The longer no outcome came, the less often one is asked for: this part of the quiet time. */
const QUIET_PART = 1 / 16;
/** Parents looked at and children told in one call. */
const LIMIT = 100;
/** How long an outcome is kept for children that come later, ms. */
export const OUTCOME_KEEP = 3_600_000;

/**
 * Tells children what became of their parents. BullMQ itself writes down how a watched run ended, with any worker; here
 * that is read soon after runs were dispatched, less often the longer they run, and each bucket's part is decided by
 * its leader.
 */
export class ParentSweeper extends RepeatedTask {
  #nextAt = 0;
  #newsAt = 0;
  #open = 0;

  constructor(
    private readonly scripts: ParentScripts,
    private readonly owned: () => OwnedRange[],
    private readonly monotonic: () => number,
    private readonly log: Logger,
    private readonly keep = OUTCOME_KEEP,
  ) {
    super('parent sweeper', REST, log);
  }

  protected override async work(signal: AbortSignal): Promise<void> {
    if (this.monotonic() < this.#nextAt) return;
    for (;;) {
      const owned = this.owned();
      const now = this.monotonic();
      this.#nextAt = now + (owned.length === 0 ? QUIET_REST : IDLE_REST);
      if (owned.length === 0 || (await this.scripts.isQuiet())) return;
      const look = await this.scripts.look(owned, LIMIT, this.keep);
      for (const { child, what } of look.ended) this.log.warn({ child }, `a job does not run: ${what}`);
      if (look.looked > 0 || look.open !== this.#open) this.#newsAt = now;
      this.#open = look.open;
      if (look.more && !signal.aborted) continue;
      if (look.open > 0 || look.nextLook > 0) {
        this.#nextAt = now + Math.min(QUIET_REST, Math.max(REST, (now - this.#newsAt) * QUIET_PART));
      }
      return;
    }
  }
}
