import { parseDuration } from './durations.js';
import { narrowWideSteps } from './wide-steps.js';

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
 * Says in our notation what BullMQ makes of a pattern that it has: as {@link readAsBullmq}, and besides it fills missing
 * fields from the left and takes steps that lead beyond their range.
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
  const narrowed = narrowWideSteps(fields, 'BullMQ', 7);
  warnings.push(...narrowed.warnings);
  const cron = inOurWords(narrowed.fields).join(' ');
  if (fields.some((field) => /(?<![A-Z])H(?![A-Z])/i.test(field))) {
    warnings.push('H: BullMQ draws another value each time; here it stays, by the schedule’s id');
  }
  return { cron, warnings };
}

/**
 * Says in our notation what BullMQ makes of a pattern that is written anew. BullMQ counts `*` alone as no restriction of a
 * day field, ours each field that begins with a star; its week has a second Sunday, 7, which `MON/2` leads to; and its
 * `?` is a star anywhere. What needs no other words, or is to be refused, stays as it is written.
 */
export function readAsBullmq(pattern: string): string {
  const fields = pattern.trim().split(/\s+/);
  if (fields.length !== 5 && fields.length !== MOST_FIELDS) return pattern;
  const words = inOurWords(fields);
  return words.every((field, i) => field === fields[i]) ? pattern : words.join(' ');
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

function inOurWords(written: readonly string[]): string[] {
  const [month, weekday] = [written.length - 3, written.length - 1];
  const isDays = (at: number) => at === month || at === weekday;
  const fields = written.map((field, at) =>
    isDays(at) && field === '?' ? field : field.replace(/(^|,)\?/g, '$1*'),
  );
  fields[weekday] = (fields[weekday] ?? '').split(',').map(toSecondSunday).join(',');
  if (!isAny(written[month]) && !isAny(written[weekday])) {
    fields[month] = starsAsRanges(fields[month] ?? '', '1-31');
    fields[weekday] = starsAsRanges(fields[weekday] ?? '', '0-6');
  }
  return fields;
}

/** A step of weekdays counts on to 7 in BullMQ. */
function toSecondSunday(item: string): string {
  if (/^(?:\*|0+|SUN|(?:0+|SUN)-0*7)\/0*7$/i.test(item)) return '0';
  if (/^0*7\/0*[1-9]\d*$/.test(item)) return '7';
  const [, first, step] = /^(0*[1-6]|[A-Z]{3})\/(\d+)$/i.exec(item) ?? [];
  return first === undefined ? item : `${first}-7/${step}`;
}

function isAny(field: string | undefined): boolean {
  return field === '*' || field === '?';
}

function starsAsRanges(field: string, range: string): string {
  return field.replace(/(^|,)\*/g, `$1${range}`);
}
