import { describe, expect, test } from 'vitest';
import { BatchSize } from '../../../src/scheduler/batch-size.js';

/** Pops of a backlog over a line with `way` ms there and back, `each` ms a record; the size after `calls` of them. */
function drain(batch: BatchSize, calls: number, way: number, each: number): number {
  for (let i = 0; i < calls; i++) batch.took(way + batch.limit * each, batch.limit);
  return batch.limit;
}

describe('I8 a pop’s size follows what the script takes', () => {
  test('stays between its bounds', () => {
    expect(drain(new BatchSize(), 1000, 0.2, 0.001)).toBe(BatchSize.MAX);
    const batch = new BatchSize();
    batch.took(0.5, 0);
    expect(drain(batch, 1000, 0.2, 10)).toBe(BatchSize.MIN);
  });

  test('slow records: shrinks until a call is short again', () => {
    const batch = new BatchSize();
    batch.took(0.3, 0);
    const limit = drain(batch, 200, 0.3, 0.1);
    expect(limit * 0.1).toBeLessThanOrEqual(BatchSize.LONG);
    expect(limit).toBeGreaterThan(30);
  });

  test.each([0.2, 5, 25, 100])('a way of %d ms does not make batches small', (way) => {
    const batch = new BatchSize();
    expect(drain(batch, 500, way, 0.03)).toBeGreaterThanOrEqual(130);
    batch.took(way, 0);
    expect(drain(batch, 500, way, 0.03)).toBeGreaterThanOrEqual(130);
  });

  test('after a failure the line is measured anew', () => {
    const batch = new BatchSize();
    batch.took(0.3, 0);
    expect(drain(batch, 100, 20, 0.03)).toBe(BatchSize.MIN);
    batch.failed();
    expect(drain(batch, 100, 20, 0.03)).toBeGreaterThanOrEqual(130);
  });

  test('calls that are not full leave it as it is', () => {
    const batch = new BatchSize();
    const { limit } = batch;
    for (let i = 0; i < 100; i++) batch.took(1, 5);
    expect(batch.limit).toBe(limit);
  });
});
