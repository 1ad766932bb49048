import { checkBoolean, checkObject } from './check.js';
import { rejectUnknown } from './unknown-options.js';

/**
 * Checks the options that a call is given last: an object that holds nothing but what the call reads. A slip in `dryRun`
 * must not be done in earnest.
 * @param known the options whose values the call checks itself.
 * @param switches those that are true or false.
 * @throws CarillonError INVALID_OPTION
 */
export function checkCall(
  options: unknown,
  known: readonly string[],
  switches: readonly string[] = [],
  field = 'options',
): void {
  const given = checkObject(field, options);
  rejectUnknown(given, [...known, ...switches]);
  for (const name of switches) if (given[name] !== undefined) checkBoolean(name, given[name]);
}
