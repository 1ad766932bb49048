import { describe, expect, test } from 'vitest';
import { BatchSize } from '../../../src/scheduler/batch-size.js';

/** Pops of a backlog with `each` ms a record; the size after `calls` of them. */
function drain(batch: BatchSize, calls: number, each: number): number {
  for (let i = 0; i < calls; i++) batch.took(batch.limit * each, batch.limit);
  return batch.limit;
}

describe('I8 a pop’s size follows what the script takes', () => {
  test('stays between its bounds', () => {
    expect(drain(new BatchSize(), 1000, 0.001)).toBe(BatchSize.MAX);
    expect(drain(new BatchSize(), 1000, 10)).toBe(BatchSize.MIN);
  });

  test('slow records: shrinks until a call is short again', () => {
    const limit = drain(new BatchSize(), 200, 0.1);
    expect(limit * 0.1).toBeLessThanOrEqual(BatchSize.TARGET);
    expect(limit).toBeGreaterThan(30);
  });

  test('grows again when records get quicker', () => {
    const batch = new BatchSize();
    drain(batch, 200, 0.3);
    expect(drain(batch, 200, 0.03)).toBeGreaterThanOrEqual(130);
  });

  test('a call that was held up by other work does not make the next ones small', () => {
    const batch = new BatchSize();
    const limit = drain(batch, 20, 0.025);
    batch.took(40, limit);
    expect(batch.limit).toBe(limit);
  });

  test('calls with few records leave it as it is', () => {
    const batch = new BatchSize();
    const { limit } = batch;
    for (let i = 0; i < 100; i++) batch.took(1, 5);
    expect(batch.limit).toBe(limit);
  });
});
