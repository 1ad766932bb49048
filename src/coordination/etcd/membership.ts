import type { Member } from './cluster-view.js';

export interface StandingOptions {
  /** A newcomer is given nothing that another holds until it was seen for so long, ms. */
  settle: number;
  /** An unfit instance is passed over after so long, ms, if another was fit for as long. */
  confirm: number;
}

/** Those that partitions are assigned to: at once, and once newcomers have settled. */
export interface Candidates {
  all: string[];
  settled: string[];
}

interface Seen {
  createRevision: number;
  since: number;
  unfitSince: number | undefined;
}

/**
 * What one instance remembers of the members that it saw, so that nothing moves for a moment's sake:
 *
 * - a **newcomer** settles first, for which it has to be fit; one that was there before us has;
 * - an **unfit** one is passed over when it stays so while another stays fit: a Redis that nobody reaches, and one that
 *   comes back to all within a moment, moves nothing;
 * - a **draining** one is passed over at once.
 */
export class Standing {
  readonly #seen = new Map<string, Seen>();
  #someFitSince: number | undefined;
  #now = 0;

  constructor(
    private readonly me: string,
    private readonly options: StandingOptions,
  ) {}

  /** Forgets everything: a new session begins. */
  reset(): void {
    this.#seen.clear();
    this.#someFitSince = undefined;
  }

  /** Takes note of a read of the members, at this monotonic instant (ms). */
  observe(members: readonly Member[], now: number): void {
    const before = this.#now;
    this.#now = now;
    const mine = members.find(({ instanceId }) => instanceId === this.me);
    const living = new Set(members.map(({ instanceId }) => instanceId));
    for (const instanceId of this.#seen.keys()) if (!living.has(instanceId)) this.#seen.delete(instanceId);
    for (const { instanceId, createRevision, fit } of members) {
      let seen = this.#seen.get(instanceId);
      if (seen?.createRevision !== createRevision) {
        const wasThere = mine !== undefined && createRevision < mine.createRevision;
        seen = { createRevision, since: wasThere ? now - this.options.settle : now, unfitSince: undefined };
        this.#seen.set(instanceId, seen);
      } else if (!fit && before - seen.since < this.options.settle) {
        seen.since = now;
      }
      seen.unfitSince = fit ? undefined : (seen.unfitSince ?? now);
    }
    const someFit = members.some(({ fit, draining }) => fit && !draining);
    this.#someFitSince = someFit ? (this.#someFitSince ?? now) : undefined;
  }

  /** Whom partitions go to, as of the last {@link observe}. */
  candidates(members: readonly Member[]): Candidates {
    const ready = members.filter(({ draining }) => !draining);
    const fit = ready.filter(({ instanceId }) => !this.#isPassedOver(instanceId));
    const all = (fit.length > 0 ? fit : ready).map(({ instanceId }) => instanceId).sort();
    return { all, settled: all.filter((instanceId) => this.settlesIn(instanceId) <= 0) };
  }

  /** ms until an instance has settled; 0 or less when it has. */
  settlesIn(instanceId: string): number {
    const since = this.#seen.get(instanceId)?.since ?? this.#now;
    return since + this.options.settle - this.#now;
  }

  #isPassedOver(instanceId: string): boolean {
    const unfitSince = this.#seen.get(instanceId)?.unfitSince;
    const from = this.#now - this.options.confirm;
    return (
      unfitSince !== undefined &&
      unfitSince <= from &&
      this.#someFitSince !== undefined &&
      this.#someFitSince <= from
    );
  }
}
