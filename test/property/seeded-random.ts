export interface SeededRandom {
  /** A whole number from 0 to `count` - 1. */
  below(count: number): number;
  pick<T>(values: readonly T[]): T;
}

/** Numbers that look random and are the same in each run (the generator mulberry32). */
export function seededRandom(seed: number): SeededRandom {
  let state = seed;
  const fraction = () => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
  const below = (count: number) => Math.floor(fraction() * count);
  return { below, pick: <T>(values: readonly T[]) => values[below(values.length)] as T };
}
