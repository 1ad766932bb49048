import { type Changes, sizeOf, writeChanges } from './apply-changes.js';
import { confirmed } from './confirm.js';
import { printJson, printLine, remark } from './output.js';
import { changesDocument, printChanges, printRefused } from './print-changes.js';
import type { Settings } from './settings.js';

/** The flags of every command that shows what it would do first. */
export interface OfferFlags {
  dryRun?: boolean;
  yes?: boolean;
}

/**
 * Shows what would be done, asks, and does it. Exit code 1 when some of it failed, or when there was nothing but
 * refusals.
 */
export async function offerChanges(settings: Settings, changes: Changes, flags: OfferFlags): Promise<void> {
  const size = sizeOf(changes);
  const nothingElse = size === 0 && changes.entries.length === 0 && changes.refused.length > 0;
  if (!settings.json) printChanges(changes);
  const goesOn = !flags.dryRun && size > 0 && (await confirmed(flags.yes ?? false, `Apply ${size} changes?`));
  const failed = goesOn ? await writeChanges(settings, changes) : [];
  if (settings.json) {
    printJson({
      dryRun: flags.dryRun ?? false,
      applied: goesOn,
      ...changesDocument(changes),
      failures: failed,
    });
  } else {
    if (goesOn) printLine(`applied ${size - failed.length} changes`);
    else if (flags.dryRun) remark('a dry run: nothing was written');
    else if (size > 0) remark('nothing was written');
    printRefused(failed, 'failed');
  }
  if (failed.length > 0 || nothingElse) process.exitCode = 1;
}
