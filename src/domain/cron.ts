import { BoundedMap } from './bounded-map.js';
import {
  type DayRule,
  daysOfMonth,
  daysOfWeek,
  dayTable,
  specialDayOfMonth,
  specialDayOfWeek,
} from './cron-days.js';
import { type CronFieldTexts, splitExpression } from './cron-expression.js';
import {
  type CronField,
  DAY_OF_MONTH,
  DAY_OF_WEEK,
  HOUR,
  MINUTE,
  MONTH,
  plainItem,
  SECOND,
  WEEKDAYS,
} from './cron-fields.js';
import type { CronSource } from './cron-refusal.js';
import { resolveSeeds } from './cron-seeded.js';
import { nextWallClock, type WallClockPattern } from './wall-clock.js';

/** A cron expression, read. */
export interface CronPattern extends WallClockPattern {
  /**
   * True if the hour field is `*` or `0-23`, with or without a step: the expression then fires at each instant
   * whose wall clock matches. False: once for each local date and time it names.
   */
  readonly interval: boolean;
  /** Two expressions with the same text here name the same times. */
  readonly canonical: string;
  /** What the author may not have meant. */
  readonly warnings: readonly string[];
}

/** Whether the times of an expression depend on the schedule's identity (`H` or `~` somewhere). */
export function usesSeed(expression: string): boolean {
  return /~|(?<![A-Z])H(?![A-Z])/i.test(expression);
}

/**
 * Reads an expression; `@every` gives its interval in ms instead.
 * @param seed the schedule's identity, for `H` and `~`.
 * @throws CarillonError `INVALID_CRON`, saying what to write instead.
 */
export function parseCron(source: CronSource, seed?: string): CronPattern | { readonly every: number } {
  const written = splitExpression(source);
  if ('every' in written) return written;
  const texts = resolveSeeds(written, seed, source);
  const interval = /^(?:\*|0?0-23)(?:\/\d+)?$/.test(written.hour);
  const key = [...Object.values(texts), interval].join(' ');
  let pattern = patterns.get(key);
  if (pattern === undefined) {
    pattern = readPattern(texts, interval, source);
    patterns.set(key, pattern);
  }
  return pattern;
}

/** Patterns by their fields: with `H` in minute and hour a million schedules share 1,440 of them. */
const patterns = new BoundedMap<CronPattern>(10_000);

function readPattern(texts: CronFieldTexts, interval: boolean, source: CronSource): CronPattern {
  const values = (field: CronField) =>
    texts[field.name].split(',').flatMap((item) => plainItem(field, item, source));
  // Vixie cron's rule, by the first character alone: */2 counts as a star too.
  const star = /^[*?]/.test(texts.dayOfMonth) || /^[*?]/.test(texts.dayOfWeek);
  const pattern = {
    nextSecond: nextNamed(values(SECOND), 60),
    nextMinute: nextNamed(values(MINUTE), 60),
    nextHour: nextNamed(values(HOUR), 24),
    months: values(MONTH).reduce((mask, month) => mask | (1 << (month - 1)), 0),
    days: dayTable(
      dayRule(DAY_OF_MONTH, texts.dayOfMonth, daysOfMonth, specialDayOfMonth, source),
      dayRule(DAY_OF_WEEK, texts.dayOfWeek, daysOfWeek, specialDayOfWeek, source),
      star,
    ),
  };
  return {
    ...pattern,
    interval,
    canonical: canonicalText(pattern, interval),
    warnings: warningsFor(texts, pattern),
  };
}

/** The rule of a day field: the union of its items, some of which need the month to be known. */
function dayRule(
  field: CronField,
  text: string,
  plain: (days: readonly number[]) => DayRule,
  special: (item: string, source: CronSource) => DayRule | undefined,
  source: CronSource,
): DayRule {
  const items = text === '?' ? ['*'] : text.split(',');
  const rules = items.map((item) => special(item, source) ?? plain(plainItem(field, item, source)));
  return (month) => rules.reduce((mask, rule) => mask | rule(month), 0);
}

function nextNamed(values: readonly number[], size: number): Uint8Array {
  const named = new Set(values);
  const next = new Uint8Array(size);
  let following = size;
  for (let i = size - 1; i >= 0; i--) {
    if (named.has(i)) following = i;
    next[i] = following;
  }
  return next;
}

function canonicalText(pattern: WallClockPattern, interval: boolean): string {
  const times = [pattern.nextSecond, pattern.nextMinute, pattern.nextHour].map((next) => {
    const named = [...next.keys()].filter((i) => next[i] === i);
    return named.length === next.length ? '*' : named.join(',');
  });
  // Shapes of month often share their days; a mask like the one before it is left empty.
  const days = [...pattern.days].map((mask, i) => (mask === pattern.days[i - 1] ? '' : mask.toString(36)));
  return [...times, pattern.months.toString(36), days.join('.'), interval ? 'interval' : 'fixed'].join(' ');
}

/** Of an expression that names days like 30 February only. */
export const IMPOSSIBLE_DAY = 'this expression never fires: no month it names has such a day';

function warningsFor(texts: CronFieldTexts, pattern: WallClockPattern): string[] {
  const warnings: string[] = [];
  if (nextWallClock(pattern, 0) === undefined) {
    warnings.push(IMPOSSIBLE_DAY);
  }
  const numbers = texts.dayOfWeek.match(/(?<![#/\d])\d+/g);
  if (texts.dayOfMonth === '?' && numbers !== null) {
    const days = numbers.map((number) => {
      const here = WEEKDAYS[Number(number) % 7];
      const quartz = WEEKDAYS[(Number(number) + 6) % 7];
      return `${number} is ${here} here (Quartz: ${quartz})`;
    });
    warnings.push(
      `day of week: ${[...new Set(days)].join(', ')}; Quartz counts from 1 = Sunday, so write the name`,
    );
  }
  return warnings;
}
