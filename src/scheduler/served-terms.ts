import { fenceOf, type Term } from '../coordination/coordinator.js';
import type { LeaderScripts, OwnedRange } from '../redis/leader-scripts.js';
import type { Logger } from '../support/logger.js';

/**
 * The terms that are served: each was taken over (its fences raised) before the first script that moves anything, and
 * each knows since when it is served without a break.
 */
export class ServedTerms {
  readonly #served = new Map<Term, { servedFrom: number }>();

  constructor(
    private readonly scripts: LeaderScripts,
    private readonly logger: Logger,
  ) {}

  /** Takes over what is new, forgets what ended. @returns the terms whose fences refused us. */
  async follow(terms: readonly Term[]): Promise<Term[]> {
    for (const term of this.#served.keys()) {
      if (!terms.includes(term)) this.#served.delete(term);
    }
    const refused: Term[] = [];
    for (const term of terms) {
      if (this.#served.has(term)) continue;
      const range = { first: term.first, last: term.last, servedFrom: 0, fence: fenceOf(term) };
      const reply = await this.scripts.takeOver([range]);
      if (reply.otherEpoch.length > 0 || reply.fenced.length > 0) {
        this.logger.error(
          { buckets: [...reply.otherEpoch, ...reply.fenced], token: term.token },
          'the fences are above this term: another leads, or the coordination’s store was rebuilt (see fence adopt)',
        );
        refused.push(term);
        continue;
      }
      // Timers beyond the heads' horizon were nobody's to show until now.
      await this.scripts.refreshHeads([range]);
      // The trust may have ended while the calls were on their way.
      if (!term.isValid()) continue;
      this.#served.set(term, { servedFrom: reply.now });
      this.logger.info({ first: term.first, last: term.last, token: term.token }, 'took over');
    }
    return refused;
  }

  /** What scripts are given; only terms whose trust holds now. */
  owned(): OwnedRange[] {
    const ranges: OwnedRange[] = [];
    for (const [term, { servedFrom }] of this.#served) {
      if (term.isValid())
        ranges.push({ first: term.first, last: term.last, servedFrom, fence: fenceOf(term) });
    }
    return ranges;
  }

  /** The served term that holds a bucket. */
  termOf(bucket: number): Term | undefined {
    for (const term of this.#served.keys()) if (bucket >= term.first && bucket <= term.last) return term;
    return undefined;
  }

  /** The fences of some buckets lost their raise to a failover: they are raised again before the next script. */
  raiseAgain(buckets: readonly number[]): void {
    for (const bucket of buckets) {
      const term = this.termOf(bucket);
      if (term !== undefined) this.#served.delete(term);
    }
  }

  /** Nothing was served for a while: each term begins anew with the next {@link follow}, and so does its `servedFrom`. */
  interrupted(): void {
    this.#served.clear();
  }
}
