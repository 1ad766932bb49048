import { formatDuration } from './durations.js';
import type { ScheduleDefinition, StoredPolicies } from './schedule.js';

/** A definition as an author writes it, and what only BullMQ's own form can ask for. */
export type WrittenSchedule = ScheduleDefinition & Pick<StoredPolicies, 'startsAtOnce' | 'bullmqPattern'>;

const DURATIONS: ReadonlySet<string> = new Set([
  'every',
  'phase',
  'grace',
  'jitter',
  'catchupWindow',
  'runTimeout',
]);
const INSTANTS: ReadonlySet<string> = new Set(['anchor', 'startDate', 'endDate']);

/** What is stored, as it may be given again: durations as texts, instants in ISO, one expression as `cron`. */
export function writtenSchedule(stored: StoredPolicies): WrittenSchedule {
  const { cron, ...rest } = stored;
  const written: Record<string, unknown> = {};
  if (cron !== undefined) {
    Object.assign(written, cron.length === 1 ? { cron: cron[0] } : { crons: cron });
    written.tz = stored.tz ?? 'UTC';
  }
  for (const [key, value] of Object.entries(rest)) {
    if (DURATIONS.has(key)) written[key] = formatDuration(value as number);
    else if (INSTANTS.has(key)) written[key] = new Date(value as number).toISOString();
    else if (key === 'exclude') written[key] = (value as unknown[]).map(writtenExclusion);
    else written[key] = value;
  }
  return written as unknown as WrittenSchedule;
}

/** A range of instants is stored in ms. */
function writtenExclusion(entry: unknown): unknown {
  const { from, to } = entry as { from?: unknown; to?: unknown };
  if (typeof from !== 'number' || typeof to !== 'number') return entry;
  return { from: new Date(from).toISOString(), to: new Date(to).toISOString() };
}

/** One option that differs, both sides as written; undefined where it is not given. */
export interface Difference {
  readonly option: string;
  readonly from: unknown;
  readonly to: unknown;
}

/** What differs between two objects, option by option; the order of keys says nothing. */
export function differences(from: object, to: object): Difference[] {
  const left = from as Record<string, unknown>;
  const right = to as Record<string, unknown>;
  return [...new Set([...Object.keys(left), ...Object.keys(right)])]
    .filter((option) => ordered(left[option]) !== ordered(right[option]))
    .map((option) => ({ option, from: left[option], to: right[option] }));
}

/** JSON with the keys of each object in order. */
function ordered(value: unknown): string {
  return (
    JSON.stringify(value, (_key, part: unknown) =>
      typeof part === 'object' && part !== null && !Array.isArray(part)
        ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
        : part,
    ) ?? ''
  );
}
