import { type CronField, DAY_OF_WEEK, fieldValue, MONTH, WEEKDAYS } from './cron-fields.js';
import { type CronSource, refuseCron } from './cron-refusal.js';
import { yearDates } from './cron-year.js';
import type { TimingDefinition } from './fire-times-definition.js';

/** What one dialect makes of an expression. */
export interface DialectTiming {
  readonly timing: TimingDefinition;
  readonly warnings?: readonly string[];
}

/** The fields of an expression, in upper case; none of them is empty. */
export function splitFields(source: CronSource, text: string): string[] {
  const fields = text.trim().toUpperCase().split(/\s+/);
  if (fields[0] === '') throw refuseCron(source, 'is empty', 'write its fields');
  return fields;
}

/** True for a day field that names every day. */
export function isAnyDay(field: string): boolean {
  return field === '*' || field === '?';
}

/** Seconds that are always 0 are left out: five fields say the same. */
export function joinFields(second: string, ...rest: readonly string[]): string {
  return (/^0+$/.test(second) ? rest : [second, ...rest]).join(' ');
}

/** `?` means "not this day field"; our `*` says so too, and names no weekday by number beside it. */
export function anyDay(field: string): string {
  return field === '?' ? '*' : field;
}

/** A step without a start, `/5`, begins at the first value. */
export function fillStart(field: string): string {
  return field
    .split(',')
    .map((item) => (item.startsWith('/') ? `*${item}` : item))
    .join(',');
}

/**
 * A day-of-week field that counts from 1 = Sunday, by names: `2-6` is `MON-FRI`, `6L` is `FRIL`, `2#1` is `MON#1`, a
 * bare `L` is Saturday.
 * @throws CarillonError INVALID_CRON for a number that is no such day.
 */
export function weekdaysFromOne(field: string, source: CronSource, whose: string): string {
  if (isAnyDay(field)) return '*';
  return fillStart(field)
    .split(',')
    .map((item) => weekdayItem(item, source, whose))
    .join(',');
}

function weekdayItem(item: string, source: CronSource, whose: string): string {
  if (item === 'L') return 'SAT';
  const special = /^([0-9A-Z]+)(L|#\d+)$/.exec(item);
  if (special !== null) return `${weekdayName(special[1] ?? '', source, whose)}${special[2]}`;
  const [range = '', ...steps] = item.split('/');
  const days = range
    .split('-')
    .map((day) => (day === '*' ? day : weekdayName(day, source, whose)))
    .join('-');
  return [days, ...steps].join('/');
}

function weekdayName(text: string, source: CronSource, whose: string): string {
  if (!/^\d+$/.test(text)) return text;
  const name = WEEKDAYS[Number(text) - 1];
  if (name !== undefined) return name.slice(0, 3).toUpperCase();
  throw refuseCron(
    source,
    `day of week: ${text} is no day: ${whose} counts from 1 = Sunday to 7 = Saturday`,
    'write the day by its name, such as SUN',
  );
}

const FULL_NAMES = [DAY_OF_WEEK, MONTH]
  .flatMap(({ names }) => [...(names?.keys() ?? [])])
  .filter((name) => name.length > 3);

/** Refuses what our own notation has and other schedulers do not: values that an id picks, and names in full. */
export function refuseOurs(fields: readonly string[], source: CronSource, whose: string): void {
  for (const field of fields) {
    const [seeded] = /~|(?<![A-Z])H(?![A-Z])/.exec(field) ?? [];
    if (seeded !== undefined) {
      throw refuseCron(
        source,
        `holds ${seeded}, which ${whose} does not have`,
        'write a value, or leave the dialect out, where the schedule’s id picks one',
      );
    }
    const name = FULL_NAMES.find((full) => new RegExp(`\\b${full}L?\\b`).test(field));
    if (name !== undefined) {
      throw refuseCron(source, `${whose} knows ${name} by three letters`, `write ${name.slice(0, 3)}`);
    }
  }
}

/**
 * Refuses days such as L or MON#2 in a list, for schedulers that take them alone.
 * @param special what such an item holds.
 */
export function refuseListed(
  field: CronField,
  text: string,
  special: RegExp,
  source: CronSource,
  whose: string,
): void {
  const items = text.split(',');
  const found = items.find((item) => special.test(item));
  if (items.length === 1 || found === undefined) return;
  throw refuseCron(
    source,
    `${field.label}: ${whose} takes ${found} alone, not in a list`,
    'write one schedule for each',
  );
}

/**
 * Refuses ranges that run backwards, for schedulers that do not wrap them round.
 * @param field what the text is; a Sunday that ends a range is 7, unless it is written as 0.
 */
export function refuseReversed(field: CronField, text: string, source: CronSource, whose: string): void {
  for (const item of text.split(',')) {
    const [, first, last] = /^([0-9A-Z]+)-([0-9A-Z]+)(?:\/.*)?$/.exec(item) ?? [];
    if (first === undefined || last === undefined || first === 'L') continue;
    const from = fieldValue(field, first, source);
    const end = fieldValue(field, last, source);
    const to = field === DAY_OF_WEEK && end === 0 && !/^0+$/.test(last) ? 7 : end;
    if (from > to) {
      throw refuseCron(
        source,
        `${field.label}: ${whose} takes no range that runs backwards, ${first}-${last}`,
        'write two ranges',
      );
    }
  }
}

/**
 * Drops a year field that says nothing.
 * @throws CarillonError INVALID_CRON for any other, with the dates that say the same.
 */
export function refuseYear(year: string | undefined, source: CronSource): void {
  if (year === undefined || year === '*') return;
  const dates = yearDates(year, source.tz);
  throw refuseCron(
    source,
    `the year ${year} cannot stand in an expression`,
    `leave the year out, and write ${dates}`,
  );
}

/**
 * Five fields are plain cron, whoever wrote them; undefined for any other number.
 * @throws CarillonError INVALID_CRON where a weekday's number could be meant either way.
 */
export function plainCron(
  fields: readonly string[],
  source: CronSource,
  whose: string,
): { cron: string; warning: string } | undefined {
  if (fields.length !== 5) return undefined;
  if (fields[2] === '?' && /\d/.test((fields[4] ?? '').replace(/[#/]\d+/g, ''))) {
    throw refuseCron(
      source,
      `has five fields, as plain cron has, and ? as ${whose} has: the weekday ${fields[4]} could be either’s`,
      'write the weekday by its name',
    );
  }
  return {
    cron: fields.join(' '),
    warning: `five fields are plain cron, not ${whose}: weekdays count from 0 = Sunday`,
  };
}
