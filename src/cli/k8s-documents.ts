import { type Document, isScalar, LineCounter, type Pair, parseAllDocuments, visit } from 'yaml';
import { YAML_OPTIONS } from './yaml-value.js';

/** A document of a file of manifests. */
export interface ManifestDocument {
  readonly document: Document;
  /** The line of the file at an offset of the document, counted from 1. */
  lineAt(offset: number): number;
}

/** What YAML 1.1, which kubectl reads, takes for a boolean besides true and false. */
const OLD_BOOLEANS: ReadonlyMap<unknown, boolean> = new Map(
  [...wordsOf('y yes on', true), ...wordsOf('n no off', false)].flatMap(([word, means]) => [
    [word, means],
    [word.toUpperCase(), means],
    [word.charAt(0).toUpperCase() + word.slice(1), means],
  ]),
);
/** The fields of a CronJob and of what it holds that are booleans: in others those words are texts. */
const BOOLEAN_FIELDS: ReadonlySet<unknown> = new Set(
  (
    'suspend manualSelector hostNetwork hostPID hostIPC hostUsers shareProcessNamespace enableServiceLinks ' +
    'automountServiceAccountToken setHostnameAsFQDN privileged readOnlyRootFilesystem runAsNonRoot hostProcess ' +
    'allowPrivilegeEscalation readOnly optional stdin stdinOnce tty controller blockOwnerDeletion'
  ).split(' '),
);
/** The tokens that matter to where a value of JSON ends. */
const JSON_TOKEN = /"(?:[^"\\]|\\.)*"|[{}]/gs;

/** The documents of a file as kubectl takes it: YAML, or values of JSON one behind the other. */
export function* manifestDocuments(text: string): Generator<ManifestDocument> {
  for (const { part, linesBefore } of jsonValues(text) ?? [{ part: text, linesBefore: 0 }]) {
    const lineCounter = new LineCounter();
    const documents = parseAllDocuments(part, { ...YAML_OPTIONS, lineCounter });
    for (const document of 'empty' in documents ? [] : documents) {
      visit(document, { Pair: (_key, pair) => readBoolean(pair) });
      yield { document, lineAt: (offset) => linesBefore + lineCounter.linePos(offset).line };
    }
  }
}

function readBoolean({ key, value }: Pair): void {
  if (!isScalar(key) || !isScalar(value) || !BOOLEAN_FIELDS.has(key.value)) return;
  const isPlain = value.type === 'PLAIN' && value.tag === undefined;
  if (isPlain) value.value = OLD_BOOLEANS.get(value.value) ?? value.value;
}

/** The values of a file that holds objects of JSON and nothing else, which YAML does not know; else undefined. */
function jsonValues(text: string): { part: string; linesBefore: number }[] | undefined {
  if (!/^\s*\{/.test(text)) return undefined;
  const values: { part: string; linesBefore: number }[] = [];
  let depth = 0;
  let from = 0;
  let linesBefore = 0;
  for (const { 0: token, index } of text.matchAll(JSON_TOKEN)) {
    if (token === '{') depth++;
    if (token !== '}') continue;
    depth--;
    if (depth > 0) continue;
    const part = text.slice(from, index + 1);
    if (!isJson(part)) return undefined;
    values.push({ part, linesBefore });
    from = index + 1;
    linesBefore += part.split('\n').length - 1;
  }
  return text.slice(from).trim() === '' ? values : undefined;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function wordsOf(words: string, means: boolean): [string, boolean][] {
  return words.split(' ').map((word) => [word, means]);
}
