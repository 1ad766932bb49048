/** A fence text, `<epoch number>|<epoch id>|<token>|<holder>`, in its parts. */
export interface FenceParts {
  number: number;
  epochId: string;
  token: number;
  holder: string;
}

/** Undefined for what no leader writes. */
export function parseFence(text: string): FenceParts | undefined {
  const [, number, epochId = '', token, holder = ''] = /^(\d+)\|([^|]*)\|(\d+)\|([^|]*)$/.exec(text) ?? [];
  if (number === undefined || token === undefined) return undefined;
  return { number: Number(number), epochId, token: Number(token), holder };
}

/** Fences are ordered by the number of their epoch, then by token: below 0 when `a` is the lower one. */
export function compareFences(
  a: Pick<FenceParts, 'number' | 'token'>,
  b: Pick<FenceParts, 'number' | 'token'>,
): number {
  return a.number === b.number ? a.token - b.token : a.number - b.number;
}

/** How a stored fence stands to the term that should have raised it. */
export type FenceStanding = 'held' | 'below' | 'above' | 'other epoch';

/** @param stored the text in Redis; undefined for none, which is below every other. */
export function standingOf(stored: string | undefined, term: FenceParts): FenceStanding {
  if (stored === undefined) return 'below';
  const found = parseFence(stored);
  if (found === undefined) return 'below';
  const { number, epochId, holder } = term;
  if (found.number === number && found.epochId !== epochId) return 'other epoch';
  const order = compareFences(found, term);
  if (order === 0 && found.holder === holder) return 'held';
  return order < 0 ? 'below' : found.number > number ? 'other epoch' : 'above';
}
