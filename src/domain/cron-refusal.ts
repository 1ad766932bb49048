import { CarillonError } from './errors.js';

/** The expression being read and the option it stands in, for the error. */
export interface CronSource {
  /** The expression as the user wrote it. */
  readonly text: string;
  /** The option's path: `cron`, `pattern`, `crons[1]`. */
  readonly option: string;
  /** The zone that it is read in, where it is known. */
  readonly tz?: string | undefined;
}

/** The error for an expression: what is wrong with which part of it, and what to write instead. */
export function refuseCron(source: CronSource, problem: string, todo: string): CarillonError {
  const message = `${source.option} ${JSON.stringify(source.text)}: ${problem}; ${todo}`;
  return new CarillonError('INVALID_CRON', message, { field: source.option, given: source.text, todo });
}

/**
 * Tells of an author's expression why what it became is refused.
 * @param cron what it became, as the option `cron`.
 */
export function refusalOf(
  error: CarillonError,
  cron: string | undefined,
  { text, option }: CronSource,
): string {
  const told = `cron ${JSON.stringify(cron)}: `;
  if (!error.message.startsWith(told)) return error.message;
  const became = cron === text ? '' : `, which is ${told.slice(0, -2)}`;
  return `${option} ${JSON.stringify(text)}${became}: ${error.message.slice(told.length)}`;
}
