import type { Queue } from '../client/queue.js';
import { followedBy, followNode } from '../domain/followed.js';
import { type GraphNode, orderOf } from '../domain/graph.js';
import { splitIdentity } from '../domain/ids.js';
import { namespaceIsThere, type RefusedEntry, type WantedEntry } from './apply-changes.js';
import { withQueue } from './connect.js';
import type { Settings } from './settings.js';

/** At most so many names of a cycle are told. */
const NAMED = 12;

/**
 * What keeps entries from following what they name: a schedule that is neither among them nor stored, one that is to be
 * deleted, or one that in the end follows them. Nothing is written.
 */
export async function refuseFollowed(
  settings: Settings,
  entries: readonly WantedEntry[],
  deleted: ReadonlySet<string>,
): Promise<RefusedEntry[]> {
  const wanted = entries.map((entry) => followNode(entry.queue, entry.wanted.id, entry.wanted.policies));
  const stored = await storedAbove(settings, wanted, deleted);
  const refused: RefusedEntry[] = [];
  const refuse = (at: number, code: 'UNKNOWN_PARENT' | 'CYCLE', reason: string) => {
    const { source, wanted } = entries[at] as WantedEntry;
    refused.push({ source, text: wanted.id, reason, code });
  };
  const inFile = new Set(wanted.map(({ identity }) => identity));
  for (const [at, { parents }] of wanted.entries()) {
    const missing = missingAbove(parents, inFile, stored);
    if (missing === undefined) continue;
    const why = deleted.has(missing) ? 'is to be deleted' : 'stands neither in the file nor in Redis';
    refuse(at, 'UNKNOWN_PARENT', `after: ${missing} ${why}; add it, or leave it out of after`);
  }
  const nodes = [...wanted, ...stored.values()];
  const { cycle } = orderOf(nodes);
  const first = cycle.find((at) => at < wanted.length);
  if (first !== undefined) {
    const names = cycle.slice(0, NAMED).map((at) => nodes[at]?.identity);
    refuse(
      first,
      'CYCLE',
      `after: the schedules follow each other: ${names.join(' after ')}; leave one of these out`,
    );
  }
  return refused;
}

/** The first that is nowhere, up the lines that lead out of the file: Redis refuses to follow it. */
function missingAbove(
  parents: readonly string[],
  inFile: ReadonlySet<string>,
  stored: ReadonlyMap<string, GraphNode>,
): string | undefined {
  const seen = new Set<string>();
  const todo = [...parents];
  for (let one = todo.pop(); one !== undefined; one = todo.pop()) {
    if (inFile.has(one) || seen.has(one)) continue;
    seen.add(one);
    const node = stored.get(one);
    if (node === undefined) return one;
    todo.push(...node.parents);
  }
  return undefined;
}

/** The stored schedules that are followed from outside the file, those that they follow, and so on. */
async function storedAbove(
  settings: Settings,
  wanted: readonly GraphNode[],
  deleted: ReadonlySet<string>,
): Promise<Map<string, GraphNode>> {
  const found = new Map<string, GraphNode>();
  const seen = new Set([...wanted.map(({ identity }) => identity), ...deleted]);
  const isNew = (identity: string) => !seen.has(identity);
  let open = [...new Set(wanted.flatMap(({ parents }) => parents))].filter(isNew);
  if (open.length === 0 || !(await namespaceIsThere(settings))) return found;
  while (open.length > 0) {
    const next = new Set<string>();
    for (const identity of open) {
      seen.add(identity);
      const { queue, jobId: id } = splitIdentity(identity);
      const parents = await withQueue(settings, queue, (q) => storedParents(q, id));
      if (parents === undefined) continue;
      found.set(identity, { identity, parents });
      for (const parent of parents) next.add(parent);
    }
    open = [...next].filter(isNew);
  }
  return found;
}

async function storedParents(queue: Queue, id: string): Promise<string[] | undefined> {
  const info = await queue.schedules.get(id).describe();
  return info && followedBy(queue.name, info.definition);
}
