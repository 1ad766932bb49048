import { DAY_OF_MONTH, DAY_OF_WEEK } from './cron-fields.js';
import { type CronSource, refuseCron } from './cron-refusal.js';
import {
  anyDay,
  type DialectTiming,
  fillStart,
  isAnyDay,
  joinFields,
  plainCron,
  refuseListed,
  refuseOurs,
  refuseYear,
  splitFields,
  weekdaysFromOne,
} from './dialect-fields.js';
import { checkTimeZone } from './time-zone-names.js';

/**
 * Quartz: second minute hour day-of-month month day-of-week [year], where weekdays count from 1 = Sunday and one of
 * the day fields is `?`. A zone behind the fields, as some products write it, is taken.
 * @throws CarillonError INVALID_CRON
 */
export function quartzTiming(source: CronSource): DialectTiming {
  const { text, tz } = takeZone(source.text);
  const fields = splitFields(source, text);
  refuseOurs(fields, source, 'Quartz');
  const plain = plainCron(fields, source, 'Quartz');
  if (plain !== undefined) return { timing: { cron: plain.cron, ...tz }, warnings: [plain.warning] };
  if (fields.length !== 6 && fields.length !== 7) {
    throw refuseCron(
      source,
      `has ${fields.length} fields`,
      'write second minute hour day-of-month month day-of-week, and a year if need be',
    );
  }
  const [second, minute, hour, dayOfMonth, month, dayOfWeek, year] = fields as [
    string,
    string,
    string,
    string,
    string,
    string,
    string?,
  ];
  refuseYear(year, { ...source, ...tz });
  if (dayOfMonth === '?' && dayOfWeek === '?') {
    throw refuseCron(source, 'has ? in both day fields', 'write * in one of them');
  }
  if (!isAnyDay(dayOfMonth) && !isAnyDay(dayOfWeek)) {
    throw refuseCron(
      source,
      'names days of the month and of the week, which Quartz does not take together',
      'write ? in one of the two fields',
    );
  }
  refuseListed(DAY_OF_MONTH, dayOfMonth, /L/, source, 'Quartz');
  refuseListed(DAY_OF_WEEK, dayOfWeek, /L|#/, source, 'Quartz');
  const cron = joinFields(
    fillStart(second),
    fillStart(minute),
    fillStart(hour),
    anyDay(fillStart(dayOfMonth)),
    fillStart(month),
    weekdaysFromOne(dayOfWeek, source, 'Quartz'),
  );
  return { timing: { cron, ...tz } };
}

/** A last word that names a zone is none of the fields: `0 1 * * * ? UTC`. */
function takeZone(text: string): { text: string; tz: { tz?: string } } {
  const [, rest, zone] = /^(.*\S)\s+([A-Za-z][A-Za-z_]*(?:\/[A-Za-z0-9_+/-]+)?)$/.exec(text.trim()) ?? [];
  if (rest === undefined || zone === undefined || rest.split(/\s+/).length < 5) return { text, tz: {} };
  try {
    return { text: rest, tz: { tz: checkTimeZone(zone) } };
  } catch {
    return { text, tz: {} };
  }
}
