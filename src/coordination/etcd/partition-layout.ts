import { BUCKETS } from '../../domain/buckets.js';

/** How many partitions there are, and whether an operator fixed that number. */
export interface PartitionLayout {
  partitions: number;
  pinned: boolean;
}

/** Partition `n` of `count`. */
export interface Partition {
  count: number;
  n: number;
}

/** The contiguous buckets of a partition; those of all partitions of a count are all buckets, each once. */
export function bucketRange({ count, n }: Partition): { first: number; last: number } {
  return {
    first: Math.ceil((n * BUCKETS) / count),
    last: Math.ceil(((n + 1) * BUCKETS) / count) - 1,
  };
}

/** Whether two partitions, of any counts, have a bucket in common. */
export function overlaps(left: Partition, right: Partition): boolean {
  const [a, b] = [bucketRange(left), bucketRange(right)];
  return a.first <= b.last && b.first <= a.last;
}

/**
 * What the layout should become, or undefined when it stays: a pinned one stays; another follows the configuration once
 * all live members agree on it, so that the two halves of a rollout never fight.
 */
export function nextLayout(
  layout: PartitionLayout,
  configured: readonly number[],
): PartitionLayout | undefined {
  const [wanted] = configured;
  if (layout.pinned || wanted === undefined || wanted === layout.partitions) return undefined;
  return configured.every((count) => count === wanted) ? { partitions: wanted, pinned: false } : undefined;
}
