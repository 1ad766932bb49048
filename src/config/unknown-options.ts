import { CarillonError } from '../domain/errors.js';
import { nearestWord } from '../domain/nearest-word.js';

/**
 * Refuses an option that nobody reads.
 * @throws CarillonError INVALID_OPTION with a suggestion.
 */
export function rejectUnknown(options: object, known: readonly string[], path = ''): void {
  for (const [key, value] of Object.entries(options)) {
    if (value === undefined || known.includes(key)) continue;
    const meant = nearestWord(key, known);
    throw new CarillonError(
      'INVALID_OPTION',
      `${path}${key} is no option${meant ? `; did you mean ${meant}?` : ''}`,
      {
        field: path + key,
        given: value,
        todo: meant ? `Write ${meant}.` : `The options are: ${known.join(', ')}.`,
      },
    );
  }
}
