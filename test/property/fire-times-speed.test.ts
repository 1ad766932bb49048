import { expect, test } from 'vitest';
import { manyDefinitions, sideBySide } from '../bench/fire-times.js';

test('two million definitions over 200 expressions and zones are compiled and asked in under 10 s of CPU', () => {
  expect(manyDefinitions(2_000_000)).toBeLessThan(10);
}, 60_000);

test('next() takes at most a tenth of the time of cron-parser on the corpus', () => {
  expect(sideBySide(1).ratio).toBeGreaterThan(10);
}, 120_000);
