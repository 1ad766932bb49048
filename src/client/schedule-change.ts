import { checkObject } from '../config/check.js';
import { checkSchedule, SCHEDULE_KEYS } from '../domain/check-schedule.js';
import { CarillonError } from '../domain/errors.js';
import { compact, type ScheduleDefinition, type StoredPolicies } from '../domain/schedule.js';
import { type Difference, differences, writtenSchedule } from '../domain/written-schedule.js';
import type { ScheduleRecord } from '../redis/record.js';
import { changeOf, checkChange as checkJobChange } from './job-change.js';
import { readOptions, type ScheduleInfo, type StoredSchedule } from './schedule-info.js';
import type { EncodedTemplate } from './schedule-write.js';
import type { ScheduleTemplate } from './schedules-port.js';

/** What every definition must have: it is replaced, never taken away. */
type Needed = 'cron' | 'crons' | 'pattern' | 'every' | 'missed';

/**
 * What of a schedule's definition is to be otherwise. What is left out, or undefined, stays as it is; `null` takes an
 * option away, so that its default holds again. A new `cron`, `crons`, `pattern` or `every` takes the place of whichever
 * of them stood, `anchor` and `phase` go with `every`, `onExcluded` with `exclude`. A list is replaced whole.
 */
export type ScheduleDefinitionChange = {
  [K in keyof ScheduleDefinition]?: ScheduleDefinition[K] | (K extends Needed ? never : null);
};

/**
 * What of a schedule's template is to be otherwise; what is left out, or undefined, stays. Name and payload are replaced
 * whole. Of the options only those that are named change, each as a whole; `null` takes one away, or all of them.
 */
export interface ScheduleTemplateChange<Data = unknown, Name extends string = string, Opts = unknown> {
  name?: Name;
  data?: Data;
  opts?: { [K in keyof Opts]?: Opts[K] | null } | null;
}

/** A schedule after a change, and what the change made otherwise. */
export interface UpdatedSchedule extends StoredSchedule {
  /** Option by option, as written: `{ option: 'jitter', from: '5m', to: undefined }`. Empty when nothing is otherwise. */
  differences: readonly Difference[];
}

const SOURCES = ['cron', 'crons', 'pattern', 'every'] as const;
/** What means nothing without the option that it belongs to. */
const BELONGS = { every: ['anchor', 'phase'], exclude: ['onExcluded'] } as const;

/**
 * The stored definition with the changes in it, checked whole.
 * @throws CarillonError as `checkSchedule`; BAD_RECORD when the stored one cannot be read
 */
export function changedPolicies(
  record: ScheduleRecord,
  changes: ScheduleDefinitionChange,
  seed: string,
): StoredPolicies {
  const { startsAtOnce, bullmqPattern, ...stored } = readPolicies(record);
  const named = compact(checkObject('changes', changes)) as Readonly<Record<string, unknown>>;
  const isNew = (option: string) => named[option] !== undefined && named[option] !== null;
  const kept: Record<string, unknown> = { ...writtenSchedule(stored) };
  if (SOURCES.some(isNew)) for (const source of SOURCES) delete kept[source];
  // Not Object.assign, which would take a `__proto__` of parsed JSON for an order.
  const merged: Record<string, unknown> = { ...kept, ...named };
  for (const option of SCHEDULE_KEYS) if (merged[option] === null) delete merged[option];
  for (const [option, dependents] of Object.entries(BELONGS)) {
    const owner = merged[option];
    if (owner !== undefined && !(Array.isArray(owner) && owner.length === 0)) continue;
    for (const dependent of dependents) if (!isNew(dependent)) delete merged[dependent];
  }
  const checked = checkSchedule(merged as unknown as ScheduleDefinition, seed);
  return compact({
    ...checked,
    // BullMQ's form keeps a UTC that was given.
    tz: checked.tz ?? (named.tz === undefined ? stored.tz : undefined),
    startsAtOnce: [...SOURCES, 'anchor'].some(isNew) ? undefined : startsAtOnce,
    bullmqPattern: SOURCES.some(isNew) ? undefined : bullmqPattern,
  });
}

/**
 * The stored template with the changes in it. What is not named stays byte for byte: the queue's defaults of today are
 * not put into it.
 * @throws CarillonError as `upsert` for a template
 */
export function changedTemplate(
  record: ScheduleRecord,
  change: ScheduleTemplateChange,
  encode: (template: ScheduleTemplate) => EncodedTemplate,
): EncodedTemplate {
  const named = compact(checkObject('template', change) as ScheduleTemplateChange);
  const options = changedOptions(record, named.opts, encode);
  const { sizeLimit } = readOptions(options.opts);
  const stored = sizeLimit === undefined ? {} : { data: JSON.parse(record.data) };
  const encoded = encode({ ...stored, ...named, opts: { sizeLimit } });
  return {
    name: named.name === undefined ? record.name : encoded.name,
    data: named.data === undefined ? record.data : encoded.data,
    ...options,
  };
}

function changedOptions(
  record: ScheduleRecord,
  change: ScheduleTemplateChange['opts'],
  encode: (template: ScheduleTemplate) => EncodedTemplate,
): Pick<EncodedTemplate, 'opts' | 'priority' | 'lifo'> {
  if (change === null) return { opts: '', priority: 0, lifo: false };
  const { opts, priority, lifo } = record;
  const named = compact(checkObject('template.opts', change ?? {}));
  if (Object.keys(named).length === 0) return { opts, priority, lifo };
  const given = Object.entries(named).filter(([, value]) => value !== null);
  // Refuses what belongs to one job, not to the runs of a schedule.
  encode({ opts: Object.fromEntries(given) });
  const changed = changeOf(checkJobChange({ opts: named }, 0), { text: opts, priority, lifo });
  return {
    opts: changed.opts ?? opts,
    priority: changed.priority ?? priority,
    lifo: changed.lifo ?? lifo,
  };
}

/** What differs between a schedule before and after. */
export function differencesOf(before: ScheduleInfo, after: ScheduleInfo): Difference[] {
  const written = ({ definition, template }: ScheduleInfo) => ({
    ...writtenSchedule(definition),
    ...template,
  });
  return differences(written(before), written(after));
}

function readPolicies(record: ScheduleRecord): StoredPolicies {
  try {
    return JSON.parse(record.policies) as StoredPolicies;
  } catch (cause) {
    throw new CarillonError(
      'BAD_RECORD',
      'its stored definition cannot be read, so it cannot be changed in part',
      {
        field: 'scheduleId',
        todo: 'Write it whole: queue.schedules.upsert, or `carillon schedules upsert`.',
        cause,
      },
    );
  }
}
