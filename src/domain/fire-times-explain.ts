import type { CronRule } from './fire-times-cron.js';
import type { OffsetSource, OffsetSpan } from './time-zone-offsets.js';
import { formatWallClock, nextWallClock } from './wall-clock.js';

/** A scheduled time with the reasons behind it, for previews. */
export interface ExplainedTime {
  /** The scheduled time, ms since the epoch. */
  readonly at: number;
  /** What the wall clock of the schedule's zone shows then, with its offset: `2026-03-08T03:30:00-04:00`. */
  readonly wallClock: string;
  /** What clock changes did to this time, and to those between it and the one before. Mostly empty. */
  readonly notes: readonly ClockNote[];
}

/** What a clock change did to a time that an expression names. */
export interface ClockNote {
  /** `gap`: the clock skips the time. `fold`: it shows it twice. */
  readonly change: 'gap' | 'fold';
  readonly outcome: 'shifted' | 'at-change' | 'skipped' | 'first-pass' | 'second-pass';
  /** The wall-clock time that the expression names, `2026-03-08T02:30:00`. */
  readonly named: string;
  /** The same as a sentence. */
  readonly text: string;
}

/** Rare schedules pass many clock changes from one time to the next; only so many are looked at. */
const MOST_SPANS = 64;

/** Explains times that follow each other, the first of them following `after`. */
export function explainTimes(
  rules: readonly CronRule[],
  zone: OffsetSource,
  after: number,
  times: readonly number[],
): ExplainedTime[] {
  return times.map((at, i) => ({
    at,
    wallClock: zonedText(zone, at),
    notes: rules.flatMap((rule) => [
      ...skippedBetween(rule, times[i - 1] ?? after, at),
      ...notesAt(rule, at),
    ]),
  }));
}

/** A wall-clock time with its offset, `2026-03-08T03:30:00-04:00`. */
export function zonedText(zone: OffsetSource, at: number): string {
  const { offset } = zone.spanAt(at);
  const size = new Date(Math.abs(offset)).toISOString();
  const text = size.slice(17, 19) === '00' ? size.slice(11, 16) : size.slice(11, 19);
  return `${formatWallClock(at + offset)}${offset < 0 ? '-' : '+'}${text}`;
}

/** The times that fell into a gap and did not happen, one note a gap, after `previous` and up to `at`. */
function skippedBetween(rule: CronRule, previous: number, at: number): ClockNote[] {
  if (!rule.pattern.interval && rule.gap !== 'skip') return [];
  const notes: ClockNote[] = [];
  let span = rule.zone.spanAt(previous);
  for (let i = 0; i < MOST_SPANS && span.end <= at; i++) {
    span = rule.zone.spanAt(span.end);
    const named = firstInGap(rule, span);
    if (named !== undefined) {
      notes.push(note('gap', 'skipped', named, (time) => `the clock skips ${time}, which does not run`));
    }
  }
  return notes;
}

function notesAt(rule: CronRule, at: number): ClockNote[] {
  const span = rule.zone.spanAt(at);
  const notes: ClockNote[] = [];
  const fixed = !rule.pattern.interval;
  const inGap = firstInGap(rule, span);
  if (fixed && inGap !== undefined) {
    const shifted = at + span.offsetBefore;
    if (rule.gap === 'edge' && at === span.start) {
      notes.push(note('gap', 'at-change', inGap, (time) => `the clock skips ${time}: runs at the change`));
    } else if (rule.gap === 'shift' && shifted < span.start + span.offset && names(rule, shifted)) {
      notes.push(note('gap', 'shifted', shifted, (time) => `the clock skips ${time}: moved on by the gap`));
    }
  }
  const wallClock = at + span.offset;
  if (!names(rule, wallClock)) return notes;
  const others = fixed && rule.fold !== 'both' ? 'only this pass counts' : 'both passes run';
  if (wallClock < span.start + span.offsetBefore) {
    notes.push(
      note('fold', 'second-pass', wallClock, (time) => `the clock shows ${time} twice, now again: ${others}`),
    );
  }
  if (wallClock >= span.end + span.offsetAfter) {
    notes.push(
      note('fold', 'first-pass', wallClock, (time) => `the clock shows ${time} twice, now first: ${others}`),
    );
  }
  return notes;
}

/** The first time that the rule names in the gap at a span's start. */
function firstInGap(rule: CronRule, span: OffsetSpan): number | undefined {
  if (span.offset <= span.offsetBefore) return undefined;
  const named = nextWallClock(rule.pattern, span.start + span.offsetBefore);
  return named !== undefined && named < span.start + span.offset ? named : undefined;
}

function names(rule: CronRule, wallClock: number): boolean {
  return nextWallClock(rule.pattern, wallClock) === wallClock;
}

function note(
  change: ClockNote['change'],
  outcome: ClockNote['outcome'],
  wallClock: number,
  say: (time: string) => string,
): ClockNote {
  const named = formatWallClock(wallClock);
  return { change, outcome, named, text: say(named.replace('T', ' ').replace(/:00$/, '')) };
}
