import { CarillonError } from './errors.js';

/** A job of a graph by its identity, and those of the same graph that it waits for. */
export interface GraphNode {
  readonly identity: string;
  readonly parents: readonly string[];
}

/**
 * The nodes in the order in which they can be added, parents first: each layer waits for earlier ones only. Parents
 * that are not among the nodes are left out of account.
 * @returns indexes of `nodes`, layer by layer.
 * @throws CarillonError ID_IN_USE for two nodes of one identity, CYCLE naming the nodes of one.
 */
export function layersOf(nodes: readonly GraphNode[]): number[][] {
  const byIdentity = new Map<string, number>();
  for (const [index, { identity }] of nodes.entries()) {
    if (byIdentity.has(identity)) {
      throw new CarillonError('ID_IN_USE', `two nodes of the graph are ${identity}`, {
        field: `nodes[${index}].opts.jobId`,
        given: identity,
        todo: 'Give each node an id of its own within its queue.',
      });
    }
    byIdentity.set(identity, index);
  }
  const children = nodes.map((): number[] => []);
  const undone = nodes.map(({ parents }, index) => {
    const inside = parents.flatMap((parent) => byIdentity.get(parent) ?? []);
    for (const parent of inside) children[parent]?.push(index);
    return inside.length;
  });
  const layers: number[][] = [];
  let layer = undone.flatMap((count, index) => (count === 0 ? index : []));
  let placed = 0;
  while (layer.length > 0) {
    layers.push(layer);
    placed += layer.length;
    const next: number[] = [];
    for (const index of layer) {
      for (const child of children[index] as number[]) {
        undone[child] = (undone[child] as number) - 1;
        if (undone[child] === 0) next.push(child);
      }
    }
    layer = next;
  }
  if (placed < nodes.length) refuseCycle(nodes, byIdentity, undone);
  return layers;
}

/** What is left over has only parents that are left over, somewhere up its line a cycle. */
function refuseCycle(
  nodes: readonly GraphNode[],
  byIdentity: ReadonlyMap<string, number>,
  undone: readonly number[],
): never {
  const path: number[] = [];
  let at = undone.findIndex((count) => count > 0);
  while (!path.includes(at)) {
    path.push(at);
    at = (nodes[at] as GraphNode).parents
      .flatMap((parent) => byIdentity.get(parent) ?? [])
      .find((parent) => (undone[parent] as number) > 0) as number;
  }
  const cycle = [...path.slice(path.indexOf(at)), at].map((index) => (nodes[index] as GraphNode).identity);
  throw new CarillonError('CYCLE', `the jobs wait for each other: ${cycle.slice(0, 12).join(' after ')}`, {
    field: `nodes[${at}].opts.after`,
    given: cycle[0],
    todo: 'Leave one of these edges out.',
  });
}
