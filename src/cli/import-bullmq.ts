import type { Command } from 'commander';
import type { AdoptReport } from '../client/adopt-delayed.js';
import type { AdoptedScheduler } from '../client/adopt-schedulers.js';
import { checkTimeZone } from '../domain/time-zone-names.js';
import { confirmed } from './confirm.js';
import { withQueue } from './connect.js';
import type { OfferFlags } from './offer-changes.js';
import { plain, printJson, printLine, remark } from './output.js';
import { differenceText } from './print-changes.js';
import { timingText } from './schedule-timing.js';
import { settingsOf } from './settings.js';

interface Flags extends OfferFlags {
  schedulers?: boolean;
  delayed?: boolean;
  tz: string;
  idPrefix: string;
}

interface Report {
  schedulers: AdoptedScheduler[] | undefined;
  delayed: AdoptReport | undefined;
}

const SIGNS = { added: '+', finished: '+', kept: '=', refused: '!' } as const;

/** `carillon import bullmq <queue>`: what BullMQ holds of a queue and runs by itself becomes ours. */
export async function importBullmq(queue: string, flags: Flags, command: Command): Promise<void> {
  const settings = settingsOf(command);
  checkTimeZone(flags.tz);
  const both = !flags.schedulers && !flags.delayed;
  const { adoptDelayed } = await import('../client/adopt-delayed.js');
  const { adoptSchedulers } = await import('../client/adopt-schedulers.js');
  const report = await withQueue(settings, queue, async (q) => {
    const run = async (dryRun: boolean): Promise<Report> => ({
      // Schedulers first: their next runs stand among the delayed jobs.
      schedulers: flags.schedulers || both ? await adoptSchedulers(q, { tz: flags.tz, dryRun }) : undefined,
      delayed:
        flags.delayed || both ? await adoptDelayed(q, { idPrefix: flags.idPrefix, dryRun }) : undefined,
    });
    const foreseen = await run(true);
    if (!settings.json) printReport(queue, foreseen, flags.idPrefix);
    const size = sizeOf(foreseen);
    if (flags.dryRun || size === 0) return { ...foreseen, applied: false };
    if (!(await confirmed(flags.yes ?? false, `Move ${size} out of BullMQ?`)))
      return { ...foreseen, applied: false };
    return { ...(await run(false)), applied: true };
  });
  const { applied, ...found } = report;
  if (settings.json) return printJson({ queue, dryRun: flags.dryRun ?? false, applied, ...found });
  if (applied) printLine(`moved ${countsText(found)}`);
  else remark(flags.dryRun ? 'a dry run: nothing was written' : 'nothing was written');
}

function sizeOf({ schedulers, delayed }: Report): number {
  return (schedulers ?? []).filter(({ kind }) => kind !== 'refused').length + (delayed?.moved ?? 0);
}

function countsText({ schedulers, delayed }: Report): string {
  const moved = (schedulers ?? []).filter(({ kind }) => kind !== 'refused').length;
  return [
    ...(schedulers === undefined ? [] : [`${moved} Job Schedulers`]),
    ...(delayed === undefined ? [] : [`${delayed.moved} delayed jobs`]),
  ].join(', ');
}

function printReport(queue: string, { schedulers, delayed }: Report, idPrefix: string): void {
  printLine(`queue ${queue}`);
  for (const one of schedulers ?? []) printScheduler(one);
  if (delayed !== undefined) printDelayed(delayed, idPrefix);
  printLine(`${countsText({ schedulers, delayed })} to move`);
}

function printScheduler({ id, kind, definition, reason, warnings, differences }: AdoptedScheduler): void {
  const when = definition === undefined ? '' : `  ${timingText(definition)}`;
  const how = {
    added: '',
    finished: '  (finishing an import that broke off)',
    kept: '  (stands already, and stays)',
    refused: '',
  };
  printLine(`  ${SIGNS[kind]} ${plain(id)}${when}${how[kind]}`);
  if (reason !== undefined) printLine(`      ${plain(reason)}`);
  for (const difference of differences) printLine(`      BullMQ’s ${differenceText(difference)}`);
  for (const warning of warnings) printLine(`      ${plain(warning)}`);
}

function printDelayed({ moved, renamed, due, left, examples }: AdoptReport, idPrefix: string): void {
  printLine(`  + ${moved} delayed jobs`);
  if (renamed > 0) {
    printLine(`      ${renamed} of them have ids that BullMQ made: 17 becomes ${plain(idPrefix)}17`);
  }
  if (due > 0) printLine(`  = ${due} are due: BullMQ runs them`);
  if (left > 0) printLine(`  ! ${left} stay in BullMQ`);
  for (const { id, reason } of examples) printLine(`      ${plain(id)}: ${plain(reason)}`);
  if (left > examples.length) printLine(`      and ${left - examples.length} more`);
}
