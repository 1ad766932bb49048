import { CROND_NICKNAMES, SIX_FIELDS } from './cron-fields.js';
import { type CronSource, refuseCron } from './cron-refusal.js';
import {
  anyDay,
  type DialectTiming,
  joinFields,
  refuseOurs,
  refuseReversed,
  splitFields,
} from './dialect-fields.js';

/**
 * Spring's CronExpression: second minute hour day-of-month month day-of-week, or a macro. Weekdays count as in plain
 * cron, but steps run from Monday to Sunday, 7; a day must match both day fields, where cron is content with either.
 * @throws CarillonError INVALID_CRON
 */
export function springTiming(source: CronSource): DialectTiming {
  const text = source.text.trim();
  if (text === '-') {
    throw refuseCron(source, 'switches the method off in Spring', 'leave the schedule out, or pause it');
  }
  if (text.startsWith('@')) {
    const macro = text.toLowerCase();
    if (CROND_NICKNAMES.has(macro)) return { timing: { cron: macro } };
    throw refuseCron(source, 'is no macro of Spring', `write one of ${[...CROND_NICKNAMES].join(', ')}`);
  }
  const fields = splitFields(source, text);
  if (fields.length !== 6) {
    const six = fields.length === 5 ? `: '0 ${fields.join(' ')}'` : '';
    throw refuseCron(
      source,
      `has ${fields.length} fields, and Spring takes six`,
      `write second minute hour day-of-month month day-of-week${six}`,
    );
  }
  refuseOurs(fields, source, 'Spring');
  for (const [i, field] of SIX_FIELDS.entries()) refuseReversed(field, fields[i] ?? '', source, 'Spring');
  const [second = '', minute = '', hour = '', dayOfMonth = '', month = '', days = ''] = fields;
  const workday = dayOfMonth.split(',').find((item) => /^L-\d+W$/.test(item));
  if (workday !== undefined) {
    throw refuseCron(
      source,
      `day of month: Spring does not take ${workday}`,
      `write ${workday.slice(0, -1)} or LW`,
    );
  }
  const dayOfWeek = days.split(',').map(weekdayItem).join(',');
  // Ours is "both" only where one of the two begins with a star.
  if (!/^[*?]/.test(dayOfMonth) && !/^[*?]/.test(dayOfWeek)) {
    throw refuseCron(
      source,
      'names days of the month and of the week: Spring fires where both match, cron where either does',
      'name the one here, and let the worker look at the other',
    );
  }
  return { timing: { cron: joinFields(second, minute, hour, anyDay(dayOfMonth), month, anyDay(dayOfWeek)) } };
}

/** An item of weekdays in our week, which runs from Sunday, 0, to Saturday. */
function weekdayItem(item: string): string {
  const [, first = '', last, step] =
    /^(\*|\d+|[A-Z]{3})(?:-(\d+|[A-Z]{3}))?(?:\/(0*[1-9]\d*))?$/.exec(item) ?? [];
  const isSunday = (day: string) => day === 'SUN' || Number(day) === 7;
  const isZero = /^0+$/.test(first);
  if (last !== undefined) {
    // A range that begins on Sunday begins on 0, so this one names each day.
    const isWeek = isSunday(last) && (isSunday(first) || isZero);
    return isWeek ? `0-7${step === undefined ? '' : `/${step}`}` : item;
  }
  if (step === undefined || isZero) return item;
  if (isSunday(first)) return first;
  if (first !== '*') return `${first}-7/${step}`;
  return Number(step) === 1 ? '*' : `1-7/${step}`;
}
