import { CarillonError, shortText } from './errors.js';

/** A duration in milliseconds, or a text such as `'30s'`, `'5m'`, `'1h30m'`, `'1d'`. */
export type Duration = number | string;

interface DurationLimits {
  /** The option's name, for the error. Defaults to `duration`. */
  field?: string;
  /** Smallest duration accepted, in ms. Defaults to 0. */
  min?: number;
  /** Largest duration accepted, in ms. Defaults to {@link LONGEST_DURATION}. */
  max?: number;
}

/** 9,000 years in ms: anything longer cannot end before the year 10000, the last one that times may name. */
export const LONGEST_DURATION = 9_000 * 365 * 86_400_000;

const UNITS: ReadonlyArray<readonly [unit: string, ms: number]> = [
  ['w', 604_800_000],
  ['d', 86_400_000],
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
  ['ms', 1],
];
const UNIT_MS = new Map(UNITS);
const TEXT = /^(?:\d+(?:ms|[wdhms]) ?)+$/;
const PART = /(\d+)(ms|[wdhms])/g;
const HOW = "write whole milliseconds or a text such as '30s', '5m', '1h30m' or '1d'";

/**
 * Reads a duration and gives whole milliseconds.
 *
 * Units are `w`, `d` (24 hours), `h`, `m`, `s` and `ms`, largest first, each at most once. Numbers are milliseconds.
 * @throws CarillonError `INVALID_DURATION` for NaN, fractions, negatives, numbers written as text, unknown units,
 *   any other type, and values outside `min` and `max`.
 */
export function parseDuration(value: unknown, limits: DurationLimits = {}): number {
  const { field = 'duration', min = 0, max = LONGEST_DURATION } = limits;
  const ms = typeof value === 'string' ? parseText(value, field) : parseNumber(value, field);
  if (ms < min) {
    throw invalid(
      field,
      value,
      `is shorter than ${formatDuration(min)}`,
      `write ${formatDuration(min)} or more`,
    );
  }
  if (ms > max) {
    throw invalid(
      field,
      value,
      `is longer than ${formatDuration(max)}`,
      `write ${formatDuration(max)} or less`,
    );
  }
  return ms;
}

/** Writes whole milliseconds the way {@link parseDuration} reads them: `5400000` is `1h30m`, `0` is `0s`. */
export function formatDuration(ms: number): string {
  let rest = parseNumber(ms, 'duration');
  let text = '';
  for (const [unit, size] of UNITS) {
    // A week is never written: '14d' says more than '2w' beside days and hours.
    if (unit === 'w') continue;
    const count = Math.floor(rest / size);
    if (count > 0) text += `${count}${unit}`;
    rest -= count * size;
  }
  return text === '' ? '0s' : text;
}

function parseNumber(value: unknown, field: string): number {
  if (typeof value !== 'number') throw invalid(field, value, 'is not a duration', HOW);
  if (!Number.isFinite(value)) throw invalid(field, value, 'is not a finite number', HOW);
  if (value < 0) throw invalid(field, value, 'is negative', HOW);
  if (!Number.isInteger(value)) {
    throw invalid(field, value, 'is not a whole number of milliseconds', `write ${Math.round(value)}`);
  }
  return value + 0; // -0 becomes 0
}

function parseText(text: string, field: string): number {
  if (/^\d+$/.test(text)) {
    throw invalid(field, text, 'has no unit', `write ${text} (milliseconds) or '${text}ms'`);
  }
  if (/^[\d.]+(?:ms|[wdhms])$/.test(text) && text.includes('.')) {
    throw invalid(
      field,
      text,
      'is not a whole number',
      "use a smaller unit: '1h30m' or '90m' for one and a half hours",
    );
  }
  if (!TEXT.test(text)) throw invalid(field, text, 'is not a duration', HOW);
  let total = 0;
  let smallest = Number.POSITIVE_INFINITY;
  for (const [, count = '', unit = ''] of text.matchAll(PART)) {
    const size = UNIT_MS.get(unit) ?? Number.NaN;
    if (size >= smallest) {
      throw invalid(field, text, 'has its units out of order', 'write the largest unit first, each once');
    }
    smallest = size;
    total += Number(count) * size;
  }
  if (!Number.isSafeInteger(total)) throw invalid(field, text, 'is too long', HOW);
  return total;
}

function invalid(field: string, given: unknown, problem: string, todo: string): CarillonError {
  const message = `${field}: ${shortText(given)} ${problem}; ${todo}`;
  return new CarillonError('INVALID_DURATION', message, { field, given, todo });
}
