import fc from 'fast-check';
import { expect, test } from 'vitest';
import { assignPartitions } from '../../src/coordination/etcd/assignment.js';
import { bucketRange, overlaps } from '../../src/coordination/etcd/partition-layout.js';

const instances = fc.uniqueArray(fc.string({ minLength: 1, maxLength: 20 }), { minLength: 1, maxLength: 24 });
const partitions = fc.integer({ min: 1, max: 256 });

test('every partition is assigned, to an instance that is there, within the cap', () => {
  fc.assert(
    fc.property(instances, partitions, (names, count) => {
      const assigned = assignPartitions(names, count);
      expect(assigned).toHaveLength(count);
      const load = new Map<string, number>();
      for (const name of assigned) {
        expect(names).toContain(name);
        load.set(name, (load.get(name) ?? 0) + 1);
      }
      expect(Math.max(...load.values())).toBeLessThanOrEqual(Math.ceil(count / names.length));
    }),
  );
});

test('the order in which members are seen does not matter', () => {
  fc.assert(
    fc.property(instances, partitions, fc.infiniteStream(fc.nat()), (names, count, draws) => {
      const shuffled = [...names]
        .map((name) => ({ name, at: draws.next().value as number }))
        .sort((a, b) => a.at - b.at)
        .map(({ name }) => name);
      expect(assignPartitions(shuffled, count)).toEqual(assignPartitions(names, count));
    }),
  );
});

/** Partitions that lie elsewhere, on the average of many sets of names. */
function meanMoves(before: number, after: number, count: number): number {
  const trials = 60;
  let moves = 0;
  for (let trial = 0; trial < trials; trial++) {
    const names = Array.from({ length: Math.max(before, after) }, (_, i) => `host-${trial}:${i}`);
    const from = assignPartitions(names.slice(0, before), count);
    const to = assignPartitions(names.slice(0, after), count);
    moves += from.filter((name, n) => name !== to[n]).length;
  }
  return moves / trials;
}

// What must move at least, and half as much again: the price of the even load.
test.each([
  [3, 4],
  [4, 3],
  [5, 6],
  [6, 5],
  [10, 11],
])('few partitions move when %i instances become %i', (before, after) => {
  const ideal = 64 / Math.max(before, after);
  expect(meanMoves(before, after, 64)).toBeLessThan(ideal * 2);
  expect(meanMoves(before, after, 64)).toBeGreaterThan(0);
});

test('nobody there: nothing assigned', () => {
  expect(assignPartitions([], 16)).toEqual([]);
});

test('the partitions of a count are all 256 buckets, each once, in order', () => {
  for (let count = 1; count <= 256; count++) {
    let next = 0;
    for (let n = 0; n < count; n++) {
      const { first, last } = bucketRange({ count, n });
      expect(first).toBe(next);
      expect(last).toBeGreaterThanOrEqual(first);
      next = last + 1;
    }
    expect(next).toBe(256);
  }
});

test('two partitions overlap exactly when they share a bucket', () => {
  const partition = partitions.chain((count) =>
    fc.record({ count: fc.constant(count), n: fc.nat(count - 1) }),
  );
  const bucketsOf = (range: { first: number; last: number }) =>
    new Set(Array.from({ length: range.last - range.first + 1 }, (_, i) => range.first + i));
  fc.assert(
    fc.property(partition, partition, (left, right) => {
      const shared = [...bucketsOf(bucketRange(left))].some((b) => bucketsOf(bucketRange(right)).has(b));
      expect(overlaps(left, right)).toBe(shared);
    }),
  );
});
