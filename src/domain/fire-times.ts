import { BoundedMap } from './bounded-map.js';
import { type CronPattern, parseCron, usesSeed } from './cron.js';
import type { CronSource } from './cron-refusal.js';
import { CarillonError } from './errors.js';
import {
  type CronRule,
  type FoldPolicy,
  type GapPolicy,
  LAST_TIME,
  nextCronTime,
} from './fire-times-cron.js';
import { type CheckedTiming, checkTiming, type TimingDefinition } from './fire-times-definition.js';
import { type ExplainedTime, explainTimes } from './fire-times-explain.js';
import { type IntervalRule, nextIntervalTime } from './interval.js';
import { HOST_TIME_ZONES, type OffsetSource, type TimeZoneData } from './time-zone-offsets.js';

export interface CompileOptions {
  /** The schedule's identity, `<queue>:<jobId>`; `H` and `~` take their values from it. */
  seed?: string;
  /** When the schedule was first created, ms. An `every` without `anchor` counts from it. */
  createdAt?: number;
  /** Defaults to the data of this Node. */
  timeZones?: TimeZoneData;
}

/** A definition, ready to be asked for its times. It holds no state: the same question has the same answer. */
export interface CompiledTiming {
  /**
   * `every`: a fixed number of ms. `interval`: each instant whose wall clock matches. `fixed`: once for each local
   * date and time. `mixed`: expressions of both kinds.
   */
  readonly kind: 'every' | 'interval' | 'fixed' | 'mixed';
  readonly tz: string;
  /** Two definitions with the same text here fire at the same times. */
  readonly canonical: string;
  /** What the author may not have meant, as sentences. */
  readonly warnings: readonly string[];
  /** Ticks from creation on; counted by whoever stores the schedule. */
  readonly limit: number | undefined;
  /** The expressions behind it, for what looks at wall-clock times itself; none for `every`. */
  readonly rules: readonly CronRule[];
  /** The intervals behind it, in ms: `every`, and each `@every`. */
  readonly everies: readonly number[];
  /** No tick before the one, none after the other; ms. */
  readonly startDate: number | undefined;
  readonly endDate: number | undefined;
  /**
   * The first scheduled time strictly after `afterMs`, in whole ms; undefined if there is none up to 9999.
   * @throws CarillonError `INVALID_OPTION` for an `every` that has neither `anchor` nor `createdAt`, and for NaN.
   */
  next(afterMs: number): number | undefined;
  /**
   * The last scheduled time after `afterMs` and up to `untilMs`, both in ms; undefined if there is none. It costs
   * some fifty calls of {@link next}, however many times lie between, so that a long outage is named at once.
   */
  latest(afterMs: number, untilMs: number): number | undefined;
  /** The next `count` times, each with the wall clock that it was named by and what a clock change did to it. */
  explainNext(afterMs: number, count: number): ExplainedTime[];
}

/**
 * Checks a definition and compiles it.
 * @throws CarillonError `INVALID_OPTION`, `INVALID_CRON`, `INVALID_TIME_ZONE`, `INVALID_DURATION`, each with the
 *   option, what was given and what to write instead.
 */
export function compileSchedule(definition: TimingDefinition, options: CompileOptions = {}): CompiledTiming {
  return new Timing(definition, options);
}

/** As {@link CompiledTiming.latest}, for any `next`. */
export function latestTime(
  next: (afterMs: number) => number | undefined,
  afterMs: number,
  untilMs: number,
): number | undefined {
  let latest: number | undefined;
  let low = afterMs;
  // Nothing lies between `high` and `untilMs`.
  let high = untilMs;
  while (low < high) {
    const middle = Math.max(low, Math.floor((low + high) / 2));
    const time = next(middle);
    if (time !== undefined && time <= untilMs) {
      latest = time;
      low = time;
    } else {
      high = middle;
    }
  }
  return latest;
}

/** The next `count` times after one, or as many as there are. */
export function following(timing: Pick<CompiledTiming, 'next'>, after: number, count: number): number[] {
  const times: number[] = [];
  let time: number | undefined = after;
  while (times.length < count) {
    time = timing.next(time);
    if (time === undefined) break;
    times.push(time);
  }
  return times;
}

/** An expression of a schedule, compiled: a cron rule, or the interval of an `@every`. */
type Part = CronRule | { readonly every: number };

class Timing implements CompiledTiming {
  readonly kind: CompiledTiming['kind'];
  readonly warnings: readonly string[];
  readonly rules: CronRule[] = [];
  readonly everies: number[] = [];
  readonly #checked: CheckedTiming;
  readonly #createdAt: number | undefined;
  readonly #timeZones: TimeZoneData;

  constructor(definition: TimingDefinition, options: CompileOptions) {
    const { seed, createdAt, timeZones = HOST_TIME_ZONES } = options;
    const checked = checkTiming(definition);
    this.#checked = checked;
    this.#createdAt = createdAt;
    this.#timeZones = timeZones;
    // Also where no expression uses it: a bad zone is an error beside `every` too.
    timeZones.offsetsOf(checked.tz);
    if (checked.every !== undefined) this.everies.push(checked.every);
    for (const source of checked.crons) {
      const part = compileCron(source, checked, seed, timeZones);
      if ('every' in part) this.everies.push(part.every);
      else this.rules.push(part);
    }
    this.kind = kindOf(this.rules, this.everies);
    this.warnings = warningsOf(this.rules, definition);
  }

  get tz(): string {
    return this.#checked.tz;
  }

  get limit(): number | undefined {
    return this.#checked.limit;
  }

  get startDate(): number | undefined {
    return this.#checked.startDate;
  }

  get endDate(): number | undefined {
    return this.#checked.endDate;
  }

  get canonical(): string {
    const { tz, gap, fold, anchor, phase, startDate, endDate, limit } = this.#checked;
    const rules = [...new Set(this.rules.map((rule) => rule.pattern.canonical))].sort();
    const policy = this.rules.some((rule) => !rule.pattern.interval) ? [gap, fold] : [];
    const everies = this.everies.map((every) => ['every', every, anchor ?? 'creation', phase]);
    return JSON.stringify([tz, rules, policy, everies, startDate ?? '', endDate ?? '', limit ?? '']);
  }

  next(afterMs: number): number | undefined {
    if (!Number.isFinite(afterMs)) {
      // Undefined would mean that the schedule has ended.
      const todo = 'pass ms since 1970';
      throw new CarillonError('INVALID_OPTION', `after: ${afterMs} is no time; ${todo}`, {
        field: 'after',
        given: afterMs,
        todo,
      });
    }
    const { startDate, endDate = LAST_TIME } = this.#checked;
    const after = startDate !== undefined && startDate > afterMs ? startDate - 1 : afterMs;
    let earliest: number | undefined;
    for (const rule of this.rules) earliest = earlier(earliest, nextCronTime(rule, after));
    for (const every of this.everies) {
      earliest = earlier(earliest, nextIntervalTime(this.#intervalRule(every), after, LAST_TIME));
    }
    return earliest === undefined || earliest > endDate ? undefined : earliest;
  }

  latest(afterMs: number, untilMs: number): number | undefined {
    return latestTime((after) => this.next(after), afterMs, untilMs);
  }

  explainNext(afterMs: number, count: number): ExplainedTime[] {
    return explainTimes(
      this.rules,
      this.#timeZones.offsetsOf(this.tz),
      afterMs,
      following(this, afterMs, count),
    );
  }

  #intervalRule(every: number): IntervalRule {
    const { anchor, phase } = this.#checked;
    const from = anchor ?? this.#createdAt;
    if (from === undefined) {
      const todo = "pass createdAt, or give the schedule an anchor such as '2026-01-01T00:00:00Z'";
      throw new CarillonError('INVALID_OPTION', `anchor: every has nothing to count from; ${todo}`, {
        field: 'anchor',
        todo,
      });
    }
    return { every, anchor: from + phase, firstCount: anchor === undefined && phase === 0 ? 1 : 0 };
  }
}

/** Many schedules share few expressions: each is compiled once for a zone and a policy. */
const compiled = new BoundedMap<Part>(10_000);

function compileCron(
  source: CronSource,
  { tz, gap, fold }: CheckedTiming,
  seed: string | undefined,
  timeZones: TimeZoneData,
): Part {
  // What the identity decides is not shared, and would push out what is.
  if (usesSeed(source.text) || timeZones !== HOST_TIME_ZONES) {
    return toPart(parseCron(source, seed), timeZones.offsetsOf(tz), gap, fold);
  }
  const key = `${gap} ${fold} ${tz} ${source.text}`;
  let part = compiled.get(key);
  if (part === undefined) {
    part = toPart(parseCron(source), timeZones.offsetsOf(tz), gap, fold);
    compiled.set(key, part);
  }
  return part;
}

function toPart(
  parsed: CronPattern | { readonly every: number },
  zone: OffsetSource,
  gap: GapPolicy,
  fold: FoldPolicy,
): Part {
  return 'every' in parsed ? parsed : { pattern: parsed, zone, gap, fold };
}

function kindOf(rules: readonly CronRule[], everies: readonly number[]): CompiledTiming['kind'] {
  const kinds = new Set(rules.map((rule) => (rule.pattern.interval ? 'interval' : 'fixed')));
  if (rules.length === 0) return 'every';
  const [kind = 'mixed'] = kinds;
  return kinds.size > 1 || everies.length > 0 ? 'mixed' : kind;
}

function warningsOf(rules: readonly CronRule[], definition: TimingDefinition): readonly string[] {
  const ignored = (['gap', 'fold'] as const).filter((name) => definition[name] !== undefined);
  const [only] = rules;
  if (rules.length === 1 && only !== undefined && ignored.length === 0) return only.pattern.warnings;
  const warnings = rules.flatMap((rule) => rule.pattern.warnings);
  if (ignored.length > 0 && rules.every((rule) => rule.pattern.interval)) {
    warnings.push(
      `${ignored.join(', ')}: no effect, because these times follow the clock through its changes`,
    );
  }
  return warnings;
}

function earlier(a: number | undefined, b: number | undefined): number | undefined {
  return a === undefined || (b !== undefined && b < a) ? b : a;
}
