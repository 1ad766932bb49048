import type { Command } from 'commander';
import { identityOf } from '../domain/ids.js';
import { compareEntries, namespaceIsThere, refuseDuplicates, type WantedEntry } from './apply-changes.js';
import { withAdmin, withQueue } from './connect.js';
import { ProblemsError, refuseArgument } from './failure.js';
import { refuseFollowed } from './followed-schedules.js';
import { offered } from './import.js';
import { readSource } from './import-sources.js';
import { APPLIED, keepMarks } from './marks.js';
import { type OfferFlags, offerChanges } from './offer-changes.js';
import { remark } from './output.js';
import type { ScheduleFile } from './schedule-file.js';
import { type Settings, settingsOf } from './settings.js';

const EXAMPLES = `
Examples:
  carillon apply -f schedules.yaml --dry-run
  carillon apply -f schedules.yaml --label billing --prune --yes
  carillon apply -f billing.yaml -f reports.yaml --yes
  carillon export | carillon --prefix staging apply -f - --yes`;

interface Flags extends OfferFlags {
  file: string[];
  label?: string;
  prune?: boolean;
}

type Place = { readonly queue: string; readonly id: string };

/** Schedules as files say: `carillon apply`. */
export function addApply(program: Command): void {
  offered(program.command('apply'))
    .description('make the schedules what YAML files say; shows what it would do and asks')
    .requiredOption(
      '-f, --file <path>',
      'a file; - is standard input; may be given again',
      (value, known) => [...((known as string[] | undefined) ?? []), value],
    )
    .option('--label <text>', 'names the files for --prune, where they do not say label: themselves')
    .option('--prune', 'delete what earlier applies of the label created and the files hold no more')
    .addHelpText('after', EXAMPLES)
    .action(apply);
}

async function apply(flags: Flags, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const files = await readFiles(flags);
  const { unique: entries, refused: twice } = refuseDuplicates(files.flatMap((file) => file.entries));
  const problems = [...files.flatMap((file) => file.problems), ...twice.map(problemOf)];
  if (problems.length > 0) throw new ProblemsError(problems);
  const changes = await compareEntries(settings, entries, (wanted, existing, { mark }) =>
    keepMarks(mark, wanted, existing),
  );
  const marks = new Set(files.flatMap(({ label }) => (label === undefined ? [] : APPLIED + label)));
  const orphans = await findOrphans(settings, marks, entries);
  const deleted = flags.prune ? orphans : [];
  const gone = new Set(deleted.map(({ queue, id }) => identityOf(queue, id)));
  const refused = [...changes.refused, ...(await refuseFollowed(settings, entries, gone))];
  if (refused.length > 0) throw new ProblemsError(refused.map(problemOf), refused[0]?.code);
  if (!flags.prune && orphans.length > 0) {
    remark(`${orphans.length} schedules of earlier applies are in no file any more; --prune deletes them`);
  }
  await offerChanges(settings, { ...changes, deleted }, flags);
}

/** Every file with the mark of what it creates. */
async function readFiles({ file: paths, label, prune = false }: Flags): Promise<ScheduleFile[]> {
  const { checkLabel, readScheduleFile } = await import('./schedule-file.js');
  const given = label === undefined ? undefined : checkLabel(label);
  return paths.map((path) => {
    const { name, isInput, text } = readSource(path);
    // Files of several folders may have one name.
    const file = readScheduleFile(paths.length > 1 && !isInput ? path : name, text);
    const own = file.label ?? given;
    if (given !== undefined && own !== given) {
      refuseArgument('label', given, `is another one than that of ${name}`, 'Say the label once.');
    }
    if (prune && own === undefined && file.problems.length === 0) {
      refuseArgument(
        'prune',
        true,
        `needs a label: by the name of ${name} nobody tells whose schedules it may delete`,
        'Write label: and a name that no other file has at its head, or give --label.',
      );
    }
    const mark = own === undefined ? undefined : APPLIED + own;
    return { ...file, label: own, entries: file.entries.map((entry) => ({ ...entry, mark })) };
  });
}

function problemOf({ source, text, reason }: { source: string; text: string; reason: string }): string {
  return `${source}: ${text}: ${reason}`;
}

/** What applies of these marks created and the files hold no more. */
async function findOrphans(
  settings: Settings,
  marks: ReadonlySet<string>,
  entries: readonly WantedEntry[],
): Promise<Place[]> {
  if (marks.size === 0 || !(await namespaceIsThere(settings))) return [];
  const known = new Set(entries.map(({ queue, wanted }) => identityOf(queue, wanted.id)));
  const orphans: Place[] = [];
  const queues = await withAdmin(settings, (admin) => admin.queues());
  for (const { name, schedules } of queues) {
    if (schedules === 0) continue;
    await withQueue(settings, name, async (q) => {
      for await (const { id, definition } of q.schedules.list()) {
        const isOurs = definition.tags?.some((tag) => marks.has(tag)) ?? false;
        if (isOurs && !known.has(identityOf(name, id))) orphans.push({ queue: name, id });
      }
    });
  }
  return orphans.sort((a, b) => (identityOf(a.queue, a.id) < identityOf(b.queue, b.id) ? -1 : 1));
}
