import { expect, test } from 'vitest';
import { ManualClock } from '../../support/manual-clock.js';

test('time stands still until it is told to go on', () => {
  const { now, monotonic } = new ManualClock('2027-01-31T09:12:00Z');
  expect([now(), monotonic()]).toEqual([Date.UTC(2027, 0, 31, 9, 12), 0]);
});

test('both times go on together, and only wall time jumps', () => {
  const clock = new ManualClock(1_000);
  clock.advance(500);
  expect([clock.now(), clock.monotonic()]).toEqual([1_500, 500]);
  clock.jumpWall(200);
  expect([clock.now(), clock.monotonic()]).toEqual([200, 500]);
  expect(() => clock.advance(-1)).toThrow('time does not go back');
});
