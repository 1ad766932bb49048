import type { ReturnReport } from '../client/return-delayed.js';
import type { ReturnedSchedule } from '../client/return-schedules.js';
import { formatDuration } from '../domain/durations.js';
import { confirmed } from './confirm.js';
import { withKnownQueue } from './connect.js';
import type { OfferFlags } from './offer-changes.js';
import { plain, printJson, printLine, remark } from './output.js';
import type { Settings } from './settings.js';

interface Report {
  schedules: ReturnedSchedule[];
  delayed: ReturnReport;
}

/** `carillon export --to bullmq <queue>`: what the timers hold of a queue goes back into BullMQ's own sets. */
export async function exportBullmq(settings: Settings, queue: string, flags: OfferFlags): Promise<void> {
  const { returnSchedules } = await import('../client/return-schedules.js');
  const { returnDelayed } = await import('../client/return-delayed.js');
  const { applied, ...report } = await withKnownQueue(settings, queue, async (q) => {
    const run = async (dryRun: boolean): Promise<Report> => ({
      schedules: await returnSchedules(q, { dryRun }),
      delayed: await returnDelayed(q, { dryRun }),
    });
    const foreseen = await run(true);
    if (!settings.json) printReport(queue, foreseen);
    const size = returned(foreseen) + foreseen.delayed.moved;
    if (flags.dryRun || size === 0) return { ...foreseen, applied: false };
    if (!(await confirmed(flags.yes ?? false, `Move ${size} into BullMQ?`)))
      return { ...foreseen, applied: false };
    return { ...(await run(false)), applied: true };
  });
  if (settings.json) return printJson({ queue, dryRun: flags.dryRun ?? false, applied, ...report });
  if (applied) printLine(`moved ${countsText(report)}`);
  else remark(flags.dryRun ? 'a dry run: nothing was written' : 'nothing was written');
}

function returned({ schedules }: Report): number {
  return schedules.filter(({ kind }) => kind === 'returned').length;
}

function countsText(report: Report): string {
  return `${returned(report)} Job Schedulers, ${report.delayed.moved} delayed jobs`;
}

function printReport(queue: string, report: Report): void {
  printLine(`queue ${queue}`);
  for (const { id, kind, form, reason, notTranslated } of report.schedules) {
    if (kind === 'refused') {
      printLine(`  ! ${plain(id)}`);
      printLine(`      ${plain(reason ?? '')}`);
      continue;
    }
    const when =
      form?.every === undefined ? `${form?.pattern} ${form?.tz}` : `every ${formatDuration(form.every)}`;
    printLine(`  + ${plain(id)}  ${when}`);
    for (const lost of notTranslated) printLine(`      not translated: ${plain(lost)}`);
  }
  const { moved, left, examples } = report.delayed;
  printLine(`  + ${moved} delayed jobs`);
  if (left > 0) printLine(`  ! ${left} stay in the timers`);
  for (const { id, reason } of examples) printLine(`      ${plain(id)}: ${plain(reason)}`);
  if (left > examples.length) printLine(`      and ${left - examples.length} more`);
  printLine(`${countsText(report)} to move`);
}
