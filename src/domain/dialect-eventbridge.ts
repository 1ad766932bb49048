import { DAY_OF_WEEK } from './cron-fields.js';
import { type CronSource, refuseCron } from './cron-refusal.js';
import {
  anyDay,
  type DialectTiming,
  fillStart,
  plainCron,
  refuseListed,
  refuseOurs,
  refuseYear,
  splitFields,
  weekdaysFromOne,
} from './dialect-fields.js';
import type { TimingDefinition } from './fire-times-definition.js';

const DAY = 86_400_000;

/**
 * EventBridge and its Scheduler: `cron(minute hour day-of-month month day-of-week year)`, `rate(5 minutes)`,
 * `at(2027-01-31T09:12:00)`. Weekdays count from 1 = Sunday and one day field is `?`. The fields may stand alone.
 * @throws CarillonError INVALID_CRON
 */
export function eventBridgeTiming(source: CronSource): DialectTiming {
  const text = source.text.trim();
  const [, verb, inner = ''] = /^([a-z]+)\s*\((.*)\)$/is.exec(text) ?? [];
  switch (verb?.toLowerCase()) {
    case undefined:
    case 'cron':
      return cronTiming(source, verb === undefined ? text : inner);
    case 'rate':
      return { timing: { every: rateOf(source, inner) } };
    case 'at':
      return { timing: onceAt(source, inner.trim()) };
    default:
      throw refuseCron(
        source,
        `${verb}() is unknown to EventBridge`,
        'write cron(...), rate(...) or at(...)',
      );
  }
}

function cronTiming(source: CronSource, text: string): DialectTiming {
  const fields = splitFields(source, text);
  refuseOurs(fields, source, 'EventBridge');
  const plain = plainCron(fields, source, 'EventBridge');
  if (plain !== undefined) return { timing: { cron: plain.cron }, warnings: [plain.warning] };
  if (fields.length !== 6) {
    throw refuseCron(
      source,
      `has ${fields.length} fields, and EventBridge takes six`,
      'write minute hour day-of-month month day-of-week year',
    );
  }
  const [minute, hour, dayOfMonth, month, dayOfWeek, year] = fields as [
    string,
    string,
    string,
    string,
    string,
    string,
  ];
  refuseYear(year, source);
  if ((dayOfMonth === '?') === (dayOfWeek === '?')) {
    throw refuseCron(
      source,
      'is not valid in EventBridge: exactly one of the day fields must be ?',
      'write ? in the day field that does not matter',
    );
  }
  refuseListed(DAY_OF_WEEK, dayOfWeek, /#/, source, 'EventBridge');
  const cron = [
    fillStart(minute),
    fillStart(hour),
    anyDay(fillStart(dayOfMonth)),
    fillStart(month),
    weekdaysFromOne(dayOfWeek, source, 'EventBridge'),
  ].join(' ');
  return { timing: { cron } };
}

function rateOf(source: CronSource, text: string): string {
  const [, count, unit, plural] = /^\s*(\d+)\s+(minute|hour|day)(s?)\s*$/i.exec(text) ?? [];
  if (count === undefined || unit === undefined || Number(count) === 0) {
    throw refuseCron(source, 'is no rate', 'write rate(5 minutes), rate(1 hour) or rate(2 days)');
  }
  const isOne = Number(count) === 1;
  if (isOne !== (plural === '')) {
    throw refuseCron(
      source,
      'is no rate to EventBridge, which has the singular for 1 and the plural for more',
      `write rate(${Number(count)} ${unit.toLowerCase()}${isOne ? '' : 's'})`,
    );
  }
  return `${Number(count)}${unit.charAt(0).toLowerCase()}`;
}

/**
 * One instant, by its wall clock in the schedule's zone: a pattern that names it each year, the days round it as
 * bounds, and a limit of one.
 */
function onceAt(source: CronSource, text: string): TimingDefinition {
  const match = /^(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})$/.exec(text);
  const day = match === null ? Number.NaN : Date.parse(`${text.slice(0, 10)}T00:00:00Z`);
  const [, , month = '', date = '', hour = '', minute = '', second = ''] = match ?? [];
  // Date.parse takes 30 February for 2 March.
  if (Number.isNaN(day) || new Date(day).getUTCDate() !== Number(date)) {
    throw refuseCron(source, 'is no time', 'write at(2027-01-31T09:12:00)');
  }
  const cron = [second, minute, hour, date, month].map(Number).join(' ');
  return {
    cron: `${cron} *`,
    // Wall clocks lie up to 14 hours before UTC's and up to 12 behind.
    startDate: new Date(day - DAY).toISOString(),
    endDate: new Date(day + 2 * DAY).toISOString(),
    limit: 1,
  };
}
