import { pino } from 'pino';
import { CarillonError } from '../domain/errors.js';

/** One level's method, as pino has it: a message, or fields and then a message. */
export interface LogMethod {
  (message: string): void;
  (fields: object, message?: string): void;
}

/** What Carillon asks of a logger. Any pino instance will do; so will a few lines around another library. */
export interface Logger {
  debug: LogMethod;
  info: LogMethod;
  warn: LogMethod;
  error: LogMethod;
  /** A logger that adds `fields` to each line. */
  child(fields: Record<string, unknown>): Logger;
}

const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'];

let shared: Logger | undefined;

/**
 * The logger used where none is given: pino, named `carillon`, one JSON object a line on standard error, so that
 * standard output stays the program's own. The level is `CARILLON_LOG_LEVEL`, default `info`.
 *
 * @throws CarillonError `INVALID_OPTION` when `CARILLON_LOG_LEVEL` is no level of pino's.
 */
export function defaultLogger(): Logger {
  shared ??= createLogger(process.env.CARILLON_LOG_LEVEL);
  return shared;
}

function createLogger(level = 'info'): Logger {
  if (!LEVELS.includes(level)) {
    throw new CarillonError(
      'INVALID_OPTION',
      `CARILLON_LOG_LEVEL is no log level: ${JSON.stringify(level)}`,
      {
        field: 'CARILLON_LOG_LEVEL',
        given: level,
        todo: `Use one of ${LEVELS.join(', ')}.`,
      },
    );
  }
  // Synchronous: the last line before a crash is the one that is needed.
  return pino({ name: 'carillon', level }, pino.destination({ dest: 2, sync: true }));
}
