import type { CompiledExclusions, ExclusionReason } from './exclusions.js';
import { findOrigin, type MoveRule, movedTo } from './exclusions-moved.js';
import type { CompiledTiming } from './fire-times.js';
import { type ExplainedTime, zonedText } from './fire-times-explain.js';
import { namesOf } from './fire-times-named.js';
import { zoneOffsets } from './time-zone-offsets.js';

/** Excluded ticks that follow each other and have one reason. */
export interface ExcludedTicks {
  /** The first and the last scheduled time, ms; the same for one tick. */
  readonly first: number;
  readonly last: number;
  /** What the wall clock shows at the first, with its offset. */
  readonly wallClock: string;
  readonly reason: ExclusionReason;
  /** Where the first one runs instead; undefined if nowhere. */
  readonly movedTo: number | undefined;
  /** The same as a sentence. */
  readonly text: string;
}

/** A scheduled time with what was excluded before it. */
export interface ExplainedTick extends ExplainedTime {
  /** What was excluded since the time before this one. Mostly empty. */
  readonly excluded: readonly ExcludedTicks[];
  /** The excluded time, in ms, that runs now instead, if the expression does not name this one itself. */
  readonly movedFrom?: number;
}

/** More stretches than this are left out: each is one entry of a list that may have thousands. */
const MOST_STRETCHES = 64;

/** Names excluded ticks without enumerating them. */
export class ExcludedTimes {
  constructor(
    private readonly timing: CompiledTiming,
    private readonly exclusions: CompiledExclusions,
    private readonly moves: readonly MoveRule[],
  ) {}

  /** The excluded ticks after an instant and up to another. */
  between(after: number, until: number): ExcludedTicks[] {
    const found: ExcludedTicks[] = [];
    let at = this.timing.next(after);
    while (at !== undefined && at <= until && found.length < MOST_STRETCHES) {
      const reason = this.exclusions.excludes(at);
      const span = this.exclusions.entrySpanAt(at);
      if (reason === undefined || span === undefined) {
        const following = this.exclusions.spanAfter(at);
        if (following === undefined) break;
        at = this.timing.next(following.start - 1);
        continue;
      }
      const last = this.timing.latest(at, Math.min(span.end - 1, until)) ?? at;
      found.push(this.#describe(at, last, reason));
      at = this.timing.next(last);
    }
    return found;
  }

  /** Where a time comes from that only stands there because another is excluded. */
  originOf(at: number): { movedFrom: number } | undefined {
    if (this.moves.length === 0 || this.timing.next(at - 1) === at) return undefined;
    for (const move of this.moves) {
      const { offset, offsetBefore } = move.rule.zone.spanAt(at);
      for (const wallClock of [at + offset, at + offsetBefore]) {
        const movedFrom = findOrigin(move, wallClock).at;
        if (movedFrom !== undefined) return { movedFrom };
      }
    }
    return undefined;
  }

  #describe(first: number, last: number, reason: ExclusionReason): ExcludedTicks {
    const zone = zoneOffsets(this.timing.tz);
    const targets = this.moves.flatMap((move) =>
      namesOf(move.rule, first).map((named) => movedTo(move, named) ?? Number.POSITIVE_INFINITY),
    );
    const target = Math.min(...targets);
    const { endDate = Number.MAX_VALUE } = this.timing;
    const runsAt = target <= endDate ? target : undefined;
    const wallClock = zonedText(zone, first);
    const span = first === last ? wallClock : `${wallClock} to ${zonedText(zone, last)}`;
    const moved = runsAt === undefined ? '' : `; moved to ${zonedText(zone, runsAt)}`;
    const text = `${span} excluded: ${reason.text}${moved}`;
    return { first, last, wallClock, reason, movedTo: runsAt, text };
  }
}
