import type { ExplainedTick } from './exclusions-explain.js';
import type { CompiledTiming } from './fire-times.js';
import type { ExplainedTime } from './fire-times-explain.js';
import type { StoredPolicies } from './schedule.js';
import { Ticks } from './ticks.js';

/** A tick that is to come, and why it comes then: clock changes, what was excluded before it, jitter. */
export type PreviewedTime = ExplainedTime &
  Partial<ExplainedTick> & {
    /** When it fires: its scheduled time and jitter; ms. */
    readonly fireAt: number;
  };

/**
 * The next ticks of a schedule, explained.
 * @param timing the compiled definition.
 * @param policies of the definition: its jitter.
 * @param identity `queue:id`, which seeds the jitter.
 * @param after ms; the ticks after this one.
 */
export function previewTicks(
  timing: CompiledTiming,
  policies: StoredPolicies,
  identity: string,
  after: number,
  count: number,
): PreviewedTime[] {
  const ticks = new Ticks(timing, policies, identity);
  return timing.explainNext(after, count).map((time) => ({ ...time, fireAt: ticks.fireTimeOf(time.at) }));
}
