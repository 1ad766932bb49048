import { describe, expect, test } from 'vitest';
import { checkSchedule } from '../../../../src/domain/check-schedule.js';
import { type ExportableSchedule, exportCrontab } from '../../../../src/domain/export-crontab.js';
import { importCrontab } from '../../../../src/domain/import-crontab.js';
import type { ImportedSchedule } from '../../../../src/domain/imported.js';
import { readCsv, readData } from '../corpus.js';

const files = [...new Set(readCsv('corpus/crontabs/expected-lines.csv').map((row) => `${row.file}`))];

function schedules(text: string, userColumn = false): ImportedSchedule[] {
  return importCrontab(text, { userColumn }).filter(
    (found): found is ImportedSchedule => found.kind === 'schedule',
  );
}

const stored = ({ id, definition, template, paused }: ImportedSchedule): ExportableSchedule => ({
  id,
  definition: checkSchedule(definition, id),
  template,
  paused,
});

/** What a run would do and when, whatever the order of lines. */
const meaning = (list: readonly ImportedSchedule[]) =>
  list
    .map(({ definition: { cron, tz }, template }) => JSON.stringify({ cron, tz, data: template.data }))
    .sort();

function aCommand(id: string, data: object, cron = '0 5 * * *', paused = false): ExportableSchedule {
  return { id, definition: { cron: [cron] }, template: { name: 'run-command', data }, paused };
}

describe('there and back again', () => {
  test.each(files)('%s', (file) => {
    const userColumn = file.endsWith('.cron');
    const before = schedules(readData(`corpus/crontabs/${file}`), userColumn);
    const { text, refused } = exportCrontab(before.map(stored), { userColumn });
    const after = schedules(text, userColumn);
    const lost = new Set(refused.map(({ id }) => id));
    expect(meaning(after)).toEqual(meaning(before.filter(({ id }) => !lost.has(id))));
    expect(refused).toEqual([]);
  });

  test('a zone is spelled as cron knows it', () => {
    const one = aCommand('a', { command: 'x' });
    const { text } = exportCrontab([{ ...one, definition: { ...one.definition, tz: 'america/new_york' } }]);
    expect(text).toContain('CRON_TZ=America/New_York\n');
  });

  test('percent signs, line breaks, quotes and blanks', () => {
    const data = {
      command: 'date +%H',
      stdin: 'a%b\n\nc\n',
      env: { A: 'two words', B: 'say "x"', C: '', 'D E': 'f' },
    };
    const { text } = exportCrontab([aCommand('a', data)]);
    expect(text).toContain('0 5 * * * date +\\%H%a\\%b%%c%\n');
    expect(schedules(text)[0]?.template.data).toEqual(data);
  });
});

describe('what no line can be', () => {
  test('is told, each with its reason', () => {
    const { text, refused } = exportCrontab([
      {
        id: 'mail',
        definition: { cron: ['0 5 * * *'] },
        template: { name: 'send', data: {} },
        paused: false,
      },
      { ...aCommand('interval', { command: 'x' }), definition: {} },
      { ...aCommand('several', { command: 'x' }), definition: { cron: ['0 5 * * *', '0 6 * * *'] } },
      aCommand('seconds', { command: 'x' }, '*/5 * * * * *'),
      aCommand('last', { command: 'x' }, '0 5 L * *'),
      aCommand('lines', { command: 'x\ny' }),
      aCommand('star', { command: '* x' }),
      aCommand('blank', { command: ' ' }),
      aCommand('percent', { command: 'printf a\\%b' }),
      aCommand('ended', { command: 'y\\', stdin: 'in' }),
      aCommand('input', { command: 'y', stdin: 'a\\\nb' }),
      aCommand('zone', { command: 'x', env: { CRON_TZ: 'Asia/Tokyo' } }),
      aCommand('quotes', { command: 'x', env: { A: `"both' ` } }),
      aCommand('equals', { command: 'x', env: { 'A=B': 'c' } }),
    ]);
    expect(text).toBe('');
    expect(Object.fromEntries(refused.map(({ id, reason }) => [id, reason]))).toEqual({
      mail: expect.stringContaining('no commands'),
      interval: expect.stringContaining('interval'),
      several: expect.stringContaining('several'),
      seconds: expect.stringContaining('five fields'),
      last: expect.stringContaining('day of month'),
      lines: expect.stringContaining('several lines'),
      star: expect.stringContaining('* is no command'),
      blank: expect.stringContaining('no command'),
      percent: expect.stringContaining('behind a backslash'),
      ended: expect.stringContaining('behind a backslash'),
      input: expect.stringContaining('behind a backslash'),
      zone: expect.stringContaining('CRON_TZ'),
      quotes: expect.stringContaining('can set A'),
      equals: expect.stringContaining('can set A=B'),
    });
    expect(exportCrontab([aCommand('a', { command: 'x' })], { userColumn: true }).refused).toHaveLength(1);
    const twoWords = aCommand('a', { command: 'x', user: 'a b' });
    expect(exportCrontab([twoWords], { userColumn: true }).refused).toHaveLength(1);
  });

  test('a variable that would reach another command', () => {
    const { text, refused } = exportCrontab([
      aCommand('a', { command: 'x', env: { A: '1' } }),
      aCommand('b', { command: 'y', env: { B: '1' } }),
      aCommand('c', { command: 'z', env: {} }),
    ]);
    expect(refused).toEqual([{ id: 'b', reason: expect.stringContaining('A is set') }]);
    expect(text.split('\n').filter((line) => !line.startsWith('#'))).toEqual([
      'CRON_TZ=UTC',
      '0 5 * * * z',
      'A=1',
      '0 5 * * * x',
      '',
    ]);
  });

  test('a paused schedule is a comment', () => {
    expect(exportCrontab([aCommand('a', { command: 'x' }, '@daily', true)]).text).toContain('#@daily x\n');
  });
});

test('a variable with a name that every object has is set, and cannot be unset', () => {
  const env = { constructor: 'x' };
  const { text, refused } = exportCrontab([
    aCommand('a', { command: 'run', env }),
    aCommand('b', { command: 'run', env: { valueOf: 'y' } }),
  ]);
  expect(text).toContain('constructor=x');
  expect(refused).toEqual([{ id: 'b', reason: expect.stringContaining('constructor is set for another') }]);
});
