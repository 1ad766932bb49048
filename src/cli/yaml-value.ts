import { type Document, isAlias, isMap, isScalar, isSeq, visit } from 'yaml';

/** How files are read: every key is a text, and none stands twice; `<<` merges what an alias names. */
export const YAML_OPTIONS = { prettyErrors: false, stringKeys: true, uniqueKeys: true, merge: true } as const;

/** What is wrong with a document, and where it says so. */
export interface YamlProblem {
  readonly offset: number;
  readonly message: string;
}

/** What an expression without quotes is to YAML. */
const QUOTES = 'an expression that begins with * needs quotes';
const MERGED = '<< merges mappings; write an alias of one, or a list of such aliases';
/** So many schedules may share one anchor; aliases of aliases multiply. */
const MOST_ALIASES = 10_000;

/** A document as a plain value, or everything that keeps it from being one. Never throws. */
export function yamlValue(document: Document): { value: unknown } | { problems: YamlProblem[] } {
  const problems = document.errors.map(({ pos, message }): YamlProblem => {
    return { offset: pos[0], message: /alias|anchor/i.test(message) ? `${message}; ${QUOTES}` : message };
  });
  if (problems.length === 0) problems.push(...aliasProblems(document));
  if (problems.length > 0) return { problems };
  try {
    return { value: document.toJS({ maxAliasCount: MOST_ALIASES }) };
  } catch (error) {
    // Aliases of aliases that would grow without end.
    return { problems: [{ offset: 0, message: error instanceof Error ? error.message : String(error) }] };
  }
}

/** Aliases that name nothing before them, and merges of what is no mapping. */
function aliasProblems(document: Document): YamlProblem[] {
  const problems: YamlProblem[] = [];
  const anchors = new Map<string, unknown>();
  const isMapping = (source: unknown) =>
    isAlias(source) ? !anchors.has(source.source) || isMap(anchors.get(source.source)) : isMap(source);
  visit(document, {
    Value: (_key, node) => {
      if (node.anchor !== undefined) anchors.set(node.anchor, node);
    },
    Alias: (_key, { source, range }) => {
      if (anchors.has(source)) return;
      problems.push({ offset: range?.[0] ?? 0, message: `*${source} names nothing; ${QUOTES}` });
    },
    Pair: (_key, { key, value }) => {
      // In quotes it is a key as others are.
      if (!isScalar(key) || key.value !== '<<' || key.type !== 'PLAIN') return;
      if ((isSeq(value) ? value.items : [value]).every(isMapping)) return;
      problems.push({ offset: key.range?.[0] ?? 0, message: MERGED });
    },
  });
  return problems;
}
