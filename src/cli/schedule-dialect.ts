import { type Dialect, translateExpression } from '../domain/dialect.js';
import { CarillonError } from '../domain/errors.js';
import type { TimingDefinition } from '../domain/fire-times-definition.js';

/**
 * Expressions in another scheduler's notation, as a definition of ours.
 * @param tell hears what is doubtful about them, a sentence at a time.
 * @throws CarillonError INVALID_CRON for one that is refused, and for several that are not all plain expressions
 */
export function translateCrons(
  dialect: Dialect,
  crons: readonly string[],
  tz: string | undefined,
  tell: (warning: string) => void,
): TimingDefinition {
  const timings = crons.map((text, i) => {
    const translation = translateExpression(dialect, text, tz);
    if ('refused' in translation) {
      const field = crons.length === 1 ? 'cron' : `crons[${i}]`;
      throw new CarillonError('INVALID_CRON', translation.refused, { field, given: text });
    }
    for (const warning of translation.warnings) tell(warning);
    return translation.timing;
  });
  const [first] = timings;
  if (first !== undefined && timings.length === 1) return first;
  const zones = new Set(timings.map((timing) => timing.tz));
  if (zones.size > 1 || timings.some(({ cron, limit }) => cron === undefined || limit !== undefined)) {
    throw new CarillonError('INVALID_CRON', 'these expressions cannot be one schedule', {
      field: 'cron',
      given: crons,
      todo: 'Make each a schedule of its own: intervals, at() and other zones stand alone.',
    });
  }
  const zone = first?.tz === undefined ? {} : { tz: first.tz };
  return timings.length === 0 ? zone : { crons: timings.map(({ cron }) => cron ?? ''), ...zone };
}
