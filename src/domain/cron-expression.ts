import { refuseExtraFields } from './cron-extra-fields.js';
import { type CronSource, refuseCron } from './cron-refusal.js';
import { parseDuration } from './durations.js';

/** The six fields of an expression, in upper case, `second` filled in. */
export interface CronFieldTexts {
  readonly second: string;
  readonly minute: string;
  readonly hour: string;
  readonly dayOfMonth: string;
  readonly month: string;
  readonly dayOfWeek: string;
}

/** What an expression says before its fields are read: six fields, or `@every`'s interval in ms. */
type CronText = CronFieldTexts | { readonly every: number };

const NICKNAMES: ReadonlyMap<string, string> = new Map([
  ['@yearly', '0 0 1 1 *'],
  ['@annually', '0 0 1 1 *'],
  ['@monthly', '0 0 1 * *'],
  ['@weekly', '0 0 * * 0'],
  ['@daily', '0 0 * * *'],
  ['@midnight', '0 0 * * *'],
  ['@hourly', '0 * * * *'],
  // cron-parser's own, which schedules that come from BullMQ may use.
  ['@minutely', '* * * * *'],
  ['@secondly', '* * * * * *'],
  ['@weekdays', '0 0 * * 1-5'],
  ['@weekends', '0 0 * * 0,6'],
]);

/** Longer than a list of every value of every field, so no honest expression reaches it. */
const LONGEST_EXPRESSION = 1024;

/**
 * Splits an expression into its fields: five (minute hour day-of-month month day-of-week), six with leading
 * seconds, or a nickname in any case.
 * @throws CarillonError `INVALID_CRON` for anything else, with the nearest valid form.
 */
export function splitExpression(source: CronSource): CronText {
  const { text } = source;
  if (text.length > LONGEST_EXPRESSION) {
    throw refuseCron(
      { ...source, text: text.slice(0, 80) },
      'is too long',
      `use at most ${LONGEST_EXPRESSION} characters`,
    );
  }
  const strange = /[^\x20-\x7e\t]/.exec(text);
  if (strange !== null) {
    const code = strange[0].charCodeAt(0).toString(16).toUpperCase().padStart(4, '0');
    throw refuseCron(
      source,
      `holds the character U+${code}`,
      'separate the fields by plain blanks, on one line',
    );
  }
  const fields = text.trim().split(/[ \t]+/);
  if (fields[0]?.startsWith('@')) return nickname(source, fields);
  if (/^(?:CRON_)?TZ=/.test(fields[0] ?? '')) {
    const zone = fields[0]?.slice(fields[0].indexOf('=') + 1);
    throw refuseCron(
      source,
      'names a zone in the expression',
      `set tz: '${zone}' and write '${fields.slice(1).join(' ')}'`,
    );
  }
  refuseWrongCount(source, fields);
  refuseExtraFields(source, fields);
  const [second, minute, hour, dayOfMonth, month, dayOfWeek] = [
    ...(fields.length === 5 ? ['0'] : []),
    ...fields.map((field) => field.toUpperCase()),
  ] as [string, string, string, string, string, string];
  return { second, minute, hour, dayOfMonth, month, dayOfWeek };
}

function nickname(source: CronSource, fields: string[]): CronText {
  const name = fields[0]?.toLowerCase() ?? '';
  const expression = NICKNAMES.get(name);
  if (expression !== undefined && fields.length === 1)
    return splitExpression({ ...source, text: expression });
  if (name === '@every') {
    if (fields.length === 1) throw refuseCron(source, 'does not say how often', "write '@every 5m'");
    return { every: parseDuration(fields.slice(1).join(' '), { field: source.option, min: 1 }) };
  }
  if (name === '@reboot') {
    throw refuseCron(
      source,
      'names the start of a machine, which is no time',
      'add a one-time job when the machine starts',
    );
  }
  throw refuseCron(
    source,
    'is no nickname',
    `write one of ${[...NICKNAMES.keys()].join(', ')}, @every 5m, or five fields`,
  );
}

function refuseWrongCount(source: CronSource, fields: string[]): void {
  const count = fields[0] === '' ? 0 : fields.length;
  if (count === 5 || count === 6) return;
  if (count === 0) throw refuseCron(source, 'is empty', "write five fields, such as '30 2 * * *'");
  const comment = fields.findIndex((field) => field.startsWith('#'));
  if (comment === 5 || comment === 6) {
    throw refuseCron(
      source,
      'has a comment behind the fields',
      `write '${fields.slice(0, comment).join(' ')}'`,
    );
  }
  if (count < 5) {
    const missing = count === 1 ? '4 fields are' : `${5 - count} of 5 fields ${count === 4 ? 'is' : 'are'}`;
    throw refuseCron(
      source,
      `${missing} missing`,
      `write minute hour day-of-month month day-of-week, such as '${[...fields, '*', '*', '*', '*'].slice(0, 5).join(' ')}'`,
    );
  }
  if (count === 7) return;
  throw refuseCron(
    source,
    `has ${count} fields`,
    'write five, or six (second minute hour day-of-month month day-of-week); lists hold no blanks',
  );
}
