import type { Coordinator } from '../coordination/coordinator.js';
import { isCarillonError } from '../domain/errors.js';
import type { LeaderScripts, OwnedRange, PopResult } from '../redis/leader-scripts.js';
import { serverWord } from '../redis/status.js';
import type { Logger } from '../support/logger.js';
import { pause } from '../support/pause.js';
import { Service } from '../support/service.js';
import { BatchSize } from './batch-size.js';
import { ClockWatch } from './clock-watch.js';
import type { DispatchReport } from './dispatch-report.js';
import { MemoryHeadroom } from './memory-headroom.js';
import type { Planner } from './planner.js';
import { ServedTerms } from './served-terms.js';
import { Sleeper } from './sleeper.js';

const MAX_BYTES = 1_000_000;
/** Bounds of the back-off after a failed call, ms. */
const RETRY_MIN = 100;
const RETRY_MAX = 1000;
/** All owned fences are read this often while dispatch never rests, ms; each bucket's own is read with its records. */
const PROVE_EVERY = 500;
/**
 * Planning gets a turn this often while dispatch never rests, ms: a few schedules of every second keep up. A herd of
 * schedules, whose turns take long, has a hundredth of the time until it is dispatched, and a turn every 2 s at least.
 */
const PLAN_TURN = 500;
const PLAN_TURN_MAX = 2000;
const PLAN_SHARE = 0.01;
/** For so long after a dispatch planning rests as long as it works, ms: workers have those runs to fetch. */
const YIELD = 5000;
/**
 * Of the time that a pop held Redis, so much is left to workers before the next one, while they have runs: without it
 * they starve in a herd, and Redis idles after it. Measured with a stock worker: the herd's end comes 10 % sooner.
 */
const SHARE_OF_WORKERS = 0.5;
/** No good pop for so much longer than the poll is a break in serving: ticks of that time are missed, not late (ms). */
const BREAK = 5000;
/** What Redis refuses to everybody: another leader could do no better, so the leadership is kept. */
const REFUSED_TO_ALL: readonly (string | undefined)[] = ['OOM', 'MISCONF', 'NOREPLICAS'];

export interface ShardLoopOptions {
  scripts: LeaderScripts;
  coordinator: Coordinator;
  planner: Planner;
  report: DispatchReport;
  logger: Logger;
  monotonic: () => number;
  wall: () => number;
  /** The scripts' clock is a test kit's, which leaps as it likes. */
  clockLeaps: boolean;
  /** ms */
  poll: number;
  /** Bytes of records that may still be dispatched above maxmemory. */
  headroom: number;
}

/**
 * One shard's loop: take over what is led, pop what is due, plan in the quiet, sleep until the next head.
 *
 * - **standing by** (no valid term): waits for the coordinator.
 * - **serving**: pops until nothing is due, gives the planner its turns, sleeps; a hint or a new term wakes it.
 * - **held** (Redis refuses or does not answer, its clock leapt, its memory is full): records stay due, calls are tried
 *   with back-off, and `report` says why; the first good call ends it.
 */
export class ShardLoop extends Service {
  readonly #options: ShardLoopOptions;
  readonly #served: ServedTerms;
  readonly #sleeper: Sleeper;
  readonly #batch = new BatchSize();
  readonly #clock: ClockWatch;
  readonly #headroom: MemoryHeadroom;
  #loop: Promise<void> = Promise.resolve();
  /** Settles with the turn under way; never rejects. */
  #turnEnds: Promise<unknown> = Promise.resolve();
  #retry = 0;
  /** The last pop found something, so that another follows at once. */
  #busy = false;
  /** The last good pop, by both clocks: the monotonic one stands still while the machine is suspended. */
  #goodAt = { monotonic: 0, wall: 0 };
  /** ms of Redis that are left to workers before the next pop. */
  #leave = 0;
  #plannedAt = 0;
  /** ms from a turn of planning to the next while dispatch never rests. */
  #planTurn = PLAN_TURN;
  #planFrom = 0;
  #dispatchedAt = Number.NEGATIVE_INFINITY;
  #provedAt = Number.NEGATIVE_INFINITY;

  constructor(options: ShardLoopOptions) {
    super();
    this.#options = options;
    this.#served = new ServedTerms(options.scripts, options.logger, options.monotonic, (term, reason) =>
      options.coordinator.refused(term, reason),
    );
    this.#sleeper = new Sleeper(options.monotonic, options.poll);
    this.#clock = new ClockWatch(options.monotonic, options.wall);
    this.#headroom = new MemoryHeadroom(options.headroom);
    options.coordinator.onChange(() => this.#sleeper.wake());
    options.coordinator.onTime((now) => this.#clock.heard(now, this.#clock.instant()));
    options.coordinator.onHandOver(async () => void (await this.#turnEnds));
  }

  /** A submit stored a job due at `at` (ms of Redis' clock). */
  hint(at: number): void {
    this.#sleeper.hint(at);
  }

  /** The ranges that are served now; for the slower services of the shard. */
  owned(): OwnedRange[] {
    return this.#served.owned();
  }

  /** Redis' clock in ms, as far as known; 0 before the first reply. */
  redisNow(): number {
    return this.#sleeper.redisNow();
  }

  protected override async onStart(signal: AbortSignal): Promise<void> {
    this.#isServing();
    this.#loop = this.#run(signal);
  }

  protected override async onStop(): Promise<void> {
    await this.#loop;
  }

  async #run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        const turn = this.#turn();
        this.#turnEnds = turn.catch(() => undefined);
        const busy = await turn;
        this.#retry = 0;
        if (!busy) await this.#sleeper.sleep(signal);
        else if (this.#leave > 0) await pause(this.#leave, signal);
      } catch (error) {
        this.#failed(error);
        await pause(this.#retry, signal);
      }
    }
  }

  /** One round. True when there may be more to do at once. */
  async #turn(): Promise<boolean> {
    const { coordinator, report, planner, scripts, monotonic } = this.#options;
    const terms = coordinator.terms();
    if (this.#unservedFor() > this.#options.poll + BREAK) this.#served.interrupted();
    await this.#served.follow(terms);
    report.refused(this.#served.refusedBuckets());
    const owned = this.#served.owned();
    report.leading(owned.length > 0);
    if (owned.length === 0) {
      await this.#probe();
      this.#isServing();
      // A hint of the term that ended is for whoever leads now; kept, it would end every sleep at once.
      this.#sleeper.sending();
      this.#sleeper.replied(this.#sleeper.redisNow() || 1, 0);
      return false;
    }
    // In a herd all buckets may have something to plan: they are asked for when there is time to.
    const planning = !this.#busy || monotonic() - this.#plannedAt > this.#planTurn;
    const popped = await this.#pop(owned, planning);
    if (popped === undefined) return false;
    const rested = popped.taken === 0 && popped.trouble.length === 0;
    this.#busy = !rested;
    const now = monotonic();
    if (popped.popped > 0) this.#dispatchedAt = now;
    if (popped.planned.length === 0) return !rested || !planning;
    if (rested ? now >= this.#planFrom : now - this.#plannedAt > this.#planTurn) {
      this.#plannedAt = now;
      const more = await planner.plan(scripts, this.#served.owned(), popped.planned);
      const worked = monotonic() - now;
      this.#planTurn = Math.min(PLAN_TURN_MAX, Math.max(PLAN_TURN, worked / PLAN_SHARE));
      this.#planFrom = now - this.#dispatchedAt < YIELD ? now + 2 * worked : now;
      return more || !rested;
    }
    this.#sleeper.hint(this.#sleeper.redisNow() + this.#planFrom - now);
    return !rested;
  }

  /** One read proves every owned bucket; in a herd it would be read with each batch. */
  #provesNow(now: number): boolean {
    const due = now - this.#provedAt >= PROVE_EVERY;
    if (due) this.#provedAt = now;
    return due;
  }

  async #pop(owned: OwnedRange[], planning: boolean): Promise<PopResult | undefined> {
    const { scripts, report, coordinator } = this.#options;
    const askedAt = this.#clock.instant();
    const sentAt = askedAt.monotonic;
    this.#sleeper.sending();
    const reply = await scripts.popDue(owned, {
      limit: this.#batch.limit,
      bytes: MAX_BYTES,
      prove: this.#provesNow(sentAt),
      planning,
      headroom: this.#headroom.inUse,
      latest: this.#options.clockLeaps ? 0 : this.#clock.latest(),
    });
    if ('clockJumpedTo' in reply) {
      this.#clock.jumped();
      if (report.held('CLOCK_JUMP', 'Redis’ clock leapt forward')) {
        this.#options.logger.error(
          { to: reply.clockJumpedTo },
          'Redis’ clock leapt forward: dispatch is held for up to a minute',
        );
      }
      coordinator.fed(sentAt);
      this.#sleeper.replied(this.#sleeper.redisNow(), 0);
      return undefined;
    }
    this.#clock.saw(reply.now, askedAt);
    this.#isServing();
    coordinator.fed(sentAt);
    this.#batch.took(reply.took, reply.taken);
    this.#headroom.used(reply.bytes);
    this.#leave = reply.working ? Math.ceil(reply.took * SHARE_OF_WORKERS) : 0;
    this.#sleeper.replied(reply.now + reply.past, reply.nextHead);
    report.popped(reply);
    this.#served.fenced(reply.fenced);
    this.#served.raiseAgain(reply.lower);
    return reply;
  }

  /** Leading nothing, it still proves that it gets through, and hears what time it is before it takes over. */
  async #probe(): Promise<void> {
    const { scripts, coordinator, report } = this.#options;
    const askedAt = this.#clock.instant();
    const { now } = await scripts.takeOver([]);
    if (!this.#options.clockLeaps) this.#clock.heard(now, askedAt);
    coordinator.fed(askedAt.monotonic);
    report.reached();
  }

  #isServing(): void {
    this.#goodAt = { monotonic: this.#options.monotonic(), wall: this.#options.wall() };
  }

  #unservedFor(): number {
    const { monotonic, wall } = this.#options;
    return Math.max(monotonic() - this.#goodAt.monotonic, wall() - this.#goodAt.wall);
  }

  #failed(error: unknown): void {
    const { report, logger, coordinator, monotonic } = this.#options;
    const word = isCarillonError(error, 'OUT_OF_MEMORY')
      ? 'OOM'
      : serverWord((error as { cause?: unknown }).cause);
    const text = error instanceof Error ? error.message : String(error);
    if (REFUSED_TO_ALL.includes(word)) coordinator.fed(monotonic());
    if (word === 'OOM' && this.#headroom.refused()) {
      this.#retry = 0;
      return;
    }
    const reason = word === 'OOM' ? 'OOM_HELD' : (word ?? (isCarillonError(error) ? error.code : 'ERROR'));
    if (report.held(reason, text)) logger.error({ reason }, `dispatch is held: ${text}`);
    this.#retry = Math.min(RETRY_MAX, Math.max(RETRY_MIN, this.#retry * 2));
  }
}
