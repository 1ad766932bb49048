import { type CronJobImportOptions, importCronJob, NAMESPACE_TAG } from '../domain/import-cronjob.js';
import type { Imported } from '../domain/imported.js';
import type { Adjust } from './apply-changes.js';
import { manifestDocuments } from './k8s-documents.js';
import { yamlValue } from './yaml-value.js';

const LIST = 'List';

/** The CronJobs of a file, and how many objects of other kinds it holds. */
export interface Manifests {
  readonly imported: readonly Imported[];
  readonly others: number;
}

/** Reads a file of one or many documents, lists of objects included. A document that is no YAML is refused alone. */
export function readManifests(text: string, options: CronJobImportOptions): Manifests {
  const imported: Imported[] = [];
  let others = 0;
  for (const { document, lineAt } of manifestDocuments(text)) {
    const read = yamlValue(document);
    if ('problems' in read) {
      const [problem] = read.problems;
      const reason = `it is no YAML: ${problem?.message}`;
      imported.push({ kind: 'refused', line: lineAt(problem?.offset ?? 0), text: 'a document', reason });
      continue;
    }
    const line = lineAt(document.contents?.range?.[0] ?? 0);
    for (const object of objectsOf(read.value)) {
      const found = importCronJob(object, line, options);
      if (found === undefined) others++;
      else imported.push(found);
    }
  }
  return { imported, others };
}

/** `kubectl get cronjobs -o yaml` prints a list. One of the API itself says what its items are, and they do not. */
function objectsOf(value: unknown): unknown[] {
  if (value === null || value === undefined) return [];
  const { apiVersion, kind, items } = value as Readonly<Record<string, unknown>>;
  if (typeof kind !== 'string' || !kind.endsWith(LIST) || !Array.isArray(items)) return [value];
  const what = { apiVersion, kind: kind.slice(0, -LIST.length) };
  return what.kind === ''
    ? items
    : items.map((item: unknown) => (isObject(item) ? { ...what, ...item } : item));
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A CronJob of another namespace that has the same name is another one: it is not overwritten. */
export const namespaceGuard: Adjust = (wanted, existing) => {
  const namespaceIn = (tags: readonly string[] | undefined) =>
    tags?.find((tag) => tag.startsWith(NAMESPACE_TAG))?.slice(NAMESPACE_TAG.length);
  const [mine, theirs] = [namespaceIn(wanted.policies.tags), namespaceIn(existing?.definition.tags)];
  if (theirs === undefined || mine === theirs) return wanted;
  return `its id is that of a CronJob of the namespace ${theirs}; give --namespace-ids or another --queue`;
};
