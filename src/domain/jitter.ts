import { stableHash } from './stable-hash.js';

/**
 * How long after its scheduled time a tick fires, in whole ms.
 *
 * A pure function of identity and scheduled time: every instance, and every restart, gives the same answer. Never
 * negative, at most `jitter`, and always below `gapToNext`, so that a tick fires before the following one's
 * scheduled time and the order of ticks stands.
 * @param identity `<queue>:<jobId>`, any text.
 * @param scheduledFor the tick's scheduled time, ms since the epoch.
 * @param jitter the most to add, in ms; 0 adds nothing.
 * @param gapToNext ms from this tick to the following one; Infinity if there is none.
 */
export function jitterFor(identity: string, scheduledFor: number, jitter: number, gapToNext: number): number {
  const most = Math.min(Math.floor(jitter), Math.ceil(gapToNext) - 1);
  if (!(most > 0)) return 0;
  return stableHash(`${identity}@${scheduledFor}`) % (most + 1);
}
