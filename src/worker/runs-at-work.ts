import { isCarillonError } from '../domain/errors.js';
import { WaitingError } from '../queue/bullmq.js';
import type { Job } from '../queue/job.js';
import type { ClaimedRun, HeldRun, RunScripts } from '../redis/run-scripts.js';
import type { Logger } from '../support/logger.js';
import { pause } from '../support/pause.js';
import { Attempt, type Ending } from './attempt.js';
import { Lease } from './lease.js';
import { Run } from './run.js';
import { errorOfThrown } from './thrown.js';

/** Between tries to claim a run while Redis does not answer, ms. */
const CLAIM_AGAIN = 200;
/** How long a place of this worker rests whose run could not be claimed for another reason, ms: the next would not be either. */
const UNCLAIMED_REST = 5000;
/** A handler that was told of its time-out, or asked to cancel or pause, may take so long to stop, ms. */
const STOP_GRACE = 5000;

export interface RunsAtWorkOptions {
  queue: string;
  scripts: RunScripts;
  logger: Logger;
  monotonic: () => number;
  /** ms. */
  lockDuration: number;
  shutdownGrace: number;
  /** ms of an attempt by job name, and what the handler does; throws for a name without handler. */
  work: (run: Run, lock: string) => unknown;
  /** Ends by force what goes on although it was told to stop; undefined where nothing can. */
  kill: ((runId: string) => Promise<void>) | undefined;
  /** This worker has given a run back and renews its lock no more. */
  released: (runId: string) => void;
  /** Tells whoever listens to the worker of trouble that does not pass by itself. */
  onTrouble: (error: Error) => void;
  timeoutOf: (job: Job<unknown>) => number;
  /** Who claims, for whoever looks at the run. */
  worker: () => object;
}

interface AtWork {
  readonly held: HeldRun;
  readonly name: string;
  readonly attempt: Attempt;
  readonly lease: Lease;
}

/**
 * Every run that a worker has: claimed under a fencing token, told to stop when its lock, its time or somebody's order
 * says so, and given back in the way that fits.
 */
export class RunsAtWork {
  readonly #runs = new Map<string, AtWork>();
  /** Run id → job name of those that ended since the last look at them. */
  #ended = new Map<string, string>();
  readonly #leaving = new AbortController();
  /** A run that was being fetched when the worker began to drain goes back. */
  draining = false;

  constructor(private readonly options: RunsAtWorkOptions) {}

  list(): { runId: string; name: string }[] {
    return [...this.#runs].map(([runId, { name }]) => ({ runId, name }));
  }

  /** Those that are or were at work since the last call: one that blocks may have ended before anybody could look. */
  seen(): { runId: string; name: string }[] {
    const ended = [...this.#ended].map(([runId, name]) => ({ runId, name }));
    this.#ended = new Map();
    return [...ended, ...this.list()];
  }

  /** Redis confirmed the renewal of `runs`' locks, but for those `refused`; it was sent at `sentAt` (monotonic ms). */
  renewed(runs: readonly Omit<HeldRun, 'queue'>[], refused: readonly string[], sentAt: number): void {
    for (const { runId, lock } of runs) {
      const run = this.#runs.get(runId);
      // An answer that was under way may be about an earlier attempt.
      if (run?.held.lock !== lock) continue;
      if (refused.includes(runId)) run.lease.revoke();
      else run.lease.renewed(sentAt);
    }
  }

  /** This worker has fetched a run again that it still has: its attempt lost the lock, whatever its clock says. */
  lost(runId: string): void {
    this.#runs.get(runId)?.lease.revoke();
  }

  /** Somebody asked for a run; nothing happens when it is not here. */
  asked(runId: string, { verb, reason, at }: { verb: 'cancel' | 'pause'; reason: string; at: number }): void {
    this.#runs.get(runId)?.attempt.stop({ why: verb, reason, at });
  }

  /** Tells all to stop; each is given back at the latest when the grace has passed. */
  shutDown(): void {
    this.#leaving.abort();
    for (const { attempt } of this.#runs.values()) attempt.stop({ why: 'shutdown' });
  }

  get #shuttingDown(): boolean {
    return this.#leaving.signal.aborted;
  }

  /**
   * BullMQ's processor: does one attempt. What it returns completes the run, what it throws fails the attempt; a
   * WaitingError says that the run has left this worker already.
   */
  async process(job: Job<unknown>, lock: string, bullmq?: AbortSignal): Promise<unknown> {
    const { options } = this;
    const held = { queue: options.queue, runId: job.id ?? '', lock };
    const attempt = new Attempt();
    bullmq?.addEventListener('abort', () => attempt.abort(bullmq.reason), { once: true });
    const sentAt = options.monotonic();
    const lease = new Lease(
      {
        duration: options.lockDuration,
        monotonic: options.monotonic,
        onLost: () => attempt.stop({ why: 'stale' }),
      },
      sentAt,
    );
    this.#runs.set(held.runId, { held, name: job.name, attempt, lease });
    let timer: NodeJS.Timeout | undefined;
    try {
      const claimed = await this.#claim(job, held, lease);
      if (this.#shuttingDown || this.draining) attempt.stop({ why: 'shutdown' });
      if (claimed.asked) attempt.stop({ ...claimed.asked, why: claimed.asked.verb });
      if (attempt.stopped)
        return await this.#end(job, held, attempt, { how: 'threw', error: attempt.signal.reason });
      const { scripts } = options;
      const run = new Run({ job, held, claimed, lease, signal: attempt.signal, scripts });
      // From here on: a claim that had to wait for Redis must not cost an attempt.
      const limit = options.timeoutOf(job);
      if (limit > 0) timer = setTimeout(() => attempt.stop({ why: 'timeout', after: limit }), limit);
      let ending = await attempt.run(
        () => options.work(run, lock),
        () => (this.#shuttingDown ? options.shutdownGrace : STOP_GRACE),
      );
      if (ending.how === 'ignored' && options.kill !== undefined) {
        await options.kill(held.runId);
        ending = { how: 'threw', error: attempt.signal.reason };
      }
      return await this.#end(job, held, attempt, ending);
    } finally {
      clearTimeout(timer);
      lease.end();
      this.#runs.delete(held.runId);
      this.#ended.set(held.runId, job.name);
    }
  }

  /** Until Redis answers or the lock has ended: a connection that breaks must not cost an attempt. */
  async #claim(job: Job<unknown>, held: HeldRun, lease: Lease): Promise<ClaimedRun> {
    const { scripts, lockDuration, monotonic, worker, logger } = this.options;
    const began = monotonic();
    for (;;) {
      const sentAt = monotonic();
      try {
        const claimed = await scripts.claim(held, lockDuration, worker());
        lease.renewed(sentAt);
        return claimed;
      } catch (error) {
        if (isCarillonError(error, 'STALE_RUN')) lease.revoke();
        // Nobody waits for Redis while the worker shuts down.
        if (!lease.isValid || this.#shuttingDown) {
          logger.warn(
            { run: held.runId, error: String(error) },
            'a run was not claimed; it is handed on when its lock ends',
          );
          throw new WaitingError();
        }
        // Renewals come through and claims do not: that is no broken connection.
        const isLasting = monotonic() - began > lockDuration;
        if (isLasting || !(isCarillonError(error) && error.retryable)) {
          return await this.#unclaimable(job, held, lease, error);
        }
        await pause(Math.min(CLAIM_AGAIN, lease.left), new AbortController().signal);
      }
    }
  }

  /** Another worker may be able to: the run goes back at once, and this worker does not take it again at once. */
  async #unclaimable(job: Job<unknown>, held: HeldRun, lease: Lease, cause: unknown): Promise<never> {
    const { logger, released, onTrouble } = this.options;
    const trouble = cause instanceof Error ? cause : new Error(String(cause));
    logger.error({ run: held.runId, error: trouble.message }, 'a run cannot be claimed; it is handed back');
    onTrouble(trouble);
    lease.end();
    await this.#giveBack(job, held);
    released(held.runId);
    await pause(UNCLAIMED_REST, this.#leaving.signal);
    throw new WaitingError();
  }

  async #end(job: Job<unknown>, held: HeldRun, attempt: Attempt, ending: Ending): Promise<unknown> {
    const stopped = attempt.stopped;
    if (ending.how === 'returned') {
      // It has completed: whoever sends it anew does not mean this order.
      if (stopped !== undefined) await this.options.scripts.dropOrder(held).catch(() => undefined);
      return ending.result;
    }
    if (stopped === undefined) throw errorOfThrown((ending as { error: unknown }).error);
    if (ending.how === 'ignored') {
      this.options.logger.error(
        { run: held.runId, job: job.name, why: stopped.why },
        'a handler goes on although its signal was aborted: what it does from now on may be done twice',
      );
    }
    if (stopped.why === 'timeout') throw attempt.signal.reason;
    // The order of things: whoever was told to stop and throws has stopped for that. A lock that is not trusted here may
    // stand in Redis yet: the run is handed back then and no attempt used, but not while its handler goes on.
    if (stopped.why === 'stale' && ending.how === 'ignored') throw new WaitingError();
    await this.#giveBack(job, held);
    throw new WaitingError();
  }

  /** As the order says that stands now, which may be newer than what it stopped for; without one to the next worker. */
  async #giveBack(job: Job<unknown>, held: HeldRun): Promise<void> {
    const { scripts, logger } = this.options;
    try {
      // Where our scripts cannot run at all BullMQ's still may; an order stays for whoever claims the run next.
      const left = await scripts.leave(held).catch((error) => {
        if (isCarillonError(error) && error.retryable) throw error;
        return false;
      });
      if (!left) await job.moveToWait(held.lock);
    } catch (error) {
      // Its lock ends by itself; another worker has it then, and BullMQ counts it as stalled.
      logger.warn(
        { run: held.runId, error: String(error) },
        'a run could not be given back; it is handed on when its lock ends',
      );
    }
  }
}
