import { CROND_NICKNAMES, type CronField, FIVE_FIELDS } from './cron-fields.js';
import { formatDuration } from './durations.js';
import { narrowWideSteps } from './wide-steps.js';

/** Why Kubernetes' API server would refuse a schedule, or what it means in our notation. */
export type KubernetesSchedule =
  | { readonly refused: string }
  | {
      readonly timing: { readonly cron: string } | { readonly every: string };
      readonly warnings: readonly string[];
    };

const UNIT_MS: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000, ms: 1 };

/** Reads `spec.schedule` as the library does that Kubernetes uses: five fields, a nickname, or `@every`. */
export function kubernetesSchedule(text: string): KubernetesSchedule {
  if (/TZ/.test(text)) {
    return { refused: 'a zone in the schedule is refused by the API server; write timeZone beside it' };
  }
  if (text.startsWith('@every ')) return intervalOf(text.slice('@every '.length));
  if (text.startsWith('@')) {
    return CROND_NICKNAMES.has(text)
      ? { timing: { cron: text }, warnings: [] }
      : { refused: `${text} is no nickname of Kubernetes (they are lower case)` };
  }
  if (/\$\{|\{\{/.test(text)) return { refused: `${text} is a template variable; render the manifest first` };
  const fields = text.split(/\s+/).filter((field) => field !== '');
  if (fields.length !== 5) {
    return { refused: `${fields.length} fields, and Kubernetes takes five (minute to day of week)` };
  }
  for (const [i, field] of FIVE_FIELDS.entries()) {
    const problem = fieldProblem(field, fields[i] ?? '');
    if (problem !== undefined) return { refused: `${field.label}: ${problem}` };
  }
  const { fields: narrowed, warnings } = narrowWideSteps(fields, 'Kubernetes', 6);
  return { timing: { cron: inOurWords(narrowed) }, warnings };
}

function fieldProblem(field: CronField, text: string): string | undefined {
  for (const item of text.split(',')) {
    if (item === '') continue;
    const [range = '', step, ...more] = item.split('/');
    if (more.length > 0 || (step !== undefined && !/^0*[1-9]\d*$/.test(step))) return `bad step in ${item}`;
    if (range === '*' || range === '?') continue;
    const ends = range.split('-');
    if (ends.length > 2) return `bad range ${range}`;
    const values = ends.map((end) => numberOf(field, end));
    if (values.includes(undefined)) return `${range} is out of range or no value`;
    if (values.length === 2 && (values[0] ?? 0) > (values[1] ?? 0))
      return `the range ${range} runs backwards`;
  }
  return /[^,]/.test(text) ? undefined : 'it is empty';
}

/** A weekday ends at 6: Kubernetes has no 7. */
function numberOf(field: CronField, text: string): number | undefined {
  const name = text.length === 3 ? field.names?.get(text.toUpperCase()) : undefined;
  if (name !== undefined) return name;
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  return value >= field.min && value <= field.max ? value : undefined;
}

/**
 * The same fields for our parser. `?` stands for any value in each of them, empty list items are dropped, and the
 * two day fields are joined by another rule: Kubernetes counts a bare star in them, ours a leading one.
 */
function inOurWords(fields: readonly string[]): string {
  const lists = fields.map((text) =>
    text
      .split(',')
      .filter((item) => item !== '')
      .map((item) => item.replace('?', '*')),
  );
  const isStar = (items: readonly string[]) => items.some((item) => /^\*(?:\/0*1)?$/.test(item));
  for (const items of lists) if (isStar(items)) items.splice(0, items.length, '*');
  const days = [lists[2] ?? [], lists[4] ?? []];
  if (!days.some(isStar)) {
    for (const [i, range] of ['1-31', '0-6'].entries()) {
      for (const [at, item] of (days[i] ?? []).entries()) {
        if (item.startsWith('*')) days[i]?.splice(at, 1, range + item.slice(1));
      }
    }
  }
  return lists.map((items) => items.join(',')).join(' ');
}

/** Go's duration, `1h30m` or `1.5h`, in whole seconds and at least one, as Kubernetes rounds it. */
function intervalOf(text: string): KubernetesSchedule {
  if (!/^(?:\d+(?:\.\d+)?(?:ms|h|m|s))+$/.test(text))
    return { refused: `@every ${text} is no duration of Go` };
  let ms = 0;
  for (const [, count, unit = ''] of text.matchAll(/(\d+(?:\.\d+)?)(ms|h|m|s)/g)) {
    ms += Number(count) * (UNIT_MS[unit] ?? 0);
  }
  const every = formatDuration(Math.max(1000, Math.floor(ms / 1000) * 1000));
  return { timing: { every }, warnings: [] };
}
