import { describe, expect, test } from 'vitest';
import { type JobOptions, resolveOptions } from '../../src/client/job-options.js';

describe('resolveOptions', () => {
  test('time, id and our own options are not for BullMQ: the text stays empty', () => {
    expect(resolveOptions({})).toMatchObject({ text: '', time: 0, relative: true, replace: false });
    expect(
      resolveOptions({ jobId: 'a', delay: 5, ifExists: 'replace', duplicateWindow: '1m', requestId: 'r' }),
    ).toMatchObject({
      text: '',
      jobId: 'a',
      time: 5,
      relative: true,
      replace: true,
      window: 60_000,
      requestId: 'r',
    });
    expect(resolveOptions({ at: 7 })).toMatchObject({ text: '', time: 7, relative: false });
  });

  test('what equals BullMQ’s default is left out, so that records stay small', () => {
    expect(resolveOptions({ attempts: 0 }).text).toBe('');
    expect(resolveOptions({ attempts: undefined, lifo: undefined }).text).toBe('');
    expect(resolveOptions({ failParentOnFailure: false }).text).toBe('');
    expect(resolveOptions({ lifo: false }).text).toBe('{"attempts":0,"lifo":false}');
  });

  test('short names, as BullMQ stores them', () => {
    const opts: JobOptions = {
      keepLogs: 3,
      deduplication: { id: 'd' },
      telemetry: { metadata: 'm', omitContext: true },
    };
    expect(JSON.parse(resolveOptions(opts).text)).toEqual({
      attempts: 0,
      kl: 3,
      de: { id: 'd' },
      tm: 'm',
      omc: true,
    });
  });

  test('the mark of an earlier run is dropped when its options are used again', () => {
    expect(resolveOptions({ attempts: 2, carillon: 'ns 1 2' } as JobOptions).text).toBe('{"attempts":2}');
  });

  test('options with a prototype of their own count by their own properties', () => {
    const opts = Object.create({ attempts: 9 }) as JobOptions;
    opts.delay = 5;
    expect(resolveOptions(opts)).toMatchObject({ text: '', time: 5 });
  });

  test.each([
    ['{"constructor":1}', 'constructor'],
    ['{"toString":1}', 'toString'],
    ['{"valueOf":1}', 'valueOf'],
    ['{"hasOwnProperty":1}', 'hasOwnProperty'],
    ['{"__proto__":1}', '__proto__'],
    ['{"__proto__":{"attempts":3}}', '__proto__'],
  ])('a name that every object has is an option that nobody reads: %s', (text, field) => {
    expect(() => resolveOptions(JSON.parse(text))).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', field, todo: expect.any(String) }),
    );
  });

  test('a delay counts from the timestamp, where one is given', () => {
    expect(resolveOptions({ timestamp: 1000, delay: 50 })).toMatchObject({
      time: 1050,
      relative: false,
      timestamp: 1000,
    });
    expect(resolveOptions({ timestamp: 1000 })).toMatchObject({ time: 0, relative: true });
  });
});
