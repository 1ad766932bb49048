import { CarillonError, shortText } from './errors.js';

/** An instant: a Date, ms since the epoch, or an ISO text that names its offset, `2026-03-08T02:30:00Z`. */
export type Instant = Date | number | string;

/** 9999-12-31T23:59:59.999Z: the last instant that an option may name. */
export const LAST_INSTANT = 253_402_300_799_999;

const ISO = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(Z|[+-]\d{2}:?\d{2})?$/;

/**
 * Reads an instant and gives whole ms since the epoch, between 1970 and 9999.
 * @throws CarillonError `INVALID_OPTION` for anything that is no instant, or whose meaning would depend on the
 *   host's time zone: a text without offset, or a date without time.
 */
export function parseInstant(value: unknown, field: string): number {
  const ms = toMs(value, field);
  if (Number.isNaN(ms))
    throw invalid(field, value, 'is not an instant', "write ms since 1970 or '2026-03-08T02:30:00Z'");
  if (!Number.isInteger(ms))
    throw invalid(field, value, 'is not a whole number of ms', `write ${Math.round(ms)}`);
  if (ms < 0 || ms > LAST_INSTANT) {
    throw invalid(field, value, 'is outside the years 1970 to 9999', 'write a time from 1970 to 9999');
  }
  return ms + 0; // -0 becomes 0
}

function toMs(value: unknown, field: string): number {
  if (typeof value === 'number') return Number.isFinite(value) ? value : Number.NaN;
  if (value instanceof Date) return value.getTime();
  if (typeof value !== 'string') return Number.NaN;
  if (/^\d{4}-\d{2}-\d{2}$/.test(value)) {
    throw invalid(field, value, 'has no time of day', `write '${value}T00:00:00Z', or another offset`);
  }
  const match = ISO.exec(value);
  if (match === null) return Number.NaN;
  if (match[1] === undefined)
    throw invalid(field, value, 'has no offset', `write '${value}Z', or another offset`);
  const ms = Date.parse(value);
  // Date.parse takes 30 February for 2 March.
  const day = Number(value.slice(8, 10));
  const lastDay = new Date(Date.UTC(Number(value.slice(0, 4)), Number(value.slice(5, 7)), 0)).getUTCDate();
  return day > lastDay ? Number.NaN : ms;
}

function invalid(field: string, given: unknown, problem: string, todo: string): CarillonError {
  const message = `${field}: ${shortText(given)} ${problem}; ${todo}`;
  return new CarillonError('INVALID_OPTION', message, { field, given, todo });
}
