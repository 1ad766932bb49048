import { expect, test } from 'vitest';
import { CarillonError, ERROR_CODES, isCarillonError, shortText } from '../../../src/domain/errors.js';

test('an error says which field, what was given and what to do', () => {
  const cause = new Error('socket closed');
  const error = new CarillonError('QUOTA', 'too many jobs', {
    field: 'maxPending',
    given: 5,
    todo: 'raise maxPending',
    retryable: true,
    cause,
  });
  expect(error).toBeInstanceOf(Error);
  expect(error).toMatchObject({
    name: 'CarillonError',
    code: 'QUOTA',
    field: 'maxPending',
    given: '5',
    retryable: true,
    cause,
  });
  expect(`${error}`).toBe('CarillonError: too many jobs');
});

test('details may be left out', () => {
  const error = new CarillonError('TIMEOUT', 'no answer');
  expect(error).toMatchObject({ retryable: false });
  expect('field' in error || 'given' in error || 'todo' in error || 'cause' in error).toBe(false);
});

test('an error of another copy of the package is known by its name and code', () => {
  const other = Object.assign(new Error('x'), { name: 'CarillonError', code: 'FENCED' });
  expect(isCarillonError(other)).toBe(true);
  expect(isCarillonError(other, 'FENCED')).toBe(true);
  expect(isCarillonError(other, 'QUOTA')).toBe(false);
  expect(isCarillonError(Object.assign(new Error('x'), { code: 'ECONNREFUSED' }))).toBe(false);
  for (const value of [null, undefined, 'FENCED', 5, {}, new Error('x')])
    expect(isCarillonError(value)).toBe(false);
});

test('what was given is kept as a short text that shows its type', () => {
  const circular: Record<string, unknown> = {};
  circular.self = circular;
  expect(
    [
      '5',
      5,
      -0,
      Number.NaN,
      10n,
      null,
      undefined,
      [1],
      { a: 1 },
      new Date(0),
      new Date('x'),
      circular,
      () => 1,
    ].map(shortText),
  ).toEqual([
    '"5"',
    '5',
    '-0',
    'NaN',
    '10n',
    'null',
    'undefined',
    '[1]',
    '{"a":1}',
    '1970-01-01T00:00:00.000Z',
    'an invalid Date',
    'an object',
    'a function',
  ]);
  expect(shortText('x'.repeat(1_000))).toHaveLength(120);
});

test('codes are unique', () => {
  expect(new Set(ERROR_CODES).size).toBe(ERROR_CODES.length);
});
