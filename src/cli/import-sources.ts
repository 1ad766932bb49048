import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import { checkSchedule } from '../domain/check-schedule.js';
import { isCarillonError } from '../domain/errors.js';
import { checkScheduleId, identityOf } from '../domain/ids.js';
import type { Imported } from '../domain/imported.js';
import type { RefusedEntry, WantedEntry } from './apply-changes.js';
import { refuseArgument } from './failure.js';

/** A file that is read whole; `-` is standard input. */
export interface SourceFile {
  /** As it stands in reports: the file’s name without its folders. */
  readonly name: string;
  readonly isInput: boolean;
  readonly text: string;
}

/** @throws CarillonError INVALID_OPTION for a file that cannot be read */
export function readSource(path: string): SourceFile {
  try {
    const text = readFileSync(path === '-' ? 0 : path, 'utf8');
    return { name: path === '-' ? 'stdin' : basename(path), isInput: path === '-', text };
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    return refuseArgument(
      'file',
      path,
      `cannot be read: ${why}`,
      'Give the path of a file, or - for standard input.',
    );
  }
}

/** Sorts what translators made of a file into what is wanted and what is refused. */
export function sortImported(
  queue: string,
  file: string,
  imported: readonly Imported[],
  pausedNote: string,
): { wanted: WantedEntry[]; refused: RefusedEntry[] } {
  const wanted: WantedEntry[] = [];
  const refused: RefusedEntry[] = [];
  for (const one of imported) {
    const source = `${file}:${one.line}`;
    if (one.kind === 'refused') {
      refused.push({ source, text: one.text, reason: one.reason, ids: one.ids ?? [] });
      continue;
    }
    const { id, definition, template, paused, notTranslated, warnings } = one;
    try {
      const policies = checkSchedule(definition, identityOf(queue, checkScheduleId(id)));
      const pausing = paused ? { paused: true, note: pausedNote } : {};
      wanted.push({ queue, source, wanted: { id, policies, template, ...pausing }, notTranslated, warnings });
    } catch (error) {
      if (!isCarillonError(error)) throw error;
      refused.push({ source, text: id, reason: error.message, ids: [id] });
    }
  }
  return { wanted, refused };
}
