/** An interval counted from a fixed instant; all in ms. */
export interface IntervalRule {
  readonly every: number;
  /** Ticks lie at `anchor + k * every`, and the anchor never moves. */
  readonly anchor: number;
  /** The smallest `k`: 1 if the anchor is the moment of creation, which is no tick itself; 0 if it was chosen. */
  readonly firstCount: 0 | 1;
}

/** The first tick strictly after `after`, by arithmetic, however far away; undefined beyond `last`. */
export function nextIntervalTime(rule: IntervalRule, after: number, last: number): number | undefined {
  const count = Math.max(rule.firstCount, Math.floor((after - rule.anchor) / rule.every) + 1);
  const time = rule.anchor + count * rule.every;
  return time > last ? undefined : time;
}
