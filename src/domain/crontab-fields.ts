import { CROND_NICKNAMES, type CronField, DAY_OF_WEEK, FIVE_FIELDS } from './cron-fields.js';

/**
 * Why crond would not take these fields; undefined if it would. A line that crond refuses has never run, and the
 * wider notation of Carillon's own expressions must not wake it up.
 * @param fields five fields, or one nickname.
 */
export function crondRefusal(fields: readonly string[]): string | undefined {
  const [first = ''] = fields;
  if (first.startsWith('@')) {
    if (first === '@reboot') return 'start-up event, no clock time';
    return CROND_NICKNAMES.has(first) ? undefined : 'unknown nickname (names are lower case)';
  }
  for (const [i, field] of FIVE_FIELDS.entries()) {
    for (const item of (fields[i] ?? '').split(',')) {
      const problem = itemProblem(field, item);
      if (problem !== undefined) return `${field.label}: ${problem}`;
    }
  }
  return undefined;
}

/** Whether a word is such as only a field of numbers is: `*`, `1-5`, `?`. */
export function isNumericField(word: string): boolean {
  return /^[\d*?][\d,*?/~-]*$/.test(word);
}

/** Whether a word may be a field, of numbers or of weekdays by name. */
export function looksLikeField(word: string): boolean {
  return isNumericField(word) || /^(?:(?:sun|mon|tue|wed|thu|fri|sat)[,-]?)+$/i.test(word);
}

/**
 * Why two day fields, one of whose steps leads beyond its range, cannot be written without it: crond fires where both
 * match since one begins with a star, and no other words of one value do.
 * @param narrowed the same fields without such steps.
 */
export function lostJoin(fields: readonly string[], narrowed: readonly string[]): string | undefined {
  const isStar = (field: string | undefined) => field?.startsWith('*') === true;
  const place = [2, 4].find((at) => isStar(fields[at]) && !isStar(narrowed[at]));
  if (place === undefined || isStar(narrowed[2]) || isStar(narrowed[4])) return undefined;
  const [label, other] = place === 2 ? ['day of month', 'weekday'] : ['day of week', 'day of the month'];
  return `${label}: ${fields[place]} is ${narrowed[place]} to crond, on days that match both fields; write ${narrowed[place]} alone, and let the command look at the ${other}`;
}

function itemProblem(field: CronField, item: string): string | undefined {
  if (item === '') return 'empty list item';
  const [range = '', step, ...more] = item.split('/');
  if (more.length > 0 || (step !== undefined && !/^0*[1-9]\d*$/.test(step))) return 'bad step';
  if (range === '*') return undefined;
  // Random values, which cronie and OpenBSD have; compiling them judges their ends.
  if (range.includes('~')) return undefined;
  const [first = '', last, ...rest] = range.split('-');
  if (rest.length > 0) return `bad value ${range}`;
  if (first === '' || last === '') return `bad value ${item}`;
  const from = readValue(field, first);
  if (typeof from === 'string') return from;
  if (last === undefined) {
    if (step === undefined) return undefined;
    return 'start/step without a range: Vixie refuses, many others read it as start-max/step';
  }
  const to = readValue(field, last);
  if (typeof to === 'string') return to;
  return from > to ? `reversed range ${range}` : undefined;
}

/** A number or a three-letter name as its value, or what is wrong with it. */
function readValue(field: CronField, text: string): number | string {
  const name = text.length === 3 ? field.names?.get(text.toUpperCase()) : undefined;
  if (name !== undefined) return name;
  if (!/^\d+$/.test(text)) return `bad value ${text}`;
  const value = Number(text);
  const max = field === DAY_OF_WEEK ? 7 : field.max;
  return value < field.min || value > max ? `out of range ${text}` : value;
}
