import { CarillonError } from './errors.js';
import type { CompiledExclusions } from './exclusions.js';
import type { OnExcluded } from './exclusions-definition.js';
import { type ExcludedTicks, ExcludedTimes, type ExplainedTick } from './exclusions-explain.js';
import { type MoveRule, nextMovedTime } from './exclusions-moved.js';
import { type CompiledTiming, following, latestTime } from './fire-times.js';
import { LAST_TIME } from './fire-times-cron.js';
import { explainTimes } from './fire-times-explain.js';
import { zoneOffsets } from './time-zone-offsets.js';

/** A timing without its excluded ticks. It asks and answers as the timing itself. */
export interface ExcludingTiming extends CompiledTiming {
  /** The versions of the calendars that it reads, by name. */
  readonly calendarVersions: Readonly<Record<string, number>>;
  /** Each time with what was excluded since the one before. */
  explainNext(afterMs: number, count: number): ExplainedTick[];
  /** What is excluded after an instant and up to another, in ms; the first 64 stretches, each of one reason. */
  excludedBetween(afterMs: number, untilMs: number): ExcludedTicks[];
}

/**
 * Takes the excluded ticks out of a timing. `skip`: they do not exist. `next`: each moves to the same time of day on
 * the next date on which that time exists and is not excluded; where it meets another tick, they are one.
 *
 * Excluded stretches are jumped over, so that an every-second schedule excluded for years costs what one tick does.
 * @throws CarillonError `INVALID_OPTION` for `next` beside an interval in ms, which has no time of day.
 */
export function withExclusions(
  timing: CompiledTiming,
  exclusions: CompiledExclusions,
  onExcluded: OnExcluded = 'skip',
): ExcludingTiming {
  return new Excluding(timing, exclusions, onExcluded);
}

class Excluding implements ExcludingTiming {
  readonly kind: CompiledTiming['kind'];
  readonly tz: string;
  readonly warnings: readonly string[];
  readonly limit: number | undefined;
  readonly rules: CompiledTiming['rules'];
  readonly everies: CompiledTiming['everies'];
  readonly startDate: number | undefined;
  readonly endDate: number | undefined;
  readonly calendarVersions: Readonly<Record<string, number>>;
  readonly #timing: CompiledTiming;
  readonly #exclusions: CompiledExclusions;
  /** Empty for `skip`. */
  readonly #moves: readonly MoveRule[];

  constructor(timing: CompiledTiming, exclusions: CompiledExclusions, onExcluded: OnExcluded) {
    if (onExcluded === 'next' && timing.everies.length > 0) {
      const todo = "write onExcluded: 'skip', or a cron expression";
      const message = `onExcluded: 'next' needs a time of day, which an interval has not; ${todo}`;
      throw new CarillonError('INVALID_OPTION', message, { field: 'onExcluded', given: onExcluded, todo });
    }
    this.kind = timing.kind;
    this.tz = timing.tz;
    this.warnings = timing.warnings;
    this.limit = timing.limit;
    this.rules = timing.rules;
    this.everies = timing.everies;
    this.startDate = timing.startDate;
    this.endDate = timing.endDate;
    this.calendarVersions = exclusions.versions;
    this.#timing = timing;
    this.#exclusions = exclusions;
    const earliest = timing.startDate ?? 0;
    this.#moves = onExcluded === 'next' ? timing.rules.map((rule) => ({ rule, exclusions, earliest })) : [];
  }

  get canonical(): string {
    const policy = this.#moves.length > 0 ? 'next' : 'skip';
    return JSON.stringify([this.#timing.canonical, this.#exclusions.canonical, policy]);
  }

  next(afterMs: number): number | undefined {
    let earliest = this.#nextRegular(afterMs);
    const last = Math.min(this.endDate ?? LAST_TIME, LAST_TIME);
    for (const move of this.#moves) {
      earliest = nextMovedTime(move, afterMs, earliest ?? last + 1) ?? earliest;
    }
    return earliest;
  }

  latest(afterMs: number, untilMs: number): number | undefined {
    return latestTime((after) => this.next(after), afterMs, untilMs);
  }

  explainNext(afterMs: number, count: number): ExplainedTick[] {
    const times = following(this, afterMs, count);
    const excluded = this.#excluded();
    return explainTimes(this.rules, zoneOffsets(this.tz), afterMs, times).map((explained, i) => ({
      ...explained,
      excluded: excluded.between(times[i - 1] ?? afterMs, explained.at),
      ...excluded.originOf(explained.at),
    }));
  }

  excludedBetween(afterMs: number, untilMs: number): ExcludedTicks[] {
    return this.#excluded().between(afterMs, untilMs);
  }

  #excluded(): ExcludedTimes {
    return new ExcludedTimes(this.#timing, this.#exclusions, this.#moves);
  }

  /** The next tick that stays where it is. */
  #nextRegular(afterMs: number): number | undefined {
    let at = this.#timing.next(afterMs);
    while (at !== undefined) {
      const span = this.#exclusions.spanAt(at);
      if (span === undefined) return at;
      at = this.#timing.next(span.end - 1);
    }
    return undefined;
  }
}
