import { matcher, type Policy, wallClockReader } from './wall-clock-matcher.js';

/**
 * Ticks with exclusions found the slow and obvious way: every minute of a stretch is written down with what the wall
 * clock shows, each excluded tick is carried from date to date by hand. Imports nothing from src.
 */
const MINUTE = 60_000;
const DAY = 1440;

/** As a definition has it; ranges include both ends. */
export type WalkExclusion = string | { from: string; to: string } | { from: number; to: number };

export interface Definition extends Policy {
  cron: string;
  exclude: readonly WalkExclusion[];
  onExcluded: 'skip' | 'next';
  startDate: number | undefined;
  endDate: number | undefined;
}

export class ExcludedWalk {
  /** Wall-clock minutes that are shown, with the UTC minutes at which they are. */
  readonly #shown = new Map<number, number[]>();
  /** Wall-clock minutes that are skipped, with the UTC minute of the change and the one that `shift` gives. */
  readonly #skipped = new Map<number, { edge: number; shifted: number }>();
  readonly #wallAt = new Map<number, number>();
  readonly #first: number;
  readonly #last: number;

  /** @param from and `to`: whole minutes in ms; what is moved from before `from` is not known. */
  constructor(tz: string, from: number, to: number) {
    const read = wallClockReader(tz);
    let before = read(from) / MINUTE - 1;
    this.#first = before + 1;
    for (let utc = from / MINUTE; utc < to / MINUTE; utc++) {
      const wall = read(utc * MINUTE) / MINUTE;
      for (let missing = before + 1; missing < wall; missing++) {
        this.#skipped.set(missing, { edge: utc, shifted: utc + missing - before - 1 });
      }
      this.#shown.set(wall, [...(this.#shown.get(wall) ?? []), utc]);
      this.#wallAt.set(utc, wall);
      before = wall;
    }
    this.#last = before;
  }

  /** All ticks of the stretch, ms since the epoch, in order. */
  ticks(definition: Definition): number[] {
    const { cron, exclude, onExcluded, startDate = 0, endDate = Number.MAX_VALUE } = definition;
    const matches = matcher(cron);
    const ticks = new Set<number>();
    for (let named = this.#first; named <= this.#last; named++) {
      if (!matches(named)) continue;
      for (const utc of this.#instants(named, definition)) {
        if (utc * MINUTE < startDate || utc * MINUTE > endDate) continue;
        if (!this.#isExcluded(utc, exclude)) ticks.add(utc);
        else if (onExcluded === 'next') {
          const target = this.#carry(named, definition);
          if (target !== undefined && target * MINUTE <= endDate) ticks.add(target);
        }
      }
    }
    return [...ticks].map((utc) => utc * MINUTE).sort((a, b) => a - b);
  }

  #carry(named: number, definition: Definition): number | undefined {
    for (let wall = named + DAY; wall <= this.#last; wall += DAY) {
      const [utc] = this.#instants(wall, definition);
      if (utc !== undefined && !this.#isExcluded(utc, definition.exclude)) return utc;
    }
    return undefined;
  }

  #instants(wall: number, { cron, gap, fold }: Definition): number[] {
    const interval = /^(\*|0-23)(\/\d+)?$/.test(cron.split(' ')[1] ?? '');
    const shown = this.#shown.get(wall);
    if (shown !== undefined) {
      if (interval || fold === 'both') return shown;
      return [fold === 'first' ? (shown[0] as number) : (shown.at(-1) as number)];
    }
    const skipped = this.#skipped.get(wall);
    if (skipped === undefined || interval || gap === 'skip') return [];
    return [gap === 'edge' ? skipped.edge : skipped.shifted];
  }

  #isExcluded(utc: number, exclude: readonly WalkExclusion[]): boolean {
    const wall = this.#wallAt.get(utc);
    const date = wall === undefined ? '' : new Date(wall * MINUTE).toISOString().slice(0, 10);
    return exclude.some((entry) => {
      if (typeof entry === 'string') return entry === date;
      const { from, to } = entry;
      const at = typeof from === 'string' ? date : utc * MINUTE;
      return from <= at && at <= to;
    });
  }
}
