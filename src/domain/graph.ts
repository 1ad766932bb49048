import { CarillonError } from './errors.js';

/** A job of a graph by its identity, and those of the same graph that it waits for. */
export interface GraphNode {
  readonly identity: string;
  readonly parents: readonly string[];
}

/** Indexes of nodes, layer by layer; what is in a cycle or behind one stands in none. */
interface Order {
  readonly layers: number[][];
  /** The nodes of one cycle, the first of them again at its end; empty where there is none. */
  readonly cycle: readonly number[];
}

/**
 * The nodes in the order in which they can be added, parents first: each layer waits for earlier ones only. Parents
 * that are not among the nodes are left out of account.
 * @returns indexes of `nodes`, layer by layer.
 * @throws CarillonError ID_IN_USE for two nodes of one identity, CYCLE naming the nodes of one.
 */
export function layersOf(nodes: readonly GraphNode[]): number[][] {
  const { layers, cycle } = orderOf(nodes);
  if (cycle.length > 0) refuseCycle(nodes, cycle);
  return layers;
}

/** The same, which leaves it to its caller what a cycle means. @throws CarillonError ID_IN_USE */
export function orderOf(nodes: readonly GraphNode[]): Order {
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
  return { layers, cycle: placed < nodes.length ? cycleOf(nodes, byIdentity, undone) : [] };
}

/** What is left over has a parent that is left over, somewhere up its line a cycle. */
function cycleOf(
  nodes: readonly GraphNode[],
  byIdentity: ReadonlyMap<string, number>,
  undone: readonly number[],
): number[] {
  const path: number[] = [];
  let at = undone.findIndex((count) => count > 0);
  while (!path.includes(at)) {
    path.push(at);
    at = (nodes[at] as GraphNode).parents
      .flatMap((parent) => byIdentity.get(parent) ?? [])
      .find((parent) => (undone[parent] as number) > 0) as number;
  }
  return [...path.slice(path.indexOf(at)), at];
}

function refuseCycle(nodes: readonly GraphNode[], cycle: readonly number[]): never {
  const names = cycle.map((index) => nodes[index]?.identity);
  throw new CarillonError('CYCLE', `the jobs wait for each other: ${names.slice(0, 12).join(' after ')}`, {
    field: `nodes[${cycle[0]}].opts.after`,
    given: names[0],
    todo: 'Leave one of these edges out.',
  });
}
