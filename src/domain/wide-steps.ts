import { type CronField, DAY_OF_WEEK, SIX_FIELDS, WEEKDAYS } from './cron-fields.js';

/** Fields without steps that lead beyond their range, and what to tell of those that had them. */
export interface NarrowedSteps {
  readonly fields: readonly string[];
  readonly warnings: readonly string[];
}

const STEPPED = /^(?:[*?]|([0-9A-Z]+)(?:-([0-9A-Z]+))?)\/(\d+)$/i;

/**
 * Writes a step that leads beyond its range as the one value that it names: such a job runs in crond, Kubernetes and
 * BullMQ, and is to be kept, although nobody may write it anew here.
 * @param fields five or six, in the notation of whoever runs them; others come back as they are.
 * @param lastWeekday where their week ends: 7 is a second Sunday.
 */
export function narrowWideSteps(fields: readonly string[], whose: string, lastWeekday: 6 | 7): NarrowedSteps {
  if (fields.length !== 5 && fields.length !== 6) return { fields, warnings: [] };
  const warnings: string[] = [];
  const narrowed = SIX_FIELDS.slice(-fields.length).map((field, i) => {
    const narrow = (item: string) => {
      const value = onlyValue(field, item, lastWeekday);
      if (value === undefined) return item;
      const alone = field === DAY_OF_WEEK ? `${value} (${dayName(value)})` : value;
      warnings.push(
        `${field.label}: ${item}: the step leads beyond the range, so ${whose} runs it as ${alone} alone, and so it is kept`,
      );
      return value;
    };
    return (fields[i] ?? '').split(',').map(narrow).join(',');
  });
  return { fields: narrowed, warnings };
}

/** The value of an item whose step leads nowhere else; undefined for any other item. */
function onlyValue(field: CronField, item: string, lastWeekday: number): string | undefined {
  const [, first, last, step] = STEPPED.exec(item) ?? [];
  const from = first === undefined ? field.min : numberOf(field, first);
  const end = field === DAY_OF_WEEK ? lastWeekday : field.max;
  const to = last === undefined ? end : numberOf(field, last);
  const size = Number(step);
  if (!(size > 1 && from <= to)) return undefined;
  // From one Sunday to the other leads to no other day.
  const leadsOn = from + size <= to && !(field === DAY_OF_WEEK && size % 7 === 0);
  return leadsOn ? undefined : (first ?? String(from));
}

function numberOf(field: CronField, text: string): number {
  return field.names?.get(text.toUpperCase()) ?? Number(text);
}

function dayName(value: string): string {
  return WEEKDAYS[numberOf(DAY_OF_WEEK, value) % 7] ?? value;
}
