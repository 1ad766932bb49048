import { parseDuration } from './durations.js';

/** The fields that BullMQ puts before a pattern that has fewer than six. */
const FILLED = ['0', '*', '*', '*', '*', '*'];
const MOST_FIELDS = FILLED.length;
const EVERY = '@every ';

/** A pattern of BullMQ in our notation. */
export interface FromBullmq {
  readonly cron: string;
  /** What the author may not have meant. */
  readonly warnings: readonly string[];
}

/**
 * Says in our notation what BullMQ makes of a pattern. The two differ in day fields: BullMQ counts `*` alone as no
 * restriction, ours each field that begins with a star; and BullMQ fills missing fields from the left.
 */
export function fromBullmqPattern(pattern: string): FromBullmq {
  const written = pattern.trim();
  if (written.startsWith('@')) return { cron: written, warnings: [] };
  const fields = written === '' ? [] : written.split(/\s+/);
  const warnings: string[] = [];
  if (fields.length < 5) {
    warnings.push(
      `the pattern ${JSON.stringify(pattern)} has ${fields.length} fields; BullMQ fills the others from the left`,
    );
    fields.unshift(...FILLED.slice(0, MOST_FIELDS - fields.length));
  }
  const [month, weekday] = [fields.length - 3, fields.length - 1];
  if (!isAny(fields[month]) && !isAny(fields[weekday])) {
    fields[month] = starsAsRanges(fields[month] ?? '', '1-31');
    fields[weekday] = starsAsRanges(fields[weekday] ?? '', '0-6');
  }
  if (fields.some((field) => /(?<![A-Z])H(?![A-Z])/i.test(field))) {
    warnings.push('H: BullMQ draws another value each time; here it stays, by the schedule’s id');
  }
  return { cron: fields.join(' '), warnings };
}

/**
 * An expression of ours for BullMQ: a pattern, or the ms of an `@every`. Whether BullMQ then fires at the same times
 * is for the caller to compare; not every expression has such a pattern.
 */
export function toBullmqPattern(cron: string): { pattern: string } | { every: number } {
  const text = cron.trim();
  const lower = text.toLowerCase();
  if (lower.startsWith(EVERY)) return { every: parseDuration(lower.slice(EVERY.length), { field: 'cron' }) };
  if (lower === '@midnight') return { pattern: '@daily' };
  if (lower.startsWith('@')) return { pattern: lower };
  // BullMQ's parser knows names by three letters, and letters such as L in upper case.
  const short = text
    .toUpperCase()
    .replace(/[A-Z]{4,}/g, (word) => (/^...L$/.test(word) ? word : word.slice(0, 3)));
  return { pattern: short };
}

function isAny(field: string | undefined): boolean {
  return field === '*' || field === '?';
}

function starsAsRanges(field: string, range: string): string {
  return field.replace(/(^|,)[*?]/g, `$1${range}`);
}
