import type { FiringGroup, FiringGroups } from './forecast-groups.js';
import { eachFiring, type FiringShape, MINUTE_MS, type TakeFirings } from './forecast-shape.js';

/** Firings of each queue in each minute of a stretch. Jitter makes them fractions: what is to be expected. */
export class MinuteLoad {
  readonly minutes: number;
  readonly #queues = new Map<string, Float64Array>();

  /** @param from and `to`: whole minutes, ms. */
  constructor(
    readonly from: number,
    readonly to: number,
  ) {
    this.minutes = (to - from) / MINUTE_MS;
  }

  get queues(): string[] {
    return [...this.#queues.keys()].sort();
  }

  /** The firings of one queue by minute; all 0 for a queue without any. */
  of(queue: string): Float64Array {
    let load = this.#queues.get(queue);
    if (load === undefined) {
      load = new Float64Array(this.minutes);
      this.#queues.set(queue, load);
    }
    return load;
  }

  addGroups(groups: FiringGroups): void {
    for (const { shape, groups: members } of groups.shapes()) {
      const weights = [...members].map(({ queue, schedules }) => ({ load: this.of(queue), schedules }));
      const take = spreading(this, (minute, count) => {
        for (const { load, schedules } of weights)
          load[minute] = (load[minute] as number) + count * schedules;
      });
      eachFiring(shape, this.from, this.to, take);
    }
  }

  /** @param at any instant, ms; what lies outside the stretch is left out. */
  addOneTime(queue: string, at: number, count: number): void {
    const minute = Math.floor((at - this.from) / MINUTE_MS);
    if (minute < 0 || minute >= this.minutes) return;
    const load = this.of(queue);
    load[minute] = (load[minute] as number) + count;
  }
}

/** The firings of one group by minute. */
export function loadOf(
  group: Pick<FiringGroup, 'schedules'> & { shape: FiringShape },
  from: number,
  to: number,
): Float64Array {
  const load = new Float64Array((to - from) / MINUTE_MS);
  const take = spreading({ from, to }, (minute, count) => {
    load[minute] = (load[minute] as number) + count * group.schedules;
  });
  eachFiring(group.shape, from, to, take);
  return load;
}

/** Cuts the stretches over which firings may fall into minutes, each with its share. */
function spreading(
  { from, to }: { from: number; to: number },
  add: (minute: number, count: number) => void,
): TakeFirings {
  const minuteOf = (at: number) => Math.floor((at - from) / MINUTE_MS);
  return (at, spread, count) => {
    if (spread === 0) {
      add(minuteOf(at), count);
      return;
    }
    // Both ends of the stretch may be drawn.
    const end = Math.min(to, at + spread + 1);
    for (let start = Math.max(from, at); start < end; ) {
      const next = Math.min(end, from + (minuteOf(start) + 1) * MINUTE_MS);
      add(minuteOf(start), (count * (next - start)) / (spread + 1));
      start = next;
    }
  };
}
