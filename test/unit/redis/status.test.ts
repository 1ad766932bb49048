import { describe, expect, test } from 'vitest';
import { CarillonError } from '../../../src/domain/errors.js';
import { redisError, serverWord, statusError } from '../../../src/redis/status.js';

describe('status words of scripts', () => {
  test.each([
    ['NOT_FOUND', 'NOT_FOUND', false],
    ['NOT_A_JOB', 'UNSUPPORTED', false],
    ['NOT_PAUSED', 'CONFLICT', false],
    ['BAD_RECORD', 'BAD_RECORD', false],
    ['OUT_OF_RANGE', 'INVALID_OPTION', false],
    ['ID_IN_USE', 'ID_IN_USE', false],
    ['ID_TAKEN', 'ID_IN_USE', false],
    ['WRONG_LAYOUT', 'WRONG_LAYOUT', false],
    ['FENCED', 'FENCED', false],
    ['QUEUE_BROKEN', 'QUEUE_BROKEN', true],
    ['QUOTA', 'QUOTA', true],
    ['CONFLICT', 'CONFLICT', true],
  ])('%s is %s, retryable %s, and says what to do', (status, code, retryable) => {
    const error = statusError(status, 'the detail', 'jobId');
    expect(error).toMatchObject({ code, retryable, field: 'jobId' });
    expect(error.message).toContain('the detail');
    expect(error.todo).toMatch(/\.$/);
  });

  test('an unknown word is a fault of ours', () => {
    expect(statusError('HELLO').code).toBe('BAD_SCRIPT');
    expect(statusError('constructor').code).toBe('BAD_SCRIPT');
  });
});

describe('what Redis refuses', () => {
  test.each([
    ['OOM command not allowed when used memory > maxmemory. script: x, on @user_script:1.', 'OOM'],
    ['MISCONF Redis is configured to save RDB snapshots', 'MISCONF'],
    ['NOREPLICAS Not enough good replicas to write.', 'NOREPLICAS'],
    ["READONLY You can't write against a read only replica.", 'READONLY'],
    ['LOADING Redis is loading the dataset in memory', 'LOADING'],
    ['TRYAGAIN Multiple keys request during rehashing of slot', 'TRYAGAIN'],
    ['ERR something else', undefined],
  ])('%s', (message, word) => {
    expect(serverWord(new Error(message))).toBe(word);
  });

  test('maxmemory is OUT_OF_MEMORY, and nothing was written', () => {
    const error = redisError(new Error('OOM command not allowed when used memory > maxmemory.'));
    expect(error).toMatchObject({ code: 'OUT_OF_MEMORY', retryable: true });
    expect(error.todo).toContain('nothing was written');
  });

  test('a line that broke is REDIS_UNAVAILABLE: the call may have run, repeat it', () => {
    const cause = new Error('Connection is closed.');
    expect(redisError(cause)).toMatchObject({ code: 'REDIS_UNAVAILABLE', retryable: true, cause });
    expect(redisError(new Error('READONLY x')).code).toBe('REDIS_UNAVAILABLE');
  });

  test('a script that raised is BAD_SCRIPT, and not to be repeated', () => {
    const error = redisError(
      new Error('ERR user_script:12: attempt to index a nil value script: abc, on @user_script:12.'),
    );
    expect(error).toMatchObject({ code: 'BAD_SCRIPT', retryable: false });
  });

  test('an error of ours passes as it is', () => {
    const error = new CarillonError('QUOTA', 'full');
    expect(redisError(error)).toBe(error);
    expect(redisError('text').message).toContain('text');
  });
});
