import { expect, test } from 'vitest';
import { type GraphNode, layersOf } from '../../../src/domain/graph.js';

const graph = (edges: Record<string, string[]>): GraphNode[] =>
  Object.entries(edges).map(([identity, parents]) => ({ identity, parents }));

test('layers put parents first, whatever the order of the nodes', () => {
  const nodes = graph({
    end: ['left', 'right'],
    left: ['root'],
    right: ['root'],
    root: [],
    alone: ['outside'],
  });
  expect(layersOf(nodes)).toEqual([[3, 4], [1, 2], [0]]);
});

test('no node, and a chain of 10,000', () => {
  expect(layersOf([])).toEqual([]);
  const chain = Array.from({ length: 10_000 }, (_, i) => ({
    identity: `n${i}`,
    parents: i === 0 ? [] : [`n${i - 1}`],
  }));
  expect(layersOf(chain.reverse())).toHaveLength(10_000);
});

test('a cycle is refused and named, also one behind which others wait', () => {
  expect(() => layersOf(graph({ a: ['c'], b: ['a'], c: ['b'] }))).toThrow(/a after c after b after a/);
  const behind = graph({ first: ['second'], second: ['x'], x: ['y'], y: ['x'], root: [] });
  expect(() => layersOf(behind)).toThrow(
    expect.objectContaining({ code: 'CYCLE', message: expect.stringMatching(/x after y after x/) }),
  );
});

test('two nodes of one identity are refused', () => {
  const twice = [...graph({ a: [] }), ...graph({ a: [] })];
  expect(() => layersOf(twice)).toThrow(
    expect.objectContaining({ code: 'ID_IN_USE', field: 'nodes[1].opts.jobId' }),
  );
});
