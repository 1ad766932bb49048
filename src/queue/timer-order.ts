/** The order of fire times, over many lists that are each in order already. */

/** A place in the order of time. `fireAt` in ms. */
export interface Timer {
  jobId: string;
  fireAt: number;
}

/** Timers in order, a page a call; an empty page is the end. */
export type TimerSource = () => Promise<Timer[]>;

/** Earliest first, or latest first. */
export function byTime(latestFirst: boolean): (a: Timer, b: Timer) => number {
  return latestFirst ? (a, b) => b.fireAt - a.fireAt : (a, b) => a.fireAt - b.fireAt;
}

/** Merges ordered sources up to `count` timers; each timer once, as a list that changes under way may show one twice. */
export async function mergeTimers(
  sources: readonly TimerSource[],
  latestFirst: boolean,
  count: number,
): Promise<Timer[]> {
  const order = byTime(latestFirst);
  const merged: Timer[] = [];
  const seen = new Set<string>();
  let open = sources.map((read) => ({ read, held: [] as Timer[] }));
  while (merged.length < count && open.length > 0) {
    await Promise.all(
      open.map(async (source) => {
        if (source.held.length === 0) source.held = await source.read();
      }),
    );
    open = open.filter(({ held }) => held.length > 0);
    // Nothing unread can come before the nearest of the last timers read.
    const lasts = open.map(({ held }) => held[held.length - 1] as Timer);
    const frontier = lasts.sort(order)[0];
    if (frontier === undefined) break;
    const ready: Timer[] = [];
    for (const source of open) {
      const upTo = source.held.findIndex((timer) => order(timer, frontier) > 0);
      ready.push(...source.held.splice(0, upTo === -1 ? source.held.length : upTo));
    }
    for (const timer of ready.sort(order)) {
      if (seen.has(timer.jobId)) continue;
      seen.add(timer.jobId);
      merged.push(timer);
    }
  }
  return merged.slice(0, count);
}
