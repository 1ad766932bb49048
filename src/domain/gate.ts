/** The limits of a queue's gate as they are stored; lua/lib/gate.lua reads the same. Times in ms. */
export interface GateLimits {
  /** Runs in `duration`. */
  max?: number;
  duration?: number;
  /** Runs that may go at once after a quiet time. */
  burst?: number;
  /** Runs in BullMQ's wait and prioritized lists above which nothing more is put there. */
  maxWaiting?: number;
  /** The same as `max` for each tenant. */
  groupMax?: number;
  groupDuration?: number;
  groupBurst?: number;
  /** How much earlier a run must be due to go before one of the next better priority. */
  ageing?: number;
  /** The priority by which a run without one is ordered. */
  unmarked?: number;
  /** Nothing is dispatched. */
  hold?: boolean;
  note?: string;
  /** Since when it is on hold. */
  since?: number;
  /** Of the hold of everything: the queues whose workers it paused. */
  paused?: string[];
}

/** As many runs as go in a second, at least one, may go at once unless it is said otherwise. */
export function defaultBurst(max: number, duration: number): number {
  return Math.max(1, Math.ceil((max * Math.min(1000, duration)) / duration));
}
