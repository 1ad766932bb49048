import { type Document, visit } from 'yaml';

/** How files are read: every key is a text, and none stands twice. */
export const YAML_OPTIONS = { prettyErrors: false, stringKeys: true, uniqueKeys: true } as const;

/** What is wrong with a document, and where it says so. */
export interface YamlProblem {
  readonly offset: number;
  readonly message: string;
}

/** What an expression without quotes is to YAML. */
const QUOTES = 'an expression that begins with * needs quotes';

/** A document as a plain value, or everything that keeps it from being one. Never throws. */
export function yamlValue(document: Document): { value: unknown } | { problems: YamlProblem[] } {
  const problems = document.errors.map(({ pos, message }): YamlProblem => {
    return { offset: pos[0], message: /alias|anchor/i.test(message) ? `${message}; ${QUOTES}` : message };
  });
  if (problems.length > 0) return { problems };
  visit(document, {
    Alias: (_key, alias) => {
      if (alias.resolve(document) !== undefined) return;
      problems.push({ offset: alias.range?.[0] ?? 0, message: `*${alias.source} names nothing; ${QUOTES}` });
    },
  });
  if (problems.length > 0) return { problems };
  try {
    return { value: document.toJS() };
  } catch (error) {
    // Aliases of aliases that would grow without end.
    return { problems: [{ offset: 0, message: error instanceof Error ? error.message : String(error) }] };
  }
}
