import { checkObject, refuse } from '../config/check.js';
import { rejectUnknown } from '../config/unknown-options.js';
import { checkJobName } from '../domain/ids.js';
import { encodeData } from '../queue/payload.js';
import type { RecordChange } from '../redis/job-scripts.js';
import { type JobOptions, KNOWN_OPTIONS, OF_ONE_JOB, resolveOptions } from './job-options.js';

/** What a waiting job is to be instead; what is left out stays. At least one thing must be named. */
export interface JobChange<Data, Name extends string> {
  name?: Name;
  data?: Data;
  /** Only the options to change, each as a whole: the others stay. `null` takes one away. */
  opts?: { [K in keyof JobOptions]?: JobOptions[K] | null };
}

/** A change that is checked, but not yet laid over the options of a job. */
export interface CheckedChange {
  parts: RecordChange;
  /** As BullMQ encodes them; undefined where the change names no option. */
  opts: { given: Record<string, unknown>; taken: string[]; moves: boolean } | undefined;
}

/** A job's options as they are stored. */
export interface StoredOptions {
  /** JSON text; empty for BullMQ's default. */
  text: string;
  priority: number;
  lifo: boolean;
}

/** Time, id and deduplication are given once, when a job is added. */
const GIVEN_ONCE = [...OF_ONE_JOB, 'durability'] as const;
/** What BullMQ calls them in its JSON, where it is another name. */
const ENCODED: Readonly<Record<string, readonly string[]>> = { keepLogs: ['kl'], telemetry: ['tm', 'omc'] };
const NO_OPTIONS = '{"attempts":0}';

/** @throws CarillonError INVALID_OPTION, INVALID_ID, INVALID_DURATION, UNSUPPORTED */
export function checkChange(change: JobChange<unknown, string>, maxPayload: number): CheckedChange {
  rejectUnknown(checkObject('change', change), ['name', 'data', 'opts'], 'change.');
  const parts: RecordChange = {};
  if (change.name !== undefined) parts.name = checkJobName(change.name);
  if (change.data !== undefined) parts.data = encodeData(change.data, maxPayload);
  const opts = change.opts === undefined ? undefined : checkOptions(change.opts);
  if (opts === undefined && Object.keys(parts).length === 0) {
    refuse('change', change, 'names nothing to change', 'Give a name, data or opts.');
  }
  return { parts, opts };
}

/** The change of a job whose options are `stored`; it is refused where they are others by then. */
export function changeOf({ parts, opts }: CheckedChange, stored: StoredOptions): RecordChange {
  if (opts === undefined) return parts;
  const merged = JSON.parse(plainOptions(stored.text)) as Record<string, unknown>;
  // The mark that a run carries in BullMQ is put back by the script.
  for (const key of ['carillon', ...opts.taken]) delete merged[key];
  Object.assign(merged, opts.given);
  const text = JSON.stringify({ attempts: 0, ...merged });
  const whole: RecordChange = {
    ...parts,
    opts: text === NO_OPTIONS ? '' : text,
    before: stored.text,
    deadline: merged.deadline !== undefined,
  };
  const deduplication = merged.de as { id: string } | undefined;
  if (deduplication !== undefined) whole.deduplicationId = deduplication.id;
  if (!opts.moves) return whole;
  const valueAfter = (key: string, kept: unknown) =>
    key in opts.given ? opts.given[key] : opts.taken.includes(key) ? undefined : kept;
  whole.priority = (valueAfter('priority', stored.priority) ?? 0) as number;
  whole.lifo = (valueAfter('lifo', stored.lifo) ?? false) as boolean;
  return whole;
}

function checkOptions(change: NonNullable<JobChange<unknown, string>['opts']>): CheckedChange['opts'] {
  const named = Object.entries(checkObject('opts', change)).filter(([, value]) => value !== undefined);
  if (named.length === 0) return undefined;
  for (const key of GIVEN_ONCE) {
    if (change[key] !== undefined) {
      refuse(`opts.${key}`, change[key], 'is given once, when a job is added', 'Leave it out.');
    }
  }
  const taken = named.filter(([, value]) => value === null).map(([key]) => key);
  rejectUnknown(Object.fromEntries(taken.map((key) => [key, null])), KNOWN_OPTIONS, 'opts.');
  const rest = Object.fromEntries(named.filter(([, value]) => value !== null)) as JobOptions;
  const given = JSON.parse(plainOptions(resolveOptions(rest).text)) as Record<string, unknown>;
  if (rest.attempts === undefined) delete given.attempts;
  return {
    given,
    taken: taken.flatMap((key) => ENCODED[key] ?? [key]),
    moves: named.some(([key]) => key === 'priority' || key === 'lifo'),
  };
}

function plainOptions(text: string): string {
  return text === '' ? NO_OPTIONS : text;
}
