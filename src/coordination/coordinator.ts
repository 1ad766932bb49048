/**
 * Who leads which buckets. etcd or Redis say who should lead; the fences in Redis say who does, and the local deadline
 * says how long this process may believe it without asking.
 */

/** One unbroken leadership of a contiguous range of buckets. */
export interface Term {
  readonly first: number;
  readonly last: number;
  /** `<epoch number>|<epoch id>`: what the token is ordered within. */
  readonly epoch: string;
  readonly token: number;
  readonly holder: string;
  /** Read before each action, never cached: false from the moment that the term's trust ends. */
  isValid(): boolean;
}

/** The fence text of a term, as the scripts compare it. */
export function fenceOf(term: Term): string {
  return `${term.epoch}|${term.token}|${term.holder}`;
}

export interface Coordinator {
  start(): Promise<void>;
  /** Gives every term back, so that another takes over at once. */
  stop(): Promise<void>;
  /** The terms whose trust holds now. */
  terms(): readonly Term[];
  /** What keeps this instance from taking part, as a sentence; undefined when nothing does. */
  trouble(): string | undefined;
  /** Called when terms begin or end. */
  onChange(listener: () => void): void;
  /**
   * Called with Redis' clock in ms as it is heard of, also while standing by: whoever takes over must know what time it
   * was before.
   */
  onTime(listener: (now: number) => void): void;
  /** Waited for after a term ended here and before another instance may have it: what is under way should be done. */
  onHandOver(rest: () => Promise<void>): void;
  /** A script of the scheduler's loop completed that was sent at this monotonic instant (ms): what feeds the lease. */
  fed(at: number): void;
  /** Fences of some buckets of a term are above it. @returns whether the term goes on with its other buckets. */
  refused(term: Term, reason: string): boolean;
}
