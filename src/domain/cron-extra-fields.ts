import { type CronSource, refuseCron } from './cron-refusal.js';
import { yearDates } from './cron-year.js';
import { isTimeZone } from './time-zone-names.js';

const AREA = /^(?!(?:SUN|MON|TUE|WED|THU|FRI|SAT)\/)[A-Z]{2,}\/[A-Z]/i;
const YEAR = /^[12]\d{3}(?:[-,/]\d+)*$/;

/**
 * Refuses what other notations write behind the fields, a zone or a year, with what says the same here.
 * @param fields at least five; the last one is looked at.
 * @throws CarillonError `INVALID_CRON`
 */
export function refuseExtraFields(source: CronSource, fields: readonly string[]): void {
  const count = fields.length;
  const last = fields.at(-1) ?? '';
  const rest = fields.slice(0, -1);
  if (count <= 7 && (namesZone(last) || (count === 7 && /^[A-Z][A-Za-z_]*(?:\/|$)/.test(last)))) {
    const whole = rest.length < 5 ? [...rest, '*'] : rest;
    throw refuseCron(
      source,
      `names the zone ${last} in the expression`,
      `set tz: '${last}' and write '${whole.join(' ')}'`,
    );
  }
  if (count === 7) {
    const dates = YEAR.test(last) ? `, and ${yearDates(last, source.tz)}` : '';
    throw refuseCron(
      source,
      'has seven fields, and there is no year field',
      `write six (second minute hour day-of-month month day-of-week): '${rest.join(' ')}'${dates}`,
    );
  }
  if (count !== 6) return;
  if (YEAR.test(last)) {
    throw refuseCron(
      source,
      `has the year ${last} as its sixth field, and there is no year field`,
      `write '${rest.join(' ')}', and ${yearDates(last, source.tz)}`,
    );
  }
  const place = fields[2] === '?' ? 'hour' : 'month';
  if (place === 'hour' || fields[4] === '?') {
    throw refuseCron(
      source,
      `the ${place} is ?, as in an expression whose sixth field is the year`,
      `leave the year out: '${rest.join(' ')}'`,
    );
  }
}

/** Weekdays are no zones, and no zone is a weekday with a step: `MON/2`. */
function namesZone(text: string): boolean {
  return text.includes('/') ? AREA.test(text) : isTimeZone(text);
}
