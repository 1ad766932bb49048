import { expect, test } from 'vitest';
import { compareFences, parseFence, standingOf } from '../../../src/domain/fence.js';

test('parses what leaders write, and nothing else', () => {
  expect(parseFence('2|deadbeef|17|eu-1')).toEqual({
    number: 2,
    epochId: 'deadbeef',
    token: 17,
    holder: 'eu-1',
  });
  for (const text of ['', '2|deadbeef|17', 'x|deadbeef|17|eu-1', '2|deadbeef|-1|eu-1', '2|a|b|17|eu-1'])
    expect(parseFence(text)).toBeUndefined();
});

test('orders by the number of the epoch, then by token', () => {
  const sorted = [
    { number: 1, token: 3 },
    { number: 1, token: 20 },
    { number: 2, token: 0 },
  ];
  expect([...sorted].reverse().sort(compareFences)).toEqual(sorted);
});

test.each([
  [undefined, 'below'],
  ['no fence', 'below'],
  ['2|deadbeef|17|eu-1', 'held'],
  ['2|deadbeef|16|eu-1', 'below'],
  ['2|deadbeef|18|eu-2', 'above'],
  ['2|deadbeef|17|eu-2', 'above'],
  ['1|cafecafe|99|eu-2', 'below'],
  ['2|cafecafe|1|eu-1', 'other epoch'],
  ['3|cafecafe|1|eu-1', 'other epoch'],
])('a stored %s is %s for the term that should have raised it', (stored, standing) => {
  const term = { number: 2, epochId: 'deadbeef', token: 17, holder: 'eu-1' };
  expect(standingOf(stored, term)).toBe(standing);
});
