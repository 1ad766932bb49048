import { clockChanges, ROUND_CHANGE } from '../domain/clock-changes.js';
import { CarillonError } from '../domain/errors.js';
import type { CompiledTiming } from '../domain/fire-times.js';
import { nextBullmqTime } from '../queue/job-scheduler-times.js';

/** Fire times that must be the same in BullMQ before it is given a pattern. */
const COMPARED = 24;
/** How many more are looked at round a change of clocks: each minute of eight hours. */
const MOST_ROUND_CHANGE = 500;
/** The next so many changes are looked at: one forward and one back. */
const CHANGES = 2;
const SHORTLY = 60_000;

/**
 * Compares when a pattern would fire in BullMQ with when the schedule does: the next ticks, and those round the next
 * changes of the zone's clocks, where the two have rules of their own.
 * @param after the ticks after it count; ms.
 * @throws CarillonError UNSUPPORTED for a pattern that BullMQ does not take, or fires at other times
 */
export function compareWithBullmq(timing: CompiledTiming, pattern: string, after: number): void {
  const { tz } = timing;
  const compare = (from: number, until: number, most: number): boolean => {
    let time = from;
    let n = 0;
    for (; n < most && (n < COMPARED || time < until); n++) {
      const own = timing.next(time);
      const their = upTo(timing.endDate, theirNext(pattern, tz, time));
      if (own !== their) throw differs(pattern, tz, own, their);
      if (own === undefined) break;
      time = own;
    }
    return n < most;
  };
  compare(after, after, COMPARED);
  for (const change of clockChanges(tz, after, CHANGES)) {
    if (compare(Math.max(after, change - ROUND_CHANGE), change + ROUND_CHANGE, MOST_ROUND_CHANGE)) continue;
    // Many ticks a minute: those before the change took up all that are looked at.
    compare(Math.max(after, change - SHORTLY), change, MOST_ROUND_CHANGE);
  }
}

function theirNext(pattern: string, tz: string, after: number): number | undefined {
  try {
    return nextBullmqTime(pattern, tz, after);
  } catch (error) {
    throw new CarillonError(
      'UNSUPPORTED',
      `BullMQ does not take ${pattern}: ${error instanceof Error ? error.message : String(error)}`,
      { todo: 'Write it without what BullMQ lacks first.' },
    );
  }
}

function upTo(endDate: number | undefined, time: number | undefined): number | undefined {
  return time !== undefined && endDate !== undefined && time > endDate ? undefined : time;
}

function differs(pattern: string, tz: string, own: number | undefined, their: number | undefined) {
  const [here, there] = [own, their].map((at) => (at === undefined ? 'never' : new Date(at).toISOString()));
  return new CarillonError(
    'UNSUPPORTED',
    `BullMQ would fire ${pattern} in ${tz} at other times: at ${there} instead of ${here}`,
    { todo: 'Write it so that both agree first; in UTC no change of clocks parts them.' },
  );
}
