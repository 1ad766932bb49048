import { isCarillonError } from '../domain/errors.js';
import { calendarsOf } from '../domain/exclusions-definition.js';
import {
  hasRecordedOffsets,
  isNewerTzData,
  RecordedOffsets,
  type RecordedZone,
  recordZone,
} from '../domain/recorded-offsets.js';
import type { StoredPolicies } from '../domain/schedule.js';
import type { OffsetSource, TimeZoneData } from '../domain/time-zone-offsets.js';
import type { CalendarStore } from '../redis/calendar-store.js';
import type { LeaderScripts, OwnedRange, PlanAnswer } from '../redis/leader-scripts.js';
import type { TimeZoneStore, ZoneUser } from '../redis/time-zone-store.js';
import type { Logger } from '../support/logger.js';
import { carriedAnswer } from './carried-answer.js';
import { RepeatedTask } from './repeated-task.js';

/** ms between two looks at what there is to do, and between two at every zone in use. */
const REST = 1000;
const LOOK_AGAIN = 60_000;
const BATCH = 100;
/** Walks over a zone's schedules: those that fire meanwhile are met again. */
const WALKS = 5;

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
}

/**
 * Keeps with each zone in use the offsets that its pending ticks were computed with, and carries those ticks over when
 * this Node's tz data is newer and says otherwise.
 *
 * A zone is **unknown** until it is first looked at in a term; **settled** while the ticks of its schedules agree with
 * {@link data}; **stale** from when a difference is found until the last of them is carried over: the planner waits,
 * dispatch goes on. What an instance with newer data planned is not touched: this one computes with the offsets recorded.
 */
export class TimeZoneWatch extends RepeatedTask implements TimeZoneData {
  readonly #settled = new Set<string>();
  readonly #stale = new Map<string, RecordedZone>();
  /** Offsets of newer tz data than ours. */
  readonly #newer = new Map<string, OffsetSource>();
  #term = '';
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(private readonly options: TimeZoneWatchOptions) {
    super('time zone watch', REST, options.logger);
  }

  /** What ticks are to be computed with. */
  get data(): TimeZoneData {
    return this.#newer.size === 0 ? this.options.host : this;
  }

  get version(): string {
    return this.options.host.version;
  }

  offsetsOf(tz: string): OffsetSource {
    return this.#newer.get(tz) ?? this.options.host.offsetsOf(tz);
  }

  /** Whether the pending ticks of this zone's schedules still wait to be carried over. */
  isStale(tz: string): boolean {
    return this.#stale.has(tz);
  }

  /** Looks at zones that ticks are about to be computed in. */
  async look(zones: readonly string[]): Promise<void> {
    this.#followTerm();
    const unknown = zones.filter((tz) => !this.#settled.has(tz) && !this.#stale.has(tz));
    if (unknown.length === 0) return;
    const recorded = await this.options.store.all();
    for (const tz of new Set(unknown)) await this.#judge(tz, recorded.get(tz));
  }

  protected override async work(signal: AbortSignal): Promise<void> {
    this.#followTerm();
    if (this.#term === '') return;
    if (performance.now() - this.#lookedAt > LOOK_AGAIN) {
      this.#lookedAt = performance.now();
      this.#settled.clear();
      for (const [tz, zone] of await this.options.store.all()) await this.#judge(tz, zone);
    }
    if (this.#stale.size > 0) await this.#carry(signal);
  }

  /** Others may have led, and planned, since our last term. */
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
    this.#newer.clear();
  }

  async #judge(tz: string, recorded: RecordedZone | undefined): Promise<void> {
    const { host, logger } = this.options;
    let zone: OffsetSource;
    try {
      zone = host.offsetsOf(tz);
    } catch {
      // Unknown to this Node: planning in it fails, and says so.
      this.#settled.add(tz);
      return;
    }
    if (recorded !== undefined && recorded.version !== host.version && !hasRecordedOffsets(recorded, zone)) {
      if (isNewerTzData(host.version, recorded.version)) {
        this.#stale.set(tz, recorded);
        return;
      }
      logger.warn(
        { tz, ours: host.version, recorded: recorded.version },
        'schedules were planned with other tz data, which is not older: it is used further; update Node',
      );
      this.#newer.set(tz, new RecordedOffsets(recorded));
    } else if (recorded === undefined || isNewerTzData(host.version, recorded.version)) {
      await this.#record(tz, zone);
    }
    this.#settled.add(tz);
  }

  /** Carries the schedules of stale zones over, walk by walk until a walk meets no resistance. */
  async #carry(signal: AbortSignal): Promise<void> {
    const zones = await this.#begin();
    let refused: string[] = [];
    for (let walk = 0; walk < WALKS; walk++) {
      refused = await this.#walk(zones);
      // Fenced: whoever leads now goes on from here.
      if (signal.aborted || this.options.owned().length === 0) return;
      if (refused.length === 0) break;
    }
    if (refused.length > 0) {
      this.options.logger.error(
        { schedules: refused.slice(0, 10), count: refused.length },
        'could not carry the pending ticks of schedules over to the new rules of their zones: they fire once by the old ones',
      );
    }
    for (const tz of zones.keys()) {
      await this.#record(tz, this.options.host.offsetsOf(tz));
      this.#stale.delete(tz);
      this.#settled.add(tz);
    }
  }

  /** Notes in Redis that a walk begins, so that whoever goes on after a crash knows what was carried before it. */
  async #begin(): Promise<Map<string, RecordedZone>> {
    const { store } = this.options;
    const zones = new Map<string, RecordedZone>();
    for (const [tz, zone] of this.#stale) {
      const begun = { ...zone, carrying: zone.carrying ?? (await store.lastVersion()) };
      if (zone.carrying === undefined) await store.record(tz, begun);
      zones.set(tz, begun);
    }
    return zones;
  }

  /** @returns the identities of those that somebody else changed meanwhile, or that cannot be stored. */
  async #walk(zones: ReadonlyMap<string, RecordedZone>): Promise<string[]> {
    const { store, host, logger } = this.options;
    const refused: string[] = [];
    let carried = 0;
    let batch: PlanAnswer[] = [];
    const commit = async () => {
      const outcomes = await this.#commit(batch);
      for (const [i, { identity }] of batch.entries()) {
        if (outcomes[i] === 'OK') carried++;
        else refused.push(identity);
      }
      batch = [];
    };
    for await (const user of store.users([...zones.keys()])) {
      const answer = await this.#answer(user, zones);
      if (answer !== undefined) batch.push(answer);
      if (batch.length >= BATCH) await commit();
    }
    await commit();
    if (carried > 0) {
      logger.info(
        { zones: [...zones.keys()], schedules: carried, version: host.version },
        'the rules of time zones changed: carried pending ticks to where their local times are now',
      );
    }
    return refused;
  }

  async #record(tz: string, zone: OffsetSource): Promise<void> {
    const { store, host, now } = this.options;
    await store.record(tz, recordZone(host.version, zone, now()));
  }

  async #commit(answers: readonly PlanAnswer[]): Promise<string[]> {
    if (answers.length === 0) return [];
    return (await this.options.scripts.setNext(this.options.owned(), answers)).outcomes;
  }

  async #answer(user: ZoneUser, zones: ReadonlyMap<string, RecordedZone>): Promise<PlanAnswer | undefined> {
    try {
      const policies = JSON.parse(user.record.policies) as StoredPolicies;
      const zone = zones.get(policies.tz ?? 'UTC');
      if (zone === undefined) return undefined;
      const named = calendarsOf(policies.exclude);
      const calendars = named.length === 0 ? undefined : await this.options.calendars.named(named);
      return carriedAnswer(user, policies, zone, this.options.host, calendars);
    } catch (error) {
      if (isCarillonError(error, 'REDIS_UNAVAILABLE')) throw error;
      // A calendar that is gone, say: the planner tells, and suspends it.
      return undefined;
    }
  }
}
