import { describe, expect, test } from 'vitest';
import type { Dialect } from '../../../../src/domain/dialect.js';
import { importExpressions } from '../../../../src/domain/import-expressions.js';

test('a properties file: names become ids, each line stands alone', () => {
  const text = [
    '# reports',
    'report.cron=0 0 9 * * MON-FRI',
    '! and',
    '',
    'clean.up : "0 */10 * * * *"',
    'broken = 0 0 9 * *',
    'alone',
    'off=-',
  ].join('\r\n');
  expect(importExpressions(text, { dialect: 'spring', tz: 'Europe/Berlin' })).toEqual([
    {
      kind: 'schedule',
      line: 2,
      id: 'report.cron',
      definition: {
        cron: '0 9 * * MON-FRI',
        tz: 'Europe/Berlin',
        missed: 'skip',
        overlap: 'skip',
        tags: ['spring'],
      },
      template: { name: 'report.cron', data: {} },
      paused: false,
      notTranslated: [],
      warnings: [],
    },
    expect.objectContaining({
      id: 'clean.up',
      line: 5,
      definition: expect.objectContaining({ cron: '*/10 * * * *' }),
    }),
    expect.objectContaining({
      kind: 'refused',
      line: 6,
      reason: expect.stringContaining('Spring takes six'),
    }),
    expect.objectContaining({ kind: 'refused', line: 7, reason: 'it is no line like name = expression' }),
    expect.objectContaining({
      kind: 'refused',
      line: 8,
      reason: expect.stringContaining('switches the method off'),
    }),
  ]);
});

test('each dialect keeps what its scheduler does', () => {
  const policies = (dialect: 'quartz' | 'eventbridge', expression: string, missed?: 'all') => {
    const [found] = importExpressions(`a ${expression}`, missed ? { dialect, missed } : { dialect });
    return found?.kind === 'schedule' ? [found.definition.missed, found.definition.overlap] : found;
  };
  expect(policies('quartz', '0 0 12 ? * 2')).toEqual(['latest', 'allow']);
  expect(policies('eventbridge', 'rate(5 minutes)')).toEqual(['latest', 'allow']);
  expect(policies('eventbridge', 'cron(0 12 ? * 2 *)', 'all')).toEqual(['all', 'allow']);
});

describe('a list of bare expressions has no names, and none is made up', () => {
  const only = (dialect: Dialect, text: string) => {
    const [found, ...more] = importExpressions(text, { dialect });
    expect(more).toEqual([]);
    return found?.kind === 'refused' ? found.reason : found?.id;
  };

  test.each([
    ['quartz', '0 0 12 * * ?'],
    ['quartz', '*/5 * * * * ?'],
    ['quartz', '"0 0 12 * * ?"'],
    ['quartz', "'*/5 * * * * ?',"],
    ['quartz', '0 0 12 * * ? Europe/Berlin'],
    ['quartz', '0,30 0/5 14 * * ?'],
    ['quartz', '- 0 0 12 * * ?'],
    ['quartz', '/5 0 12 * * ?'],
    ['quartz', '*/5 * * * *'],
    ['quartz', 'H 0 12 * * ?'],
    ['quartz', 'H(0-29)/10 0 12 * * ?'],
    ['quartz', '0 0 12 * * ? = noon'],
    ['quartz', '0 0 99 * * ?'],
    ['spring', '@daily'],
    ['spring', '1-5 * * * * *'],
    ['eventbridge', 'cron(0 10 * * ? *)'],
    ['eventbridge', 'cron (0 10 * * ? *)'],
    ['eventbridge', 'rate(5 minutes)'],
    ['eventbridge', '"rate(5 minutes)"'],
    ['eventbridge', 'rate(5 fortnights)'],
    ['eventbridge', 'at(2027-01-31T09:12:00)'],
    ['eventbridge', '0 10 * * ? *'],
  ] as const)('%s: %s', (dialect, text) => {
    expect(only(dialect, text)).toBe('it has no name; write name = expression');
  });

  test.each([
    ['quartz', 'report 0 0 12 * * ?', 'report'],
    ['quartz', '17 = 0 0 12 * * ?', '17'],
    ['quartz', '2nd-report\t0 0 12 * * ?', '2nd-report'],
    ['quartz', 'H1 0 0 12 * * ?', 'H1'],
    ['quartz', 'cron = 0 0 12 * * ?', 'cron'],
    ['quartz', 'plain 0 12 * * 1', 'plain'],
    ['spring', 'a @daily', 'a'],
    ['eventbridge', 'rate rate(5 minutes)', 'rate'],
    ['eventbridge', 'at: at(2027-01-31T09:12:00)', 'at'],
  ] as const)('%s: %s keeps its name', (dialect, text, id) => {
    expect(only(dialect, text)).toBe(id);
  });
});
