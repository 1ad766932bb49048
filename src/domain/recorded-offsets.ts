import type { OffsetSource, OffsetSpan } from './time-zone-offsets.js';

/** The offsets of a zone as one version of the tz data had them, kept with the schedules that were planned by it. */
export interface RecordedZone {
  /** Of the tz data, such as `2025c`. */
  readonly version: string;
  /** When it was recorded, and the stretch, ms. */
  readonly at: number;
  readonly from: number;
  readonly to: number;
  /** Offsets in seconds, each with the second since 1970 that it is in force from; the first one also before. */
  readonly offsets: readonly (readonly [start: number, offset: number])[];
}

const YEAR_MS = 366 * 86_400_000;
/** Ticks that fired, and those that are planned, lie within this of the time of recording. */
const YEARS_BEFORE = 2;
const YEARS_AFTER = 10;
/** Of a real date, so that spans have ends like any other. */
const FOREVER = 8_640_000_000_000_000;

/** @param now ms; what is recorded lies around it. */
export function recordZone(version: string, zone: OffsetSource, now: number): RecordedZone {
  const from = now - YEARS_BEFORE * YEAR_MS;
  const to = now + YEARS_AFTER * YEAR_MS;
  return { version, at: now, from, to, offsets: offsetsBetween(zone, from, to) };
}

/** Reads what {@link recordZone} gave, as JSON; undefined for anything else. */
export function readRecordedZone(text: string): RecordedZone | undefined {
  let found: unknown;
  try {
    found = JSON.parse(text);
  } catch {
    return undefined;
  }
  const { version, at, from, to, offsets } = (found ?? {}) as Partial<RecordedZone>;
  const isPair = (pair: unknown) => Array.isArray(pair) && pair.length === 2 && pair.every(Number.isFinite);
  if (typeof version !== 'string' || ![at, from, to].every(Number.isFinite)) return undefined;
  if (!Array.isArray(offsets) || offsets.length === 0 || !offsets.every(isPair)) return undefined;
  return found as RecordedZone;
}

/** Whether a zone still has the offsets that were recorded of it. */
export function hasRecordedOffsets(recorded: RecordedZone, zone: OffsetSource): boolean {
  const now = offsetsBetween(zone, recorded.from, recorded.to);
  return JSON.stringify(now) === JSON.stringify(recorded.offsets);
}

/**
 * Whether tz data of version `a` is newer than `b`'s. Versions are a year and a letter; of data without one nobody
 * can tell.
 */
export function isNewerTzData(a: string, b: string): boolean {
  const isVersion = (text: string) => /^\d{4}[a-z]+$/.test(text);
  return isVersion(a) && isVersion(b) && a > b;
}

/** A recorded zone, to be asked as if the data that it came from were still here. */
export class RecordedOffsets implements OffsetSource {
  readonly #spans: readonly OffsetSpan[];

  constructor({ offsets }: RecordedZone) {
    this.#spans = offsets.map(([start, offset], i) => ({
      start: i === 0 ? -FOREVER : start * 1000,
      end: (offsets[i + 1]?.[0] ?? FOREVER / 1000) * 1000,
      offset: offset * 1000,
      offsetBefore: (offsets[i - 1]?.[1] ?? offset) * 1000,
      offsetAfter: (offsets[i + 1]?.[1] ?? offset) * 1000,
    }));
  }

  spanAt(utcMs: number): OffsetSpan {
    const span = this.#spans.find(({ end }) => utcMs < end);
    if (span === undefined) throw new RangeError(`no offset for ${utcMs}`);
    return span;
  }
}

function offsetsBetween(zone: OffsetSource, from: number, to: number): [number, number][] {
  const found: [number, number][] = [];
  for (let at = from; at < to; ) {
    const { end, offset } = zone.spanAt(at);
    if (found.at(-1)?.[1] !== offset / 1000) found.push([Math.floor(at / 1000), offset / 1000]);
    at = end;
  }
  return found;
}
