import { CarillonError, shortText } from './errors.js';
import { nearestWord } from './nearest-word.js';

/**
 * Checks the options of a public function of the domain: an object that holds nothing but what the function reads.
 * @throws CarillonError INVALID_OPTION
 */
export function checkOptionsOf(call: string, options: unknown, known: readonly string[]): void {
  if (typeof options !== 'object' || options === null || Array.isArray(options)) {
    const todo = `write { ${known.join(', ')} }`;
    throw new CarillonError('INVALID_OPTION', `options: ${shortText(options)} is no object; ${todo}`, {
      field: 'options',
      given: options,
      todo,
    });
  }
  const unknown = Object.keys(options).find((key) => !known.includes(key));
  if (unknown === undefined) return;
  const todo = `write ${nearestWord(unknown, known) ?? `one of ${known.join(', ')}`}`;
  throw new CarillonError('INVALID_OPTION', `${unknown} is no option of ${call}; ${todo}`, {
    field: unknown,
    given: (options as Record<string, unknown>)[unknown],
    todo,
  });
}
