import { CarillonError } from './errors.js';

/** The expression being read and the option it stands in, for the error. */
export interface CronSource {
  /** The expression as the user wrote it. */
  readonly text: string;
  /** The option's path: `cron`, `pattern`, `crons[1]`. */
  readonly option: string;
}

/** The error for an expression: what is wrong with which part of it, and what to write instead. */
export function refuseCron(source: CronSource, problem: string, todo: string): CarillonError {
  const message = `${source.option} ${JSON.stringify(source.text)}: ${problem}; ${todo}`;
  return new CarillonError('INVALID_CRON', message, { field: source.option, given: source.text, todo });
}
