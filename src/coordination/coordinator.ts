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
  /** Called when terms begin or end. */
  onChange(listener: () => void): void;
  /**
   * Called with Redis' clock in ms as it is heard of, also while standing by: whoever takes over must know what time it
   * was before.
   */
  onTime(listener: (now: number) => void): void;
  /** The scheduler's loop completed a fenced script at this monotonic instant: what feeds the lease (ms). */
  fed(at: number): void;
  /** Ends a term that a fence refused. */
  resign(term: Term, reason: string): void;
}
