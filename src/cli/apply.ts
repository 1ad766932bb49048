import type { Command } from 'commander';
import { identityOf } from '../domain/ids.js';
import { compareEntries, namespaceIsThere, refuseDuplicates, type WantedEntry } from './apply-changes.js';
import { withAdmin, withQueue } from './connect.js';
import { ProblemsError, refuseArgument } from './failure.js';
import { refuseFollowed } from './followed-schedules.js';
import { offered } from './import.js';
import { readSource } from './import-sources.js';
import { APPLIED, keepMarks, markOfName } from './marks.js';
import { type OfferFlags, offerChanges } from './offer-changes.js';
import { remark } from './output.js';
import type { ScheduleFile } from './schedule-file.js';
import { type Settings, settingsOf } from './settings.js';

const EXAMPLES = `
Examples:
  carillon apply -f schedules.yaml --dry-run
  carillon apply -f schedules.yaml --prune --yes
  carillon apply -f billing.yaml -f reports.yaml --yes
  carillon export | carillon --prefix staging apply -f - --yes`;

interface Flags extends OfferFlags {
  file: string[];
  label?: string;
  prune?: boolean;
}

type Place = { readonly queue: string; readonly id: string };

/** A file, with the mark of what it creates. */
interface MarkedFile extends ScheduleFile {
  readonly mark: string | undefined;
}

/** What files created and hold no more. */
interface Orphans {
  readonly theirs: Place[];
  /** In queues that a file without a label does not name: a file of the same name may have created them. */
  readonly strange: Place[];
}

/** Schedules as files say: `carillon apply`. */
export function addApply(program: Command): void {
  offered(program.command('apply'))
    .description('make the schedules what YAML files say; shows what it would do and asks')
    .requiredOption(
      '-f, --file <path>',
      'a file; - is standard input; may be given again',
      (value, known) => [...((known as string[] | undefined) ?? []), value],
    )
    .option(
      '--label <text>',
      'whose the schedules are, for --prune, where the files do not say label: themselves; else their names tell',
    )
    .option('--prune', 'delete what earlier applies of the files created and they hold no more')
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
  const { theirs, strange } = await findOrphans(settings, files, entries);
  const deleted = flags.prune ? theirs : [];
  const gone = new Set(deleted.map(({ queue, id }) => identityOf(queue, id)));
  const refused = [...changes.refused, ...(await refuseFollowed(settings, entries, gone))];
  if (refused.length > 0) throw new ProblemsError(refused.map(problemOf), refused[0]?.code);
  if (!flags.prune && theirs.length > 0) {
    remark(`${theirs.length} schedules of earlier applies are in no file any more; --prune deletes them`);
  }
  if (strange.length > 0) {
    const queues = [...new Set(strange.map(({ queue }) => queue))].join(', ');
    remark(
      `${strange.length} schedules that a file of this name created stand in queues that it does not name (${queues}), and are ` +
        `left; where they are its own, name the queue, as in '${strange[0]?.queue}: {}'`,
    );
  }
  await offerChanges(settings, { ...changes, deleted }, flags);
}

/** Every file with the mark of what it creates: its label, or else its name. */
async function readFiles({ file: paths, label, prune = false }: Flags): Promise<MarkedFile[]> {
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
    const named = isInput ? undefined : markOfName(name);
    const mark = own === undefined ? named : APPLIED + own;
    if (prune && mark === undefined && file.problems.length === 0) {
      refuseArgument(
        'prune',
        true,
        `needs a label: ${name} does not tell whose schedules it may delete`,
        'Write label: and a name that no other file has at its head, or give --label.',
      );
    }
    return { ...file, label: own, mark, entries: file.entries.map((entry) => ({ ...entry, mark })) };
  });
}

function problemOf({ source, text, reason }: { source: string; text: string; reason: string }): string {
  return `${source}: ${text}: ${reason}`;
}

async function findOrphans(
  settings: Settings,
  files: readonly MarkedFile[],
  entries: readonly WantedEntry[],
): Promise<Orphans> {
  const orphans: Orphans = { theirs: [], strange: [] };
  const marked = files.filter(({ mark }) => mark !== undefined);
  if (marked.length === 0 || !(await namespaceIsThere(settings))) return orphans;
  const known = new Set(entries.map(({ queue, wanted }) => identityOf(queue, wanted.id)));
  const queues = await withAdmin(settings, (admin) => admin.queues());
  for (const { name, schedules } of queues) {
    if (schedules === 0) continue;
    await withQueue(settings, name, async (q) => {
      for await (const { id, definition } of q.schedules.list()) {
        const makers = marked.filter(({ mark = '' }) => definition.tags?.includes(mark));
        if (makers.length === 0 || known.has(identityOf(name, id))) continue;
        const isTheirs = makers.some(({ label, queues }) => label !== undefined || queues.has(name));
        orphans[isTheirs ? 'theirs' : 'strange'].push({ queue: name, id });
      }
    });
  }
  orphans.theirs.sort((a, b) => (identityOf(a.queue, a.id) < identityOf(b.queue, b.id) ? -1 : 1));
  return orphans;
}
