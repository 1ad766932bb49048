import { describe, expect, test } from 'vitest';
import { exitCodeOf, failureDocument, failureLine, usageError } from '../../../src/cli/failure.js';
import { CarillonError } from '../../../src/domain/errors.js';

describe('a failure is one line', () => {
  test.for([
    [
      new CarillonError('NOT_FOUND', 'no such job', { todo: 'Check the id.' }),
      'error: no such job (NOT_FOUND). Check the id.',
    ],
    [new CarillonError('FENCED', 'another leads.'), 'error: another leads (FENCED).'],
    [
      new CarillonError('INVALID_DURATION', 'delay: "5x" is no duration; write 5s', { todo: 'write 5s' }),
      'error: delay: "5x" is no duration; write 5s (INVALID_DURATION).',
    ],
    [
      new CarillonError('REDIS_UNAVAILABLE', 'one\n  two', { todo: 'start it' }),
      'error: one two (REDIS_UNAVAILABLE). Start it.',
    ],
    [new TypeError('x is undefined'), 'error: x is undefined (UNEXPECTED). Please report it.'],
    ['text', 'error: text (UNEXPECTED). Please report it.'],
    [
      usageError("error: unknown option '--dely'\n(Did you mean --delay?)"),
      "error: unknown option '--dely' (USAGE). Did you mean --delay?",
    ],
    [
      usageError("error: missing required argument 'queue'"),
      "error: missing required argument 'queue' (USAGE). See --help.",
    ],
  ] as const)('%s', ([error, line]) => {
    expect(failureLine(error)).toBe(line);
  });
});

test('wrong usage ends with 2, everything else with 1', () => {
  expect(exitCodeOf(usageError('error: x'))).toBe(2);
  expect(exitCodeOf(new CarillonError('INVALID_CRON', 'x'))).toBe(2);
  expect(exitCodeOf(new CarillonError('NOT_FOUND', 'x'))).toBe(1);
  expect(exitCodeOf(new Error('x'))).toBe(1);
});

test('for programs it is a document with what there is to know', () => {
  const error = new CarillonError('QUOTA', 'full', {
    field: 'maxPending',
    given: 5,
    todo: 'Wait.',
    retryable: true,
  });
  expect(failureDocument(error)).toEqual({
    error: {
      code: 'QUOTA',
      message: 'full',
      field: 'maxPending',
      given: '5',
      todo: 'Wait.',
      retryable: true,
    },
  });
  expect(failureDocument(new Error('x'))).toEqual({ error: { code: 'UNEXPECTED', message: 'x' } });
});
