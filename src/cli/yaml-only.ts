import { type Document, isScalar, type Node, visit } from 'yaml';
import { survives } from '../domain/json-numbers.js';
import type { YamlProblem } from './yaml-value.js';

const TAG = 'tag:yaml.org,2002:';
const JSON_TAGS = new Set(['str', 'int', 'float', 'bool', 'null', 'map', 'seq'].map((name) => TAG + name));

/** What a document says and JSON, in which it is stored, cannot hold: it would become something else. Pure. */
export function yamlOnly(document: Document): YamlProblem[] {
  const problems: YamlProblem[] = [];
  visit(document, {
    Node: (_key, node) => {
      const problem = problemOf(node);
      if (problem !== undefined) problems.push({ offset: node.range?.[0] ?? 0, message: problem });
    },
  });
  return problems;
}

function problemOf(node: Node): string | undefined {
  const { tag } = node as { tag?: string };
  if (tag !== undefined && !JSON_TAGS.has(tag)) {
    return `${tag.replace(TAG, '!!')} is nothing that JSON can hold; write a text, a list or a mapping`;
  }
  if (!isScalar(node) || typeof node.value !== 'number') return undefined;
  const { value, source = String(value) } = node;
  if (survives(source, value)) return undefined;
  const why = Number.isFinite(value) ? `would be stored as ${value}` : 'is no number in JSON';
  return `${source} ${why}; write it in quotes, as a text`;
}
