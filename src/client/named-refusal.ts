import { CarillonError, isCarillonError } from '../domain/errors.js';

/** What stands beside a job's options. */
const BESIDE = /^(name|data)\b/;

/**
 * Checks one of many jobs; what is refused is named by its place: `jobs[1].opts.delay`, `nodes[0].name`.
 * @throws what `check` throws
 */
export function namedBy<T>(place: string, check: () => T): T {
  try {
    return check();
  } catch (error) {
    if (!isCarillonError(error) || error.field === undefined || error.field.startsWith(place)) throw error;
    const { code, message, field, given, todo, retryable } = error;
    const where = `${place}.${BESIDE.test(field) ? '' : 'opts.'}`;
    const text = message.startsWith(field) ? `${where}${message}` : `${where}${field}: ${message}`;
    const named = new CarillonError(code, text, { field: where + field, todo, retryable, cause: error });
    // It is a text already.
    if (given !== undefined) Object.assign(named, { given });
    throw named;
  }
}
