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
  /** Nothing is dispatched until it is released. */
  hold?: boolean;
  /** Why it is on hold. */
  note?: string;
  /** Since when it is on hold. */
  since?: number;
  /** The queue is paused: nothing is dispatched, and workers fetch nothing. Apart from a hold. */
  paused?: boolean;
  /** Why it is paused. */
  pauseNote?: string;
  pausedSince?: number;
  /** Its workers were paused with everything, and go on with everything. */
  pausedWithAll?: boolean;
}

/** As many runs as go in a second, at least one, may go at once unless it is said otherwise. */
export function defaultBurst(max: number, duration: number): number {
  return Math.max(1, Math.ceil((max * Math.min(1000, duration)) / duration));
}

/** Why nothing of a queue goes on, and since when, ms. */
export interface QueueStop {
  since: number;
  note?: string;
  /** With everything, not by itself. */
  everything?: true;
}

/** The hold and the pause of a queue, of its own or with everything. */
export function stopsOf(
  own: GateLimits = {},
  everything: GateLimits = {},
): { hold: QueueStop | undefined; pause: QueueStop | undefined } {
  const pause = pauseOf(own) ?? pauseOf(everything);
  return {
    hold: own.hold ? stop(own.since, own.note) : undefined,
    pause: pause && !own.paused ? { ...pause, everything: true } : pause,
  };
}

function pauseOf({ paused, pausedSince, pauseNote }: GateLimits): QueueStop | undefined {
  return paused ? stop(pausedSince, pauseNote) : undefined;
}

function stop(since = 0, note?: string): QueueStop {
  return { since, ...(note === undefined ? {} : { note }) };
}
