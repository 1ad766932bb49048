import { type Dialect, translateExpression } from './dialect.js';
import type { Imported } from './imported.js';
import type { MissedPolicy, OverlapPolicy } from './schedule.js';

/** How the lines of a file of expressions become schedules. */
export interface ExpressionImportOptions {
  dialect: Dialect;
  /** The zone of expressions that name none. Defaults to `UTC`. */
  tz?: string;
  /** Defaults to what the dialect's scheduler does. */
  missed?: MissedPolicy;
}

/**
 * What each scheduler does when it says nothing else: Quartz fires once for what it missed, and lets executions
 * overlap; Spring drops what comes while the method runs, or while nothing ran; EventBridge retries for a day.
 */
const BEHAVIOUR: Readonly<Record<Dialect, { missed: MissedPolicy; overlap: OverlapPolicy }>> = {
  quartz: { missed: 'latest', overlap: 'allow' },
  spring: { missed: 'skip', overlap: 'skip' },
  eventbridge: { missed: 'latest', overlap: 'allow' },
};

const COMMENT = /^[#!]/;
const LINE = /^([^=:\s]+)(\s*[=:]\s*|\s+)(.*)$/;
/** What stands where a name should: a call of EventBridge, or a field such as `0`, `1-5`, `H`. */
const CALL = /^["']?(?:cron|rate|at)\s*\(/i;
const CRON_FIELD = /^["']?(?:H(?![A-Z\d])|[\d*?,/~()-])+$/i;

/**
 * Reads a file of named expressions, one a line, `name = expression` as in a Java properties file; `#` and `!` begin
 * comments. The name becomes the schedule's id and the name of its runs. A line that is an expression alone is
 * refused: its first field is no name.
 */
export function importExpressions(text: string, options: ExpressionImportOptions): Imported[] {
  const { dialect, tz = 'UTC', missed = BEHAVIOUR[dialect].missed } = options;
  const imported: Imported[] = [];
  for (const [i, raw] of text
    .replace(/^\uFEFF/, '')
    .split(/\r?\n/)
    .entries()) {
    const written = raw.trim();
    if (written === '' || COMMENT.test(written)) continue;
    const line = i + 1;
    if (hasNoName(written, dialect)) {
      imported.push({
        kind: 'refused',
        line,
        text: written,
        reason: 'it has no name; write name = expression',
      });
      continue;
    }
    const [, id, , expression] = LINE.exec(written) ?? [];
    if (id === undefined || expression === undefined) {
      imported.push({ kind: 'refused', line, text: written, reason: 'it is no line like name = expression' });
      continue;
    }
    const translation = translateExpression(dialect, unquoted(expression), tz);
    if ('refused' in translation) {
      imported.push({ kind: 'refused', line, text: written, reason: translation.refused, ids: [id] });
      continue;
    }
    imported.push({
      kind: 'schedule',
      line,
      id,
      definition: { ...translation.timing, missed, overlap: BEHAVIOUR[dialect].overlap, tags: [dialect] },
      template: { name: id, data: {} },
      paused: false,
      notTranslated: [],
      warnings: translation.warnings,
    });
  }
  return imported;
}

/** A blank may stand between name and expression, and so stands within an expression that has no name. */
function hasNoName(written: string, dialect: Dialect): boolean {
  if (CALL.test(written)) return true;
  const [, name = '', separator = ' '] = LINE.exec(written) ?? [];
  if (separator.trim() !== '') return false;
  return CRON_FIELD.test(name) || 'timing' in translateExpression(dialect, unquoted(written));
}

function unquoted(text: string): string {
  return /^(["'])(.*)\1$/.exec(text)?.[2] ?? text;
}
