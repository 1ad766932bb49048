import type { ScheduleInfo } from '../client/schedule-info.js';
import type { Difference } from '../domain/written-schedule.js';
import { away, plain, printLine, remark, utc } from './output.js';
import { differenceText } from './print-changes.js';
import { timingText } from './schedule-timing.js';

/** A schedule in one line. */
export function scheduleLine(
  queue: string,
  { id, definition, next }: Pick<ScheduleInfo, 'id' | 'definition' | 'next'>,
): string {
  const pending = next === undefined ? '' : `, next ${utc(next)} (${away(next)})`;
  return `${plain(id)} in ${queue}: ${timingText(definition)}${pending}`;
}

/** What becomes, or became, otherwise: an option a line. */
export function printDifferences(differences: readonly Difference[]): void {
  for (const difference of differences) printLine(`  ${differenceText(difference)}`);
}

export function remarkRepeated(): void {
  remark('an earlier call with this --request-id was carried out; this one repeats it and changed nothing');
}

export function remarkDryRun(): void {
  remark('a dry run: nothing was written');
}
