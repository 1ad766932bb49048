import type { QueueStop } from '../domain/gate.js';
import { utc } from './output.js';

/** What keeps a queue from going on, in words; empty for nothing. */
export function stopsText({
  hold,
  pause,
}: {
  hold?: QueueStop | undefined;
  pause?: QueueStop | undefined;
}): string {
  const texts = [];
  if (pause !== undefined)
    texts.push(stopText(pause.everything ? 'paused with everything' : 'paused', pause));
  if (hold !== undefined) texts.push(stopText('on hold', hold));
  return texts.join('; ');
}

function stopText(what: string, { since, note }: QueueStop): string {
  return `${what} since ${utc(since)}${note === undefined ? '' : `: ${note}`}`;
}
