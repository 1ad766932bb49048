import { WIDEST_OFFSET } from './fire-times-cron.js';
import type { OffsetSource } from './time-zone-offsets.js';

/** A stretch of instants in ms; `end` is not part of it. */
export interface TimeSpan {
  readonly start: number;
  readonly end: number;
}

/**
 * The instants at which the wall clock of a zone shows a time from `from` and before `to`, in order. Mostly one
 * stretch; a clock that is put back across midnight shows a date twice.
 * @param from and `to` wall-clock times, in ms.
 */
export function localSpans(zone: OffsetSource, from: number, to: number): TimeSpan[] {
  const spans: TimeSpan[] = [];
  const last = to + WIDEST_OFFSET;
  let at = from - WIDEST_OFFSET;
  while (at < last) {
    const { start, end, offset } = zone.spanAt(at);
    add(spans, Math.max(start, from - offset), Math.min(end, to - offset));
    // Only near its ends does the zone matter: what lies between, years perhaps, belongs to it whatever the clocks do.
    const inner = to - WIDEST_OFFSET;
    if (end > from + WIDEST_OFFSET && end < inner) {
      add(spans, end, inner);
      at = inner;
    } else {
      at = end;
    }
  }
  return spans;
}

function add(spans: TimeSpan[], start: number, end: number): void {
  if (start >= end) return;
  const before = spans.at(-1);
  if (before !== undefined && before.end >= start) {
    spans[spans.length - 1] = { start: before.start, end: Math.max(end, before.end) };
  } else {
    spans.push({ start, end });
  }
}

/** Spans joined where they touch or overlap, in order of time, to be asked by bisection. */
export class JoinedSpans {
  readonly #spans: TimeSpan[] = [];

  /** @param sorted by start. */
  constructor(sorted: readonly TimeSpan[]) {
    for (const { start, end } of sorted) add(this.#spans, start, end);
  }

  /** The span that holds an instant. */
  at(ms: number): TimeSpan | undefined {
    const span = this.#spans[this.#firstEndingAfter(ms)];
    return span !== undefined && span.start <= ms ? span : undefined;
  }

  /** The first span that starts after an instant. */
  after(ms: number): TimeSpan | undefined {
    const index = this.#firstEndingAfter(ms);
    const span = this.#spans[index];
    return span !== undefined && span.start <= ms ? this.#spans[index + 1] : span;
  }

  #firstEndingAfter(ms: number): number {
    let low = 0;
    let high = this.#spans.length;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((this.#spans[middle] as TimeSpan).end > ms) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}
