import { type Document, isMap, isScalar, isSeq, LineCounter, parseDocument } from 'yaml';
import { encodeTemplate } from '../client/schedule-template.js';
import type { WantedSchedule } from '../client/wanted-schedule.js';
import { rejectUnknown } from '../config/unknown-options.js';
import { fromBullmqPattern, readAsBullmq } from '../domain/bullmq-pattern.js';
import { checkSchedule, SCHEDULE_KEYS } from '../domain/check-schedule.js';
import { DIALECTS, type Dialect } from '../domain/dialect.js';
import { CarillonError, isCarillonError } from '../domain/errors.js';
import { checkQueueName, checkScheduleId, identityOf } from '../domain/ids.js';
import { compact, MOST_TAGS, type ScheduleDefinition, type StoredPolicies } from '../domain/schedule.js';
import type { WantedEntry } from './apply-changes.js';
import { APPLIED, isMark } from './marks.js';
import { isPlainNote } from './pause-note.js';
import { translateCrons } from './schedule-dialect.js';
import { yamlOnly } from './yaml-only.js';
import { YAML_OPTIONS, yamlValue } from './yaml-value.js';

/** A file of schedules, read; nothing of it counts while there are problems. */
export interface ScheduleFile {
  /** Names the file in the tags of what it created; undefined where it says none. */
  readonly label: string | undefined;
  /** The queues that it names, also those without a schedule. */
  readonly queues: ReadonlySet<string>;
  readonly entries: readonly WantedEntry[];
  /** `schedules.yaml:12: what is wrong`, in the order of the file. */
  readonly problems: readonly string[];
}

const FILE_KEYS = ['label', 'queues'];
const OWN_KEYS = ['template', 'paused', 'dialect', 'startsAtOnce', 'bullmqPattern'];
const TEMPLATE_KEYS = ['name', 'data', 'opts'];
/** The queue's own limit is judged when it is written. */
const ANY_SIZE = Number.MAX_SAFE_INTEGER;
const LABEL = /^[A-Za-z0-9._-]{1,60}$/;

/** @throws CarillonError INVALID_OPTION */
export function checkLabel(text: string): string {
  if (LABEL.test(text)) return text;
  throw invalid('label', text, 'is no label', 'write up to 60 letters, digits, dots and dashes');
}

type Fields = Readonly<Record<string, unknown>>;
type Path = readonly (string | number)[];

/** Reads and checks a whole file: `queues:`, in it each queue by name, in it each schedule by id. */
export function readScheduleFile(name: string, text: string): ScheduleFile {
  const counter = new LineCounter();
  const document = parseDocument(text, { ...YAML_OPTIONS, lineCounter: counter });
  const reader = new Reader(name, document, counter);
  const read = yamlValue(document);
  if ('value' in read) reader.readFile(read.value);
  const problems = 'value' in read ? yamlOnly(document) : read.problems;
  for (const { offset, message } of problems) reader.problemAt(offset, message);
  return reader.file();
}

class Reader {
  readonly #queues = new Set<string>();
  readonly #entries: WantedEntry[] = [];
  readonly #problems: { line: number; text: string }[] = [];
  #label: string | undefined;

  constructor(
    private readonly name: string,
    private readonly document: Document,
    private readonly counter: LineCounter,
  ) {}

  file(): ScheduleFile {
    const problems = [...this.#problems].sort((a, b) => a.line - b.line);
    return {
      label: this.#label,
      queues: this.#queues,
      entries: this.#entries,
      problems: problems.map(({ line, text }) => `${this.name}:${line}: ${text}`),
    };
  }

  problemAt(offset: number, text: string): void {
    this.#problems.push({ line: this.counter.linePos(offset).line, text });
  }

  readFile(root: unknown): void {
    this.#within([], () => {
      const file = fieldsOf(root, 'the file', "write 'queues:' and below it each queue by its name");
      rejectUnknown(file, FILE_KEYS);
      if (file.label !== undefined) this.#label = checkLabel(String(file.label));
      const queues = fieldsOf(file.queues ?? {}, 'queues', 'write each queue by its name');
      for (const [queue, schedules] of Object.entries(queues)) this.#readQueue(queue, schedules);
    });
  }

  #readQueue(queue: string, schedules: unknown): void {
    const path = ['queues', queue];
    this.#within(path, () => {
      checkQueueName(queue);
      this.#queues.add(queue);
      const byId = fieldsOf(schedules ?? {}, queue, 'write each schedule by its id');
      for (const [id, schedule] of Object.entries(byId)) {
        this.#within([...path, id], () => this.#readSchedule(queue, id, schedule));
      }
    });
  }

  #readSchedule(queue: string, id: string, written: unknown): void {
    const schedule = fieldsOf(written, id, "write cron: '30 2 * * *', missed: latest and so on below it");
    rejectUnknown(schedule, [...SCHEDULE_KEYS, ...OWN_KEYS]);
    const { template, paused, dialect, startsAtOnce, bullmqPattern, ...rest } = schedule;
    const warnings: string[] = [];
    const definition = (dialect === undefined
      ? rest
      : { ...rest, ...translated(rest, dialect, warnings) }) as unknown as ScheduleDefinition;
    refuseMarks(definition.tags);
    const policies = checkSchedule(definition, identityOf(queue, checkScheduleId(id)));
    if (startsAtOnce !== undefined && (startsAtOnce !== true || policies.every === undefined)) {
      throw invalid(
        'startsAtOnce',
        startsAtOnce,
        'is BullMQ’s, for every',
        'write true, beside every, or leave it out',
      );
    }
    const runs = templateOf(template);
    encodeTemplate(id, runs, {}, ANY_SIZE);
    const wanted: WantedSchedule = {
      id,
      policies: compact({
        ...policies,
        startsAtOnce: startsAtOnce === true ? startsAtOnce : undefined,
        bullmqPattern: bullmqPatternOf(bullmqPattern, policies),
      }),
      template: runs,
      ...pausedOf(paused),
    };
    const line = this.#lineOf(['queues', queue, id]);
    this.#entries.push({ queue, source: `${this.name}:${line}`, wanted, notTranslated: [], warnings });
  }

  /** A refusal is a problem of the line of its field, or of what stands at the path. */
  #within(path: Path, read: () => void): void {
    try {
      read();
    } catch (error) {
      if (!isCarillonError(error)) throw error;
      const field = (error.field ?? '').split(/[.[\]]+/).filter((part) => part !== '');
      const found = [
        [...path, ...field],
        [...path, 'template', 'opts', ...field],
      ]
        .map((candidate) => ({ candidate, depth: this.#find(candidate).depth }))
        .sort((a, b) => b.depth - a.depth)[0];
      const line = this.#lineOf(found?.candidate ?? path);
      const where = path.length > 1 ? `${path.slice(1).join('.')}: ` : '';
      this.#problems.push({ line, text: `${where}${error.message}` });
    }
  }

  #lineOf(path: Path): number {
    return this.counter.linePos(this.#find(path).offset).line;
  }

  /** The place of the deepest part of a path that the file holds. */
  #find(path: Path): { offset: number; depth: number } {
    let node: unknown = this.document.contents;
    let offset = this.document.contents?.range?.[0] ?? 0;
    for (const [depth, part] of path.entries()) {
      if (isMap(node)) {
        const pair = node.items.find(({ key }) => isScalar(key) && String(key.value) === String(part));
        if (pair === undefined || !isScalar(pair.key)) return { offset, depth };
        offset = pair.key.range?.[0] ?? offset;
        node = pair.value;
      } else if (isSeq(node)) {
        const item = node.items[Number(part)];
        if (item === undefined) return { offset, depth };
        offset = (item as { range?: [number, number, number] | null }).range?.[0] ?? offset;
        node = item;
      } else return { offset, depth };
    }
    return { offset, depth: path.length };
  }
}

/** A pattern of BullMQ's form stands beside the `cron` that says the same, as export writes it. */
function bullmqPatternOf(pattern: unknown, { cron }: StoredPolicies): string | undefined {
  if (pattern === undefined) return undefined;
  if (typeof pattern === 'string' && cron?.length === 1) {
    if ([readAsBullmq(pattern), fromBullmqPattern(pattern).cron].includes(cron[0] ?? '')) return pattern;
  }
  throw invalid(
    'bullmqPattern',
    pattern,
    'is not what BullMQ writes for this cron',
    'leave it out; it only says how upsertJobScheduler was given the pattern',
  );
}

/** Expressions in another scheduler's notation, in ours. */
function translated(fields: Fields, dialect: unknown, warnings: string[]): Fields {
  if (!DIALECTS.includes(dialect as Dialect)) {
    throw invalid('dialect', dialect, 'is unknown', `write one of ${DIALECTS.join(', ')}`);
  }
  const { cron, crons, tz } = fields;
  const given = crons === undefined ? [cron] : crons;
  if ((cron === undefined) === (crons === undefined) || !Array.isArray(given) || given.length === 0) {
    throw invalid('dialect', dialect, 'is that of cron or crons', 'write one of them beside it');
  }
  const at = given.findIndex((text) => typeof text !== 'string');
  if (at >= 0) {
    const field = crons === undefined ? 'cron' : `crons[${at}]`;
    throw invalid(field, given[at], 'is no expression', 'write it as a text, in the notation of its dialect');
  }
  const timing = translateCrons(dialect as Dialect, given, typeof tz === 'string' ? tz : undefined, (doubt) =>
    warnings.push(doubt),
  );
  return { cron: undefined, crons: undefined, ...timing };
}

function refuseMarks(tags: unknown): void {
  if (!Array.isArray(tags)) return;
  const mark = tags.find((tag) => isMark(String(tag)));
  if (mark !== undefined) {
    const whose = String(mark).startsWith(APPLIED) ? 'apply' : 'import';
    throw invalid('tags', mark, `is put there by ${whose} itself`, 'leave it out');
  }
  if (tags.length >= MOST_TAGS) {
    throw invalid('tags', tags.length, 'are too many', `write up to ${MOST_TAGS - 1}: apply adds one`);
  }
}

function templateOf(written: unknown): WantedSchedule['template'] {
  if (written === undefined) return {};
  const template = fieldsOf(written, 'template', 'write name, data and opts below it');
  rejectUnknown(template, TEMPLATE_KEYS, 'template.');
  const { name, data, opts } = template;
  return {
    ...(name === undefined ? {} : { name: name as string }),
    ...(data === undefined ? {} : { data }),
    ...(opts === undefined
      ? {}
      : { opts: fieldsOf(opts, 'template.opts', 'write attempts, backoff and so on below it') }),
  };
}

/** A word that may mean a boolean is no note, unless `note` says so: read as one, `no` would pause. */
function pausedOf(written: unknown): { paused?: boolean; note?: string } {
  if (written === undefined) return {};
  if (typeof written === 'boolean') return { paused: written };
  if (typeof written === 'string' && isPlainNote(written)) return { paused: true, note: written };
  const { note, ...others } = (written ?? {}) as Fields;
  if (typeof note === 'string' && note !== '' && Object.keys(others).length === 0)
    return { paused: true, note };
  throw invalid('paused', written, 'is neither true nor false', 'write true, false, or why it is paused');
}

function fieldsOf(value: unknown, what: string, todo: string): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  throw new CarillonError('INVALID_OPTION', `${what} is no mapping; ${todo}`, {
    field: what,
    given: value,
    todo,
  });
}

function invalid(field: string, given: unknown, problem: string, todo: string): CarillonError {
  const message = `${field} ${JSON.stringify(given)} ${problem}; ${todo}`;
  return new CarillonError('INVALID_OPTION', message, { field, given, todo });
}
