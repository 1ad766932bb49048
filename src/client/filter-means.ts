import { refuse } from '../config/check.js';

/**
 * Who changes many must say which: a condition that came out undefined would else mean every one. All of them is said
 * by `all: true`.
 * @param filter checked already.
 * @param what the many: `'schedule'`.
 * @param conditions what a filter may name, for the reader.
 * @throws CarillonError INVALID_OPTION
 */
export function refuseEmptyFilter(filter: { all?: boolean }, what: string, conditions: string): void {
  const { all, ...named } = filter;
  const isNamed = Object.values(named).some((value) => value !== undefined);
  if (all && isNamed)
    refuse('filter.all', all, 'and conditions exclude each other', 'Leave all out, or the conditions.');
  if (!all && !isNamed)
    refuse(
      'filter',
      filter,
      `means every ${what}`,
      `Give ${conditions}; or { all: true }, if all are meant.`,
    );
}
