import { checkTimeZone } from './time-zone-names.js';

/** The version of the time zone data that this Node computes with, such as `2025c`. */
export const tzDataVersion: string = process.versions.tz ?? 'unknown';

/** A stretch of time in which a zone keeps one offset. All in ms; `end` is not part of it. */
export interface OffsetSpan {
  readonly start: number;
  readonly end: number;
  /** Wall clock minus UTC. */
  readonly offset: number;
  /** The offsets in force just before `start` and from `end` on. */
  readonly offsetBefore: number;
  readonly offsetAfter: number;
}

/** Where the offsets of one time zone come from. */
export interface OffsetSource {
  /** The span that holds an instant. Its ends are changes of offset, or lie at least a year away. */
  spanAt(utcMs: number): OffsetSpan;
}

/** The time zone data that schedules are computed with. */
export interface TimeZoneData {
  /** Such as `2025c`. */
  readonly version: string;
  /** @throws CarillonError `INVALID_TIME_ZONE` for what is no IANA name. */
  offsetsOf(tz: string): OffsetSource;
}

/** Changes are looked for in blocks of 400 days, when a time in one is first asked for. */
const BLOCK_MS = 400 * 86_400_000;
/**
 * How far apart offsets are sampled. No zone has ever changed there and back within four days (Freetown, 1939, did
 * in just under four), so two changes never hide between two samples.
 */
const SAMPLE_MS = 2 * 86_400_000;
/** The tables of single changes (Ramadan in Gaza and Morocco) end in 2087; from 2100 on only yearly rules are left. */
export const YEARLY_RULES_FROM = 4_102_444_800_000;
/** Yearly rules leave each offset in force for months. */
const YEARLY_SAMPLE_MS = 25 * 86_400_000;

/**
 * The offsets of one time zone. Intl answers one instant at a time and slowly, so the changes of a block are found
 * once by sampling and bisection, and from then on everything is arithmetic.
 */
export class ZoneOffsets implements OffsetSource {
  readonly #format: Intl.DateTimeFormat;
  readonly #changes = new Map<number, readonly number[]>();
  readonly #spans = new Map<number, readonly OffsetSpan[]>();
  #last: OffsetSpan = { start: 0, end: 0, offset: 0, offsetBefore: 0, offsetAfter: 0 };

  constructor(tz: string) {
    this.#format = new Intl.DateTimeFormat('en-US', { timeZone: tz, timeZoneName: 'longOffset' });
  }

  spanAt(utcMs: number): OffsetSpan {
    const last = this.#last;
    if (utcMs >= last.start && utcMs < last.end) return last;
    const block = Math.floor(utcMs / BLOCK_MS);
    let spans = this.#spans.get(block);
    if (spans === undefined) {
      spans = this.#findSpans(block);
      this.#spans.set(block, spans);
    }
    for (const span of spans) {
      if (utcMs < span.end) {
        this.#last = span;
        return span;
      }
    }
    throw new RangeError(`no offset for ${utcMs}`);
  }

  #findSpans(block: number): OffsetSpan[] {
    const first = (block - 1) * BLOCK_MS;
    const beyond = (block + 2) * BLOCK_MS;
    const edges = [first, ...[block - 1, block, block + 1].flatMap((b) => this.#changesIn(b)), beyond];
    const spans: OffsetSpan[] = [];
    for (let i = 0; i + 1 < edges.length; i++) {
      const start = edges[i] as number;
      const end = edges[i + 1] as number;
      const offset = this.#offsetAt(start);
      spans.push({
        start,
        end,
        offset,
        offsetBefore: spans.at(-1)?.offset ?? offset,
        offsetAfter: end === beyond ? offset : this.#offsetAt(end),
      });
    }
    return spans.filter((span) => span.end > block * BLOCK_MS && span.start < (block + 1) * BLOCK_MS);
  }

  /** The first instants of each new offset after a block's start and up to its end. */
  #changesIn(block: number): readonly number[] {
    let changes = this.#changes.get(block);
    if (changes === undefined) {
      const end = (block + 1) * BLOCK_MS;
      const found: number[] = [];
      let low = block * BLOCK_MS;
      let offset = this.#offsetAt(low);
      const sample = low < YEARLY_RULES_FROM ? SAMPLE_MS : YEARLY_SAMPLE_MS;
      while (low < end) {
        const high = Math.min(low + sample, end);
        const next = this.#offsetAt(high);
        if (next !== offset) found.push(this.#bisect(low, high, offset));
        low = high;
        offset = next;
      }
      changes = found;
      this.#changes.set(block, changes);
    }
    return changes;
  }

  #bisect(from: number, to: number, offset: number): number {
    let low = Math.floor(from / 1000);
    let high = Math.ceil(to / 1000);
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (this.#offsetAt(middle * 1000) === offset) low = middle;
      else high = middle;
    }
    return high * 1000;
  }

  #offsetAt(utcMs: number): number {
    const text = this.#format.format(utcMs);
    const [, sign, hours, minutes, seconds = '0'] = /GMT(?:([+-])(\d+):(\d+)(?::(\d+))?)?$/.exec(text) ?? [];
    if (sign === undefined) return 0;
    const size = Number(hours) * 3_600_000 + Number(minutes) * 60_000 + Number(seconds) * 1000;
    return sign === '-' ? -size : size;
  }
}

const zones = new Map<string, ZoneOffsets>();

/**
 * The offsets of a zone, kept for the life of the process.
 * @throws CarillonError `INVALID_TIME_ZONE` for what is no IANA name.
 */
export function zoneOffsets(tz: unknown): ZoneOffsets {
  let zone = zones.get(tz as string);
  if (zone === undefined) {
    zone = new ZoneOffsets(checkTimeZone(tz));
    zones.set(tz as string, zone);
  }
  return zone;
}

/** The data of this Node. */
export const HOST_TIME_ZONES: TimeZoneData = { version: tzDataVersion, offsetsOf: zoneOffsets };
