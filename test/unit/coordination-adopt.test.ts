import { expect, test } from 'vitest';
import { type Epoch, planAdopt } from '../../src/coordination/adopt-fences.js';

const ALL = Array.from({ length: 256 }, (_, bucket) => bucket);
const all = (fence: string) => new Map(ALL.map((bucket) => [bucket, fence]));
const upTo = (token: number) => () => token;
const E: Epoch = { number: 2, id: 'e' };

test('nothing to do: all fences are of this epoch, at or below its tokens, or there are none yet', () => {
  expect(planAdopt(all('2|e|9|a'), E, upTo(9), 'n').epoch).toBeUndefined();
  expect(planAdopt(new Map(), E, upTo(9), 'n').epoch).toBeUndefined();
  expect(planAdopt(new Map(), undefined, upTo(9), 'n').epoch).toBeUndefined();
});

test.each([
  ['a higher number', '3|x|1|a', 4],
  ['another id under the same number', '2|x|1|a', 3],
  ['a token ahead of the source', '2|e|10|a', 3],
])('%s stands in the way: the highest number + 1', (_, fence, number) => {
  const plan = planAdopt(all('2|e|9|a').set(77, fence), E, upTo(9), 'n');
  expect(plan).toMatchObject({ epoch: { number, id: 'n' }, isNew: true, inTheWay: [77] });
});

test('a source without an epoch adopts the fences of whoever led before', () => {
  expect(planAdopt(all('1|uuid|4|h'), undefined, upTo(0), 'n')).toMatchObject({
    epoch: { number: 2, id: 'n' },
    isNew: true,
  });
});

test('an adopt that was cut off is finished under the number it began with', () => {
  const half = new Map(ALL.map((b) => [b, b < 100 ? '2|e|0|fence-adopt' : '1|uuid|4|h']));
  expect(planAdopt(half, E, upTo(9), 'n')).toMatchObject({ epoch: E, isNew: false });
});

test('what cannot be read, or is not there, is below', () => {
  const fences = all('2|e|9|a').set(3, 'garbage');
  fences.delete(4);
  expect(planAdopt(fences, E, upTo(9), 'n')).toMatchObject({ epoch: E, isNew: false, below: [3, 4] });
});
