import { isCarillonError } from '../domain/errors.js';
import { calendarsOf } from '../domain/exclusions-definition.js';
import {
  hasRecordedOffsets,
  isNewerTzData,
  RecordedOffsets,
  recordZone,
} from '../domain/recorded-offsets.js';
import type { StoredPolicies } from '../domain/schedule.js';
import type { OffsetSource, TimeZoneData } from '../domain/time-zone-offsets.js';
import type { CalendarStore } from '../redis/calendar-store.js';
import type { LeaderScripts, OwnedRange, PlanAnswer } from '../redis/leader-scripts.js';
import type { TimeZoneStore, ZoneInUse, ZoneMove, ZoneUser } from '../redis/time-zone-store.js';
import type { Logger } from '../support/logger.js';
import { RepeatedTask } from '../support/repeated-task.js';
import { carriedAnswer } from './carried-answer.js';

/** ms between two looks at what there is to do. */
const REST = 1000;
const LOOK_AGAIN = 10_000;
const BATCH = 100;
/** Walks over a bucket's schedules of a zone: those that fire meanwhile are met again. */
const WALKS = 5;
/** Looks at zones that hand-overs break into. */
const LOOKS = 5;

export interface TimeZoneWatchOptions {
  store: TimeZoneStore;
  scripts: LeaderScripts;
  calendars: CalendarStore;
  owned: () => OwnedRange[];
  logger: Logger;
  /** Redis' clock in ms, as far as known. */
  now: () => number;
  /** The tz data to compute with. */
  host: TimeZoneData;
  /** ms between two looks at every zone in use, where other leaders may have newer data. Defaults to 10 s. */
  lookAgain?: number;
}

/** A walk's figures. */
interface Carried {
  schedules: number;
  refused: string[];
}

/**
 * Keeps with each zone in use the offsets that its pending ticks are computed with, the newest that any instance knows,
 * and carries ticks over to them, each instance those of the buckets that it leads.
 *
 * Whoever has newer data that says otherwise **moves** the zone: all instances compute with its offsets from their next
 * look on. A zone is **unknown** until it is first looked at in a term; **stale** while a bucket of ours still has ticks
 * by the offsets before: the planner waits, dispatch goes on; **settled** otherwise. A bucket that changes hands in the
 * middle is gone on with by its new leader, from where Redis says that the old one began. What an instance with newer
 * data planned is never computed anew by an older one: it uses the offsets recorded.
 */
export class TimeZoneWatch extends RepeatedTask implements TimeZoneData {
  readonly #settled = new Set<string>();
  readonly #stale = new Map<string, ZoneMove>();
  /** Offsets of tz data that is not ours, as recorded. */
  readonly #others = new Map<string, OffsetSource>();
  /** What was warned of. */
  readonly #told = new Set<string>();
  #term = '';
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly options: TimeZoneWatchOptions) {
    super('time zone watch', REST, options.logger);
  }

  /** What ticks are to be computed with. */
  get data(): TimeZoneData {
    return this.#others.size === 0 ? this.options.host : this;
  }

  get version(): string {
    return this.options.host.version;
  }

  offsetsOf(tz: string): OffsetSource {
    return this.#others.get(tz) ?? this.options.host.offsetsOf(tz);
  }

  /** Whether the pending ticks of this zone's schedules in a bucket of ours still wait to be carried over. */
  isStale(tz: string, bucket: number): boolean {
    return this.#stale.get(tz)?.done.has(bucket) === false;
  }

  /** Looks at zones that ticks are about to be computed in. */
  async look(zones: readonly string[]): Promise<void> {
    // A term that ends meanwhile makes every zone unknown again.
    for (let looks = 0; looks < LOOKS; looks++) {
      this.#followTerm();
      const unknown = new Set(zones.filter((tz) => !this.#settled.has(tz) && !this.#stale.has(tz)));
      if (unknown.size === 0) return;
      const inUse = await this.options.store.all();
      for (const tz of unknown) await this.#judge(tz, inUse.get(tz));
    }
  }

  protected override async work(signal: AbortSignal): Promise<void> {
    this.#followTerm();
    if (this.#term === '') return;
    if (performance.now() - this.#lookedAt > (this.options.lookAgain ?? LOOK_AGAIN)) await this.#lookAtAll();
    if (this.#stale.size === 0) return;
    await this.#carry(signal);
    if (!signal.aborted) await this.#lookAtAll();
  }

  async #lookAtAll(): Promise<void> {
    this.#lookedAt = performance.now();
    for (const [tz, zone] of await this.options.store.all()) await this.#judge(tz, zone);
  }

  /** Others may have led, and planned, what is ours now. */
  #followTerm(): void {
    const term = this.options
      .owned()
      .map(({ fence }) => fence)
      .join();
    if (term === this.#term) return;
    this.#term = term;
    this.#lookedAt = Number.NEGATIVE_INFINITY;
    this.#settled.clear();
    this.#stale.clear();
    this.#others.clear();
  }

  /** Decides what the ticks of a zone are computed with, and whether some of ours are to be carried over to it. */
  async #judge(tz: string, inUse: ZoneInUse | undefined): Promise<void> {
    const host = this.#hostZone(tz);
    // Unknown to this Node: planning in it fails, and says so.
    if (host === undefined) this.#settle(tz, undefined);
    else if (inUse?.recorded === undefined) await this.#set(tz, inUse, 'keep', host);
    else {
      const { recorded, move } = inUse;
      const { version } = this.options.host;
      const isNewer = isNewerTzData(version, recorded.version);
      if (recorded.version === version || hasRecordedOffsets(recorded, host)) {
        this.#settle(tz, move);
        if (isNewer && move === undefined) await this.#set(tz, inUse, 'keep', host);
      } else if (isNewer && move === undefined) {
        await this.#set(tz, inUse, 'move', host);
      } else {
        // One that is newer than a move under way waits for its end.
        if (!isNewer) this.#tellOthers(tz, recorded.version);
        this.#settle(tz, move, new RecordedOffsets(recorded));
      }
    }
  }

  #hostZone(tz: string): OffsetSource | undefined {
    try {
      return this.options.host.offsetsOf(tz);
    } catch {
      return undefined;
    }
  }

  /** Ticks are computed with `others`, else with this host's data; as long as `move` has buckets of ours, with neither. */
  #settle(tz: string, move: ZoneMove | undefined, others?: OffsetSource): void {
    if (others === undefined) this.#others.delete(tz);
    else this.#others.set(tz, others);
    if (move !== undefined && this.#bucketsToCarry(move).length > 0) {
      this.#settled.delete(tz);
      this.#stale.set(tz, move);
    } else {
      this.#stale.delete(tz);
      this.#settled.add(tz);
    }
  }

  /** Records this host's offsets; whoever was faster is judged in its turn. */
  async #set(
    tz: string,
    known: ZoneInUse | undefined,
    how: 'move' | 'keep',
    host: OffsetSource,
  ): Promise<void> {
    const { store, now, host: data } = this.options;
    await store.set(tz, known?.text ?? '', recordZone(data.version, host, now()), how);
    const found = (await store.all()).get(tz);
    // By now it is recorded, by us or by somebody else; one that is still older is moved at a later look.
    if (found?.recorded === undefined) return;
    const agrees = found.recorded.version === data.version || hasRecordedOffsets(found.recorded, host);
    this.#settle(tz, found.move, agrees ? undefined : new RecordedOffsets(found.recorded));
  }

  #tellOthers(tz: string, recorded: string): void {
    const what = `${tz} ${recorded}`;
    if (this.#told.has(what)) return;
    this.#told.add(what);
    this.options.logger.warn(
      { tz, ours: this.version, recorded },
      'schedules were planned with other tz data, which is not older: it is used further; update Node',
    );
  }

  #bucketsToCarry({ done }: ZoneMove): number[] {
    const buckets: number[] = [];
    for (const { first, last } of this.options.owned()) {
      for (let bucket = first; bucket <= last; bucket++) if (!done.has(bucket)) buckets.push(bucket);
    }
    return buckets;
  }

  /** Carries over what is ours of the stale zones, bucket by bucket. */
  async #carry(signal: AbortSignal): Promise<void> {
    const { logger, host } = this.options;
    const zones = new Map(this.#stale);
    const carried: Carried = { schedules: 0, refused: [] };
    const buckets = new Set([...zones.values()].flatMap((move) => this.#bucketsToCarry(move)));
    for (const bucket of buckets) {
      if (signal.aborted || this.options.owned().length === 0) break;
      await this.#carryBucket(bucket, zones, carried);
    }
    const names = [...zones.keys()];
    if (carried.schedules > 0) {
      logger.info(
        { zones: names, schedules: carried.schedules, version: host.version },
        'the rules of time zones changed: carried pending ticks to where their local times are now',
      );
    }
    if (carried.refused.length > 0) {
      logger.error(
        { zones: names, schedules: carried.refused.slice(0, 10), count: carried.refused.length },
        'could not carry the pending ticks of schedules over to the new rules of their zones: they fire once by the old ones',
      );
    }
  }

  /** Walk by walk until one meets no resistance. A bucket that was lost meanwhile is its new leader's to go on with. */
  async #carryBucket(bucket: number, zones: ReadonlyMap<string, ZoneMove>, carried: Carried): Promise<void> {
    const { store, owned } = this.options;
    const begun = await store.beginCarrying(owned(), bucket, [...zones.keys()]);
    if (begun === undefined || begun.size === 0) return;
    let refused: string[] = [];
    for (let walk = 0; walk < WALKS; walk++) {
      refused = [];
      let batch: PlanAnswer[] = [];
      const commit = async () => {
        const outcomes = await this.#commit(batch);
        for (const [i, { identity }] of batch.entries()) {
          if (outcomes[i] === 'OK') carried.schedules++;
          else refused.push(identity);
        }
        batch = [];
      };
      for await (const user of store.users(bucket, [...begun.keys()])) {
        const answer = await this.#answer(user, zones, begun);
        if (answer !== undefined) batch.push(answer);
        if (batch.length >= BATCH) await commit();
      }
      await commit();
      if (refused.length === 0) break;
    }
    if (!(await store.doneCarrying(owned(), bucket, [...begun.keys()]))) return;
    for (const tz of begun.keys()) zones.get(tz)?.done.add(bucket);
    carried.refused.push(...refused);
  }

  async #commit(answers: readonly PlanAnswer[]): Promise<string[]> {
    if (answers.length === 0) return [];
    return (await this.options.scripts.setNext(this.options.owned(), answers)).outcomes;
  }

  async #answer(
    user: ZoneUser,
    zones: ReadonlyMap<string, ZoneMove>,
    begun: ReadonlyMap<string, number>,
  ): Promise<PlanAnswer | undefined> {
    try {
      const policies = JSON.parse(user.record.policies) as StoredPolicies;
      const tz = policies.tz ?? 'UTC';
      const [move, carrying] = [zones.get(tz), begun.get(tz)];
      if (move === undefined || carrying === undefined) return undefined;
      const named = calendarsOf(policies.exclude);
      const calendars = named.length === 0 ? undefined : await this.options.calendars.named(named);
      return carriedAnswer(user, policies, move.before, carrying, this.data, calendars);
    } catch (error) {
      if (isCarillonError(error, 'REDIS_UNAVAILABLE')) throw error;
      // A calendar that is gone, say: the planner tells, and suspends it.
      return undefined;
    }
  }
}
