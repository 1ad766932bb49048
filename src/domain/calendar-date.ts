import { CarillonError, shortText } from './errors.js';

const DATE = /^(\d{4})-(\d{2})-(\d{2})$/;
const FIRST_YEAR = 1970;

/** Whether a text has the form of a date, `2026-12-25`; it may still name no day. */
export function looksLikeDate(text: string): boolean {
  return DATE.test(text);
}

/**
 * Reads a local date and gives its midnight as a wall-clock time: ms since 1970 as a clock in no zone counts them.
 * @param field what the date is called in the error.
 * @throws CarillonError `INVALID_OPTION` for what is no date from 1970 to 9999, such as 30 February.
 */
export function parseDate(value: unknown, field: string): number {
  const [, year = '', month = '', day = ''] = (typeof value === 'string' ? DATE.exec(value) : null) ?? [];
  if (year === '') throw refuseDate(field, value, 'is not a date', "write year, month and day: '2026-12-25'");
  const midnight = Date.UTC(Number(year), Number(month) - 1, Number(day));
  const lastDay = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate();
  if (Number(month) < 1 || Number(month) > 12) {
    throw refuseDate(field, value, `has no month ${month}`, 'write a month from 01 to 12');
  }
  if (Number(day) < 1 || Number(day) > lastDay) {
    throw refuseDate(field, value, `has no day ${day}`, `write a day from 01 to ${lastDay}`);
  }
  if (Number(year) < FIRST_YEAR) {
    throw refuseDate(field, value, 'lies before 1970', 'write a date from 1970-01-01 to 9999-12-31');
  }
  return midnight;
}

function refuseDate(field: string, given: unknown, problem: string, todo: string): CarillonError {
  return new CarillonError('INVALID_OPTION', `${field}: ${shortText(given)} ${problem}; ${todo}`, {
    field,
    given,
    todo,
  });
}
