/**
 * What a repeat of a run does to the world: nothing new (`idempotent`), nothing after a later attempt began (`fenced`), or
 * the same again (`mayRepeat`). Attempts are at least once: a handler that says nothing is shown as one that may repeat.
 */
export type Effects = 'idempotent' | 'fenced' | 'mayRepeat';
export const EFFECTS: readonly Effects[] = ['idempotent', 'fenced', 'mayRepeat'];

/** In words, wherever a job is shown. A handler that was never heard of, or says nothing, may repeat what it does. */
export function repeatWords(effects: string | undefined): string {
  if (effects === 'idempotent') return 'do nothing new (idempotent)';
  if (effects === 'fenced') return 'are refused by the fencing token (fenced)';
  return 'may run twice';
}

/** Of what several handlers of one job name say, what holds for all of them; undefined where none says anything. */
export function weakestEffects(said: readonly string[]): string | undefined {
  if (said.length === 0) return undefined;
  if (said.every((one) => one === 'idempotent')) return 'idempotent';
  // What nobody knows promises nothing.
  return said.every((one) => one === 'idempotent' || one === 'fenced') ? 'fenced' : 'mayRepeat';
}
