import { expect, test } from 'vitest';
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
