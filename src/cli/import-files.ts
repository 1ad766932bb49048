import type { Command } from 'commander';
import type { ScheduleInfo } from '../client/schedule-info.js';
import { checkQueueName } from '../domain/ids.js';
import { checkTimeZone } from '../domain/time-zone-names.js';
import {
  type Adjust,
  compareEntries,
  namespaceIsThere,
  type RefusedEntry,
  refuseDuplicates,
  type WantedEntry,
} from './apply-changes.js';
import { withQueue } from './connect.js';
import { refuseArgument } from './failure.js';
import { readSource, type SourceFile } from './import-sources.js';
import { IMPORTED, keepMarks } from './marks.js';
import { type OfferFlags, offerChanges } from './offer-changes.js';
import { remark } from './output.js';
import { type Settings, settingsOf } from './settings.js';

/** The flags of every import of files. */
export interface FileFlags extends OfferFlags {
  queue: string;
  tz: string;
  label?: string;
  idPrefix?: string;
  prune?: boolean;
}

/** What differs between imports of files. */
export interface Reader {
  /** Reads one file; `standing` is what earlier imports of it made. */
  read(file: SourceFile, standing: readonly ScheduleInfo[]): FilePart;
  readonly adjust?: Adjust;
  /** How to keep two of one id apart. */
  readonly apart?: string;
}

/** What is read of a file. */
export interface FilePart {
  readonly wanted: readonly WantedEntry[];
  readonly refused: readonly RefusedEntry[];
}

const LONGEST_LABEL = 90;
/** So many of the ids that are gone from a file are named. */
const NAMED = 5;

/**
 * Reads files, shows what would become of their schedules, asks, and does it.
 * @throws CarillonError INVALID_OPTION, INVALID_ID, INVALID_TIME_ZONE
 */
export async function importFiles(
  files: readonly string[],
  flags: FileFlags,
  command: Command,
  { read, adjust = (as) => as, apart }: Reader,
): Promise<void> {
  const settings = settingsOf(command);
  checkTimeZone(flags.tz);
  checkQueueName(flags.queue);
  if (flags.prune && flags.label === undefined && flags.idPrefix === undefined) {
    refuseArgument(
      'prune',
      true,
      'needs --label: another file may have the same name',
      'Give --label with a name that no other source of the queue has, from the first import on.',
    );
  }
  const wanted: WantedEntry[] = [];
  const refused: RefusedEntry[] = [];
  const made = new Set<string>();
  for (const path of files) {
    const file = readSource(path);
    const mark = markOf(file, flags);
    const standing = mark === undefined ? [] : await madeBefore(settings, flags.queue, mark);
    const part = read(file, standing);
    wanted.push(...part.wanted.map((entry) => ({ ...entry, mark })));
    refused.push(...part.refused);
    for (const { id } of standing) made.add(id);
  }
  const { unique, refused: duplicates } = refuseDuplicates(wanted, apart);
  const changes = await compareEntries(settings, unique, (as, existing, entry) => {
    const adjusted = adjust(as, existing, entry);
    return typeof adjusted === 'string' ? adjusted : keepMarks(entry.mark, adjusted, existing);
  });
  for (const entry of wanted) made.delete(entry.wanted.id);
  for (const id of refused.flatMap(({ ids = [] }) => ids)) made.delete(id);
  const gone = [...made].sort();
  if (!flags.prune && gone.length > 0) tellGone(gone);
  await offerChanges(
    settings,
    {
      ...changes,
      refused: [...refused, ...duplicates, ...changes.refused],
      deleted: flags.prune ? gone.map((id) => ({ queue: flags.queue, id })) : [],
    },
    flags,
  );
}

/** The tag of what an import of this file creates; standard input has no name of its own. */
function markOf({ name, isInput }: SourceFile, { label, idPrefix = '' }: FileFlags): string | undefined {
  if (label === undefined && isInput) return undefined;
  const text = label ?? `${idPrefix}${name}`;
  if (text.length <= LONGEST_LABEL && text !== '') return IMPORTED + text;
  return refuseArgument(
    'label',
    text,
    `has ${text.length} characters`,
    `Give --label with 1 to ${LONGEST_LABEL} characters.`,
  );
}

async function madeBefore(settings: Settings, queue: string, mark: string): Promise<ScheduleInfo[]> {
  if (!(await namespaceIsThere(settings))) return [];
  return withQueue(settings, queue, async (q) => {
    const found = new Map<string, ScheduleInfo>();
    for await (const info of q.schedules.list({ tag: mark })) found.set(info.id, info);
    return [...found.values()];
  });
}

function tellGone(gone: readonly string[]): void {
  const more = gone.length > NAMED ? `, and ${gone.length - NAMED} more` : '';
  remark(
    `${gone.length} schedules of earlier imports are gone from the source and still stand: ` +
      `${gone.slice(0, NAMED).join(', ')}${more}; --prune deletes them`,
  );
}
