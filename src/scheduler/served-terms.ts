import { fenceOf, type Term } from '../coordination/coordinator.js';
import type { LeaderScripts, OwnedRange } from '../redis/leader-scripts.js';
import type { Logger } from '../support/logger.js';

interface Served {
  /** ms of Redis' clock. */
  servedFrom: number;
  /** Buckets whose fences are above the term, or of another epoch: not served. */
  refused: Set<number>;
}

/** ms that a take-over waits for a replica; what a failover takes back later is raised again. */
const REPLICA_WAIT = 200;
/** Refused buckets are asked for again after so many ms, for when their fences were adopted. */
const ASK_AGAIN = 5000;

/**
 * The terms that are served: each was taken over (its fences raised) before the first script that moves anything, and
 * each knows since when it is served without a break. A take-over is by the bucket: one whose fence refuses it is left
 * out, the others of its term are served.
 */
export class ServedTerms {
  readonly #served = new Map<Term, Served>();
  #askedAt = 0;

  constructor(
    private readonly scripts: LeaderScripts,
    private readonly logger: Logger,
    private readonly monotonic: () => number,
    /** Tells that fences refused a term. @returns whether it goes on with its other buckets. */
    private readonly refused: (term: Term, reason: string) => boolean,
  ) {}

  /** Takes over what is new, all in one call, and forgets what ended. */
  async follow(terms: readonly Term[]): Promise<void> {
    for (const term of this.#served.keys()) {
      if (!terms.includes(term)) this.#served.delete(term);
    }
    const due = terms.filter((term) => !this.#served.has(term));
    if (due.length > 0) await this.#takeOver(due);
    if (this.refusedBuckets().length > 0 && this.monotonic() - this.#askedAt > ASK_AGAIN)
      await this.#askAgain();
  }

  /** What scripts are given; only terms whose trust holds now. */
  owned(): OwnedRange[] {
    const ranges: OwnedRange[] = [];
    for (const [term, { servedFrom, refused }] of this.#served) {
      if (!term.isValid()) continue;
      const fence = fenceOf(term);
      let first = term.first;
      for (const bucket of [...refused].sort((a, b) => a - b)) {
        if (bucket > first) ranges.push({ first, last: bucket - 1, servedFrom, fence });
        first = bucket + 1;
      }
      if (first <= term.last) ranges.push({ first, last: term.last, servedFrom, fence });
    }
    return ranges;
  }

  /** Buckets of valid terms that are not served, because their fences are another's. */
  refusedBuckets(): number[] {
    return [...this.#served].flatMap(([term, { refused }]) => (term.isValid() ? [...refused] : []));
  }

  /** A script found the fences of some buckets above ours. */
  fenced(buckets: readonly number[]): void {
    for (const bucket of buckets) {
      const term = this.#termOf(bucket);
      if (term !== undefined) this.#refuse(term, [bucket]);
    }
  }

  /** The fences of some buckets lost their raise to a failover: they are raised again before the next script. */
  raiseAgain(buckets: readonly number[]): void {
    for (const bucket of buckets) {
      const term = this.#termOf(bucket);
      if (term !== undefined) this.#served.delete(term);
    }
  }

  /** Nothing was served for a while: each term begins anew with the next {@link follow}, and so does its `servedFrom`. */
  interrupted(): void {
    this.#served.clear();
  }

  async #takeOver(terms: readonly Term[]): Promise<void> {
    const ranges = terms.map(rangeOf);
    const reply = await this.scripts.takeOver(ranges);
    if (!(await this.scripts.awaitReplica(REPLICA_WAIT))) {
      this.logger.warn(
        'the fences are raised, but no replica has them yet: a failover now would take them back',
      );
    }
    // Timers beyond the heads' horizon were nobody's to show until now.
    await this.scripts.refreshHeads(ranges);
    const refused = new Set([...reply.otherEpoch, ...reply.fenced]);
    for (const term of terms) {
      // The trust may have ended while the calls were on their way.
      if (!term.isValid()) continue;
      this.#served.set(term, { servedFrom: reply.now, refused: new Set() });
      const mine = [...refused].filter((bucket) => bucket >= term.first && bucket <= term.last);
      if (mine.length > 0) this.#refuse(term, mine);
      else this.logger.info({ first: term.first, last: term.last, token: term.token }, 'took over');
    }
  }

  #refuse(term: Term, buckets: readonly number[]): void {
    const served = this.#served.get(term);
    // Of a term that has ended here nothing else is to be expected.
    if (served === undefined || !term.isValid()) return;
    this.#askedAt = this.monotonic();
    const news = buckets.filter((bucket) => !served.refused.has(bucket));
    if (news.length === 0) return;
    for (const bucket of news) served.refused.add(bucket);
    this.logger.error(
      { buckets: news, token: term.token },
      'the fences are above this term: another leads, or the coordination’s store was rebuilt (see `carillon fence adopt`)',
    );
    if (!this.refused(term, `the fence of bucket ${news[0]} is above its token`)) this.#served.delete(term);
  }

  async #askAgain(): Promise<void> {
    this.#askedAt = this.monotonic();
    const ranges: OwnedRange[] = [];
    for (const [term, { refused }] of this.#served) {
      if (!term.isValid()) continue;
      for (const bucket of refused) ranges.push({ ...rangeOf(term), first: bucket, last: bucket });
    }
    if (ranges.length === 0) return;
    const reply = await this.scripts.takeOver(ranges);
    const still = new Set([...reply.otherEpoch, ...reply.fenced]);
    // Those that yield begin with their whole term anew: they were not served until now.
    for (const { first } of ranges) {
      const term = still.has(first) ? undefined : this.#termOf(first);
      if (term !== undefined) this.#served.delete(term);
    }
  }

  #termOf(bucket: number): Term | undefined {
    for (const term of this.#served.keys()) if (bucket >= term.first && bucket <= term.last) return term;
    return undefined;
  }
}

function rangeOf(term: Term): OwnedRange {
  return { first: term.first, last: term.last, servedFrom: 0, fence: fenceOf(term) };
}
