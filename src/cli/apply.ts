import type { Command } from 'commander';
import { CarillonError } from '../domain/errors.js';
import { compareEntries, namespaceIsThere, type WantedEntry } from './apply-changes.js';
import { withAdmin, withQueue } from './connect.js';
import { offered } from './import.js';
import { readSource } from './import-sources.js';
import { APPLIED, keepMarks } from './marks.js';
import { type OfferFlags, offerChanges } from './offer-changes.js';
import { remark } from './output.js';
import { type Settings, settingsOf } from './settings.js';

const EXAMPLES = `
Examples:
  carillon apply -f schedules.yaml --dry-run
  carillon apply -f schedules.yaml --prune --yes
  carillon export | carillon --prefix staging apply -f - --yes`;

interface Flags extends OfferFlags {
  file: string;
  prune?: boolean;
}

type Place = { readonly queue: string; readonly id: string };

/** Schedules as a file says: `carillon apply`. */
export function addApply(program: Command): void {
  offered(program.command('apply'))
    .description('make the schedules what a YAML file says; shows what it would do and asks')
    .requiredOption('-f, --file <path>', 'the file; - is standard input')
    .option('--prune', 'delete what an earlier apply of the file created and it holds no more')
    .addHelpText('after', EXAMPLES)
    .action(apply);
}

async function apply(flags: Flags, command: Command): Promise<void> {
  const settings = settingsOf(command);
  const { readScheduleFile } = await import('./schedule-file.js');
  const { name, text } = readSource(flags.file);
  const { label, entries, problems } = readScheduleFile(name, text);
  if (problems.length > 0) {
    const [first = '', ...more] = problems;
    for (const problem of more) remark(problem);
    throw new CarillonError('INVALID_OPTION', first, {
      field: 'file',
      todo:
        more.length === 0
          ? 'Nothing was written.'
          : `Nothing was written; there are ${more.length} more problems.`,
    });
  }
  const mark = APPLIED + label;
  const changes = await compareEntries(settings, entries, (wanted, existing) =>
    keepMarks(mark, wanted, existing),
  );
  if (changes.refused.length > 0) {
    const [first] = changes.refused;
    throw new CarillonError('INVALID_OPTION', `${first?.source}: ${first?.text}: ${first?.reason}`, {
      field: 'file',
      todo: 'Nothing was written.',
    });
  }
  const orphans = await findOrphans(settings, mark, entries);
  if (!flags.prune && orphans.length > 0) {
    remark(
      `${orphans.length} schedules of earlier applies are not in ${name} any more; --prune deletes them`,
    );
  }
  await offerChanges(settings, { ...changes, deleted: flags.prune ? orphans : [] }, flags);
}

/** What the file's applies created and it holds no more. */
async function findOrphans(
  settings: Settings,
  mark: string,
  entries: readonly WantedEntry[],
): Promise<Place[]> {
  if (!(await namespaceIsThere(settings))) return [];
  const known = new Set(entries.map(({ queue, wanted }) => `${queue}:${wanted.id}`));
  const orphans: Place[] = [];
  const queues = await withAdmin(settings, (admin) => admin.queues());
  for (const { name, schedules } of queues) {
    if (schedules === 0) continue;
    await withQueue(settings, name, async (q) => {
      for await (const { id, definition } of q.schedules.list()) {
        if (definition.tags?.includes(mark) && !known.has(`${name}:${id}`)) orphans.push({ queue: name, id });
      }
    });
  }
  return orphans.sort((a, b) => (`${a.queue}:${a.id}` < `${b.queue}:${b.id}` ? -1 : 1));
}
