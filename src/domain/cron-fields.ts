import { CronExpressionParser } from 'cron-parser';
import { type CronSource, refuseCron } from './cron-refusal.js';

type CronFieldName = 'second' | 'minute' | 'hour' | 'dayOfMonth' | 'month' | 'dayOfWeek';

/** What one field of an expression may hold. */
export interface CronField {
  readonly name: CronFieldName;
  /** The field's name in messages. */
  readonly label: string;
  readonly min: number;
  readonly max: number;
  /** Values by upper-case name, three letters and in full. */
  readonly names?: ReadonlyMap<string, number>;
  /** The last value of a bare `H` or `~`, where a greater one would not occur in every month. */
  readonly seededMax?: number;
  /** A field in its place in a six-field expression, as cron-parser reads it. */
  readonly frame: readonly [before: string, after: string];
}

export const WEEKDAYS = [
  'Sunday',
  'Monday',
  'Tuesday',
  'Wednesday',
  'Thursday',
  'Friday',
  'Saturday',
] as const;
const MONTHS = 'January February March April May June July August September October November December'.split(
  ' ',
);

const named = (words: readonly string[], first: number): ReadonlyMap<string, number> =>
  new Map(
    words.flatMap((word, i) => [
      [word.slice(0, 3).toUpperCase(), i + first] as const,
      [word.toUpperCase(), i + first] as const,
    ]),
  );

export const SECOND: CronField = {
  name: 'second',
  label: 'second',
  min: 0,
  max: 59,
  frame: ['', '* * * * *'],
};
export const MINUTE: CronField = {
  name: 'minute',
  label: 'minute',
  min: 0,
  max: 59,
  frame: ['0', '* * * *'],
};
export const HOUR: CronField = { name: 'hour', label: 'hour', min: 0, max: 23, frame: ['0 0', '* * *'] };
export const DAY_OF_MONTH: CronField = {
  name: 'dayOfMonth',
  label: 'day of month',
  min: 1,
  max: 31,
  seededMax: 28,
  frame: ['0 0 0', '* *'],
};
export const MONTH: CronField = {
  name: 'month',
  label: 'month',
  min: 1,
  max: 12,
  names: named(MONTHS, 1),
  frame: ['0 0 0 1', '*'],
};
/** 0 is Sunday; 7 is read as 0. */
export const DAY_OF_WEEK: CronField = {
  name: 'dayOfWeek',
  label: 'day of week',
  min: 0,
  max: 6,
  names: named(WEEKDAYS, 0),
  frame: ['0 0 0 * *', ''],
};
/** Those of an expression of five fields, in order. */
export const FIVE_FIELDS: readonly CronField[] = [MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK];
/** Those of one that begins with seconds. */
export const SIX_FIELDS: readonly CronField[] = [SECOND, ...FIVE_FIELDS];
/** The nicknames of crond, which Kubernetes and Spring took over; all three know them in lower case only. */
export const CROND_NICKNAMES: ReadonlySet<string> = new Set([
  '@yearly',
  '@annually',
  '@monthly',
  '@weekly',
  '@daily',
  '@midnight',
  '@hourly',
]);

const ITEM = /^(?:\*|([0-9A-Z]+)(?:-([0-9A-Z]+))?)(?:\/([0-9A-Z]+))?$/;

/**
 * The values of one plain list item, `*`, `5`, `1-5`, `0-30/10`, `MON-FRI`, in upper case. Reversed ranges wrap
 * round: `22-2` is 22, 23, 0, 1, 2.
 * @throws CarillonError `INVALID_CRON` for what no value, range or step of the field can be.
 */
export function plainItem(field: CronField, item: string, source: CronSource): readonly number[] {
  const match = ITEM.exec(item);
  if (match === null) throw notAnItem(field, item, source);
  const [, first, last, stepText] = match;
  const step = stepText === undefined ? 1 : readStep(field, item, stepText, source);
  if (first === undefined) return stepped(field, item, field.min, field.max, step, source);
  const from = fieldValue(field, first, source);
  if (last === undefined) {
    if (stepText === undefined) return [from];
    return stepped(field, item, from, field.max, step, source);
  }
  const to = fieldValue(field, last, source);
  // A week that ends on 7 ends on the Sunday after Saturday: 5-7 is Friday, Saturday, Sunday; 0-7 all days.
  if (field === DAY_OF_WEEK && last === '7' && from === 0 && first !== '7') {
    return stepped(field, item, 0, 6, step, source);
  }
  if (from <= to) return stepped(field, item, from, to, step, source);
  return wrapped(field, item, from, to, step, source);
}

/** One number or name of a field; a weekday 7 becomes 0. */
export function fieldValue(field: CronField, text: string, source: CronSource): number {
  if (/^\d+$/.test(text)) {
    const value = Number(text);
    const max = field === DAY_OF_WEEK ? 7 : field.max;
    if (value < field.min || value > max) {
      throw refuseCron(source, `${field.label}: ${text} is out of range`, `write ${field.min} to ${max}`);
    }
    if (text.length > 2) {
      throw refuseCron(source, `${field.label}: ${text} has too many digits`, `write ${value}`);
    }
    return field === DAY_OF_WEEK ? value % 7 : value;
  }
  const value = field.names?.get(text);
  if (value !== undefined) return value;
  throw notAnItem(field, text, source);
}

/** The step of an item: at least 1 and small enough to be taken once. */
export function readStep(field: CronField, item: string, text: string, source: CronSource): number {
  const step = Number(text);
  if (!/^\d{1,4}$/.test(text) || step === 0) {
    throw refuseCron(
      source,
      `${field.label}: ${item} has no usable step`,
      'write a whole number from 1 after the /',
    );
  }
  return step;
}

/** Refuses a step that leads out of its range at once, and so says less than it seems to. */
export function checkStep(
  field: CronField,
  item: string,
  from: number,
  span: number,
  step: number,
  source: CronSource,
): void {
  if (step === 1 || step <= span) return;
  const unit = { second: 's', minute: 'm', hour: 'h' }[field.name as string];
  const every = unit !== undefined && item.startsWith('*') ? `, or use every: '${step}${unit}'` : '';
  throw refuseCron(
    source,
    `${field.label}: the step of ${item} leads beyond its range, so it names ${from} only`,
    `write ${from}${span > 0 ? `, or a step of at most ${span}` : ''}${every}`,
  );
}

function stepped(field: CronField, item: string, from: number, to: number, step: number, source: CronSource) {
  checkStep(field, item, from, to - from, step, source);
  return parsedValues(field, step === 1 ? `${from}-${to}` : `${from}-${to}/${step}`);
}

function wrapped(field: CronField, item: string, from: number, to: number, step: number, source: CronSource) {
  if (field === DAY_OF_MONTH && step > 1) {
    throw refuseCron(
      source,
      `day of month: ${item} counts its step over the end of the month, whose length differs`,
      'write two ranges, such as 25-31/2,1-5/2',
    );
  }
  const size = field.max - field.min + 1;
  const span = to - from + size;
  checkStep(field, item, from, span, step, source);
  const values: number[] = [];
  for (let i = 0; i <= span; i += step) values.push(((from - field.min + i) % size) + field.min);
  return values;
}

const known = new Map<string, readonly number[]>();

/** A plain range as cron-parser reads it. There are few ranges and many expressions: each is parsed once. */
function parsedValues(field: CronField, text: string): readonly number[] {
  const key = `${field.name} ${text}`;
  let values = known.get(key);
  if (values === undefined) {
    const expression = `${field.frame[0]} ${text} ${field.frame[1]}`;
    // A date and a zone of its own keep the parser from asking the clock or the host; only `fields` is read.
    const parsed = CronExpressionParser.parse(expression, { currentDate: new Date(0), tz: 'UTC' });
    values = (parsed.fields[field.name].values as readonly (number | string)[]).map(Number);
    known.set(key, values);
  }
  return values;
}

function notAnItem(field: CronField, item: string, source: CronSource) {
  const label = field.label;
  if (item === '')
    return refuseCron(source, `${label}: an item of the list is empty`, 'remove the extra comma');
  if (item.includes('?')) {
    return refuseCron(source, `${label}: ? may only stand alone, for a day field`, 'write * instead');
  }
  if (field === DAY_OF_MONTH && /^-\d+$/.test(item)) {
    const before = Number(item.slice(1)) - 1;
    return refuseCron(source, `${label}: ${item} is no day`, `write ${before > 0 ? `L-${before}` : 'L'}`);
  }
  if (field.names !== undefined && /[A-Z]/.test(item)) {
    const names = [...field.names.keys()].filter((name) => name.length === 3).join(', ');
    return refuseCron(source, `${label}: ${item} is no name, value or range`, `write ${names}, or a number`);
  }
  return refuseCron(
    source,
    `${label}: ${item} is no value, range or step`,
    `write numbers from ${field.min} to ${field.max}, such as ${field.max}, ${field.min}-${field.max} or */2`,
  );
}
