import { distance } from 'fastest-levenshtein';
import { CarillonError } from '../domain/errors.js';

/** Near enough to be a slip of the same word. */
const SLIP = 3;

/** The known word that an unknown one was probably meant to be. */
export function nearestWord(word: string, known: readonly string[]): string | undefined {
  let best: string | undefined;
  let least = SLIP + 1;
  for (const candidate of known) {
    const far = distance(word.toLowerCase(), candidate.toLowerCase());
    if (far < least) [best, least] = [candidate, far];
  }
  return best;
}

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
