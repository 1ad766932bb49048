import type { Difference } from '../domain/written-schedule.js';
import type { ChangedEntry, Changes, RefusedEntry } from './apply-changes.js';
import { plain, printLine } from './output.js';
import { timingText } from './schedule-timing.js';

/** Longer values are cut: the file holds them. */
const LONGEST_VALUE = 100;
const LONGEST_REASON = 300;

/** What applying would do, for people: `+` added, `~` changed, `-` deleted, `!` refused. */
export function printChanges({ entries, refused, deleted }: Changes): void {
  const queues = new Set([...entries, ...deleted].map(({ queue }) => queue));
  for (const queue of [...queues].sort()) {
    printLine(`queue ${queue}`);
    for (const entry of entries) if (entry.queue === queue) printEntry(entry);
    for (const { id } of deleted.filter((one) => one.queue === queue)) printLine(`  - ${plain(id)}`);
    const same = entries.filter((entry) => entry.queue === queue && entry.change.kind === 'unchanged').length;
    if (same > 0) printLine(`  = ${same} unchanged`);
  }
  printRefused(refused);
  printGroups(
    'not translated',
    grouped(entries, ({ notTranslated }) => notTranslated),
  );
  printGroups(
    'warnings',
    grouped(entries, ({ warnings }) => warnings),
  );
  printLine(summaryText({ entries, refused, deleted }));
}

export function printRefused(refused: readonly RefusedEntry[], title = 'refused'): void {
  if (refused.length === 0) return;
  printLine(title);
  for (const { source, text, reason } of refused) {
    printLine(`  ! ${source}  ${plain(shortened(text))}`);
    printLine(`      ${plain(shortened(reason, LONGEST_REASON))}`);
  }
}

function printEntry({ wanted, source, change }: ChangedEntry): void {
  if (change.kind === 'unchanged') return;
  const sign = change.kind === 'added' ? '+' : '~';
  const paused = wanted.paused === true ? ', paused' : '';
  printLine(`  ${sign} ${plain(wanted.id)}  ${timingText(wanted.policies)}${paused}  (${source})`);
  for (const difference of change.differences) printLine(`      ${differenceText(difference)}`);
}

export function differenceText({ option, from, to }: Difference): string {
  return `${option}: ${valueText(from)} → ${valueText(to)}`;
}

function valueText(value: unknown): string {
  return value === undefined ? 'none' : plain(shortened(JSON.stringify(value)));
}

function shortened(text: string, longest = LONGEST_VALUE): string {
  return text.length <= longest ? text : `${text.slice(0, longest - 1)}…`;
}

/** The same sentence of many schedules is said once. */
function grouped(
  entries: readonly ChangedEntry[],
  sentences: (entry: ChangedEntry) => readonly string[],
): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const entry of entries) {
    for (const sentence of sentences(entry)) {
      groups.set(sentence, [...(groups.get(sentence) ?? []), entry.wanted.id]);
    }
  }
  return groups;
}

function printGroups(title: string, groups: ReadonlyMap<string, readonly string[]>): void {
  if (groups.size === 0) return;
  printLine(title);
  for (const [sentence, ids] of groups) {
    const whose = ids.length === 1 ? `${ids[0]}` : `${ids.length} schedules`;
    printLine(`  ${plain(sentence)}  (${plain(whose)})`);
  }
}

function summaryText(changes: Changes): string {
  const { added, changed, unchanged, deleted, refused } = countsOf(changes);
  const parts = [`${added} to add`, `${changed} to change`, `${unchanged} unchanged`];
  if (deleted > 0) parts.push(`${deleted} to delete`);
  if (refused > 0) parts.push(`${refused} refused`);
  return parts.join(', ');
}

export function countsOf({
  entries,
  refused,
  deleted,
}: Changes): Record<'added' | 'changed' | 'unchanged' | 'deleted' | 'refused', number> {
  const count = (kind: ChangedEntry['change']['kind']) =>
    entries.filter(({ change }) => change.kind === kind).length;
  return {
    added: count('added'),
    changed: count('changed'),
    unchanged: count('unchanged'),
    deleted: deleted.length,
    refused: refused.length,
  };
}

/** The same for programs. */
export function changesDocument(changes: Changes): Record<string, unknown> {
  return {
    ...countsOf(changes),
    schedules: changes.entries.map(({ queue, source, wanted, change, notTranslated, warnings }) => ({
      queue,
      id: wanted.id,
      change: change.kind,
      differences: change.differences,
      source,
      definition: wanted.policies,
      template: wanted.template,
      paused: wanted.paused ?? null,
      notTranslated,
      warnings,
    })),
    deletions: changes.deleted,
    refusals: changes.refused.map(({ source, text, reason }) => ({ source, text, reason })),
  };
}
