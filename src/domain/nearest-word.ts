import { distance } from 'fastest-levenshtein';

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
