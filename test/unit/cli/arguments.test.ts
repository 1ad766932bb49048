import { describe, expect, test } from 'vitest';
import {
  dataArgument,
  durationArgument,
  instantArgument,
  integerArgument,
  jsonArgument,
  objectArgument,
} from '../../../src/cli/arguments.js';
import { timingText, toDefinition } from '../../../src/cli/schedule-timing.js';

const refused = (code: string, field: string) => expect.objectContaining({ code, field });

describe('arguments', () => {
  test('durations: a text, or digits for ms', () => {
    expect(durationArgument('1h30m', 'delay')).toBe(5_400_000);
    expect(durationArgument('1500', 'delay')).toBe(1500);
    for (const bad of ['', '5x', '-5s', '1.5', 'NaN', '9999999999999999']) {
      expect(() => durationArgument(bad, 'delay')).toThrow(refused('INVALID_DURATION', 'delay'));
    }
  });

  test('instants: ISO with an offset, or digits for ms', () => {
    expect(instantArgument('2027-01-31T09:12:00+01:00', 'at')).toBe(Date.UTC(2027, 0, 31, 8, 12));
    expect(instantArgument('1800000000000', 'at')).toBe(1_800_000_000_000);
    for (const bad of ['tomorrow', '2027-01-31', '2027-01-31T09:12:00', '2027-02-30T00:00:00Z', '']) {
      expect(() => instantArgument(bad, 'at')).toThrow(refused('INVALID_OPTION', 'at'));
    }
  });

  test('whole numbers within bounds', () => {
    expect(integerArgument('7', 'limit', 1, 10)).toBe(7);
    for (const bad of ['0', '11', '1.5', '7x', '', '1e1', '0x7']) {
      expect(() => integerArgument(bad, 'limit', 1, 10)).toThrow(refused('INVALID_OPTION', 'limit'));
    }
  });

  test('JSON, and JSON objects', () => {
    expect(jsonArgument('[1,null]', 'data')).toEqual([1, null]);
    expect(() => jsonArgument('{to:1}', 'data')).toThrow(refused('INVALID_OPTION', 'data'));
    expect(objectArgument('{"attempts":3}', 'opts')).toEqual({ attempts: 3 });
    for (const bad of ['[]', 'null', '"x"', '3']) {
      expect(() => objectArgument(bad, 'opts')).toThrow(refused('INVALID_OPTION', 'opts'));
    }
  });

  test('a payload comes from one place', () => {
    expect(dataArgument({})).toBeUndefined();
    expect(dataArgument({ data: ' 1.0 ' })?.text).toBe('1.0');
    expect(() => dataArgument({ data: '5', dataFile: 'x' })).toThrow(refused('INVALID_OPTION', 'data'));
    expect(() => dataArgument({ dataFile: '/nowhere/x.json' })).toThrow(
      refused('INVALID_OPTION', 'data-file'),
    );
  });
});

describe('timing flags', () => {
  test('one expression is cron, several are crons', () => {
    expect(toDefinition({ cron: ['@daily'], tz: 'UTC' })).toEqual({ cron: '@daily', tz: 'UTC' });
    expect(toDefinition({ cron: ['@daily'] }, ['0 5 * * *'])).toEqual({ crons: ['@daily', '0 5 * * *'] });
  });

  test('instants and durations of an interval', () => {
    const flags = { every: '90000', phase: '5s', anchor: '2027-01-01T00:00:00Z', limit: '3' };
    expect(toDefinition(flags)).toEqual({
      every: 90_000,
      phase: '5s',
      anchor: Date.UTC(2027, 0, 1),
      limit: 3,
    });
  });

  test('a stored definition in a few words', () => {
    expect(timingText({ every: 90_000, missed: 'skip' })).toBe('every 1m30s');
    expect(timingText({ cron: ['0 5 * * *', '@daily'], tz: 'Asia/Dubai', missed: 'skip' })).toBe(
      '0 5 * * * | @daily Asia/Dubai',
    );
  });
});
