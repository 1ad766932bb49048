import type { CronSource } from './cron-refusal.js';
import { type Duration, parseDuration } from './durations.js';
import { CarillonError, shortText } from './errors.js';
import type { FoldPolicy, GapPolicy } from './fire-times-cron.js';
import { type Instant, parseInstant } from './instant.js';

/** When a schedule fires. Exactly one of `cron`, `crons`, `pattern` and `every` is given. */
export interface TimingDefinition {
  /** Five fields, six with leading seconds, or a nickname such as `@daily` or `@every 5m`. */
  cron?: string;
  /** Several expressions; the schedule fires when any of them does, once if several do. */
  crons?: readonly string[];
  /** BullMQ's name for `cron`. */
  pattern?: string;
  /** An interval, in ms or as a text such as `'15m'`. A day is 24 hours, whatever the clocks do. */
  every?: Duration;
  /** The instant that `every` counts from: the first tick, if still to come. Defaults to the schedule's creation. */
  anchor?: Instant;
  /** Moves the ticks of `every` off its anchor. Defaults to 0; less than `every`. */
  phase?: Duration;
  /** An IANA time zone. Defaults to `UTC`, never the host's. */
  tz?: string;
  /** What happens to a time that the clock skips. Defaults to `shift`. Intervals ignore it. */
  gap?: GapPolicy;
  /** Which pass of a repeated hour counts. Defaults to `first`. Intervals ignore it. */
  fold?: FoldPolicy;
  /** No tick before it. */
  startDate?: Instant;
  /** No tick after it; one exactly at it still fires. */
  endDate?: Instant;
  /** The schedule ends after so many ticks, counted from its creation by whoever stores it. */
  limit?: number;
}

/** A definition, checked, with its defaults filled in. */
export interface CheckedTiming {
  readonly crons: readonly CronSource[];
  /** ms */
  readonly every: number | undefined;
  readonly anchor: number | undefined;
  readonly phase: number;
  readonly tz: string;
  readonly gap: GapPolicy;
  readonly fold: FoldPolicy;
  readonly startDate: number | undefined;
  readonly endDate: number | undefined;
  readonly limit: number | undefined;
}

const GAPS: readonly GapPolicy[] = ['shift', 'edge', 'skip'];
const FOLDS: readonly FoldPolicy[] = ['first', 'last', 'both'];
const MOST_CRONS = 64;

/** Names from other libraries whose silent loss would move a schedule. */
const OTHER_NAMES: Readonly<Record<string, string>> = {
  timezone: 'tz',
  timeZone: 'tz',
  zone: 'tz',
  interval: 'every',
  expression: 'cron',
  schedule: 'cron',
  patterns: 'crons',
  start: 'startDate',
  end: 'endDate',
};

/**
 * Checks everything in a definition that needs no cron arithmetic.
 * @throws CarillonError `INVALID_OPTION`, `INVALID_DURATION`, and `INVALID_CRON` for an expression that is no text.
 */
export function checkTiming(definition: TimingDefinition): CheckedTiming {
  if (typeof definition !== 'object' || definition === null) {
    throw invalid(
      'definition',
      definition,
      'is not an object',
      "write { cron: '30 2 * * *', tz: 'Europe/London' }",
    );
  }
  for (const name of Object.keys(definition)) {
    if (Object.hasOwn(OTHER_NAMES, name)) {
      throw invalid(
        name,
        (definition as Record<string, unknown>)[name],
        'is no option',
        `write ${OTHER_NAMES[name]}`,
      );
    }
  }
  const { crons, every } = readPatterns(definition);
  const phase = definition.phase === undefined ? 0 : parseDuration(definition.phase, { field: 'phase' });
  if (every === undefined && (definition.anchor !== undefined || definition.phase !== undefined)) {
    const name = definition.anchor === undefined ? 'phase' : 'anchor';
    throw invalid(name, definition[name], 'belongs to every', 'leave it out, or write every instead of cron');
  }
  if (every !== undefined && phase >= every) {
    throw invalid('phase', definition.phase, 'is not shorter than every', `write less than ${every} ms`);
  }
  const startDate = optionalInstant(definition.startDate, 'startDate');
  const endDate = optionalInstant(definition.endDate, 'endDate');
  if (startDate !== undefined && endDate !== undefined && endDate < startDate) {
    throw invalid('endDate', definition.endDate, 'lies before startDate', 'write a later endDate');
  }
  return {
    crons,
    every,
    anchor: optionalInstant(definition.anchor, 'anchor'),
    phase,
    tz: definition.tz === undefined ? 'UTC' : definition.tz,
    gap: oneOf('gap', definition.gap, GAPS, 'shift'),
    fold: oneOf('fold', definition.fold, FOLDS, 'first'),
    startDate,
    endDate,
    limit: checkLimit(definition.limit),
  };
}

function readPatterns(definition: TimingDefinition): { crons: CronSource[]; every: number | undefined } {
  const { tz } = definition;
  const given = (['cron', 'crons', 'pattern', 'every'] as const).filter(
    (name) => definition[name] !== undefined,
  );
  const [name] = given;
  if (name === undefined || given.length > 1) {
    const problem = name === undefined ? 'does not say when to fire' : `gives ${given.join(' and ')}`;
    throw invalid(
      name ?? 'cron',
      name && definition[name],
      problem,
      'give one of cron, crons, pattern and every',
    );
  }
  if (name === 'every')
    return { crons: [], every: parseDuration(definition.every, { field: 'every', min: 1 }) };
  if (name !== 'crons') return { crons: [cronSource(definition[name], name, tz)], every: undefined };
  const list: unknown = definition.crons;
  if (!Array.isArray(list) || list.length === 0 || list.length > MOST_CRONS) {
    throw invalid('crons', list, 'is not a list of expressions', `write 1 to ${MOST_CRONS} expressions`);
  }
  return { crons: list.map((text: unknown, i) => cronSource(text, `crons[${i}]`, tz)), every: undefined };
}

function cronSource(text: unknown, option: string, tz: string | undefined): CronSource {
  if (typeof text === 'string') return { text, option, tz };
  const todo = "write five fields as one text, such as '30 2 * * *'";
  throw new CarillonError('INVALID_CRON', `${option}: ${shortText(text)} is not a text; ${todo}`, {
    field: option,
    given: text,
    todo,
  });
}

function checkLimit(limit: unknown): number | undefined {
  if (limit === undefined || (Number.isSafeInteger(limit) && (limit as number) > 0))
    return limit as number | undefined;
  throw invalid(
    'limit',
    limit,
    'is not a whole number from 1',
    'write how many ticks the schedule has, or leave it out',
  );
}

function optionalInstant(value: unknown, field: string): number | undefined {
  return value === undefined ? undefined : parseInstant(value, field);
}

function oneOf<T extends string>(
  field: string,
  value: T | undefined,
  allowed: readonly T[],
  otherwise: T,
): T {
  if (value === undefined) return otherwise;
  if (allowed.includes(value)) return value;
  throw invalid(field, value, 'is unknown', `write one of ${allowed.join(', ')}`);
}

function invalid(field: string, given: unknown, problem: string, todo: string): CarillonError {
  const message = `${field}${given === undefined ? '' : ` ${shortText(given)}`} ${problem}; ${todo}`;
  return new CarillonError('INVALID_OPTION', message, { field, given, todo });
}
