import { describe, expect, test } from 'vitest';
import { checkSchedule } from '../../../../src/domain/check-schedule.js';
import { checkScheduleId } from '../../../../src/domain/ids.js';
import { type CrontabImportOptions, importCrontab } from '../../../../src/domain/import-crontab.js';
import type { ImportedSchedule, RefusedImport } from '../../../../src/domain/imported.js';
import { readCsv, readData } from '../corpus.js';

const rows = readCsv('corpus/crontabs/expected-lines.csv').filter((row) =>
  ['entry', 'error'].includes(`${row.kind}`),
);
const files = [...new Set(rows.map((row) => `${row.file}`))];

function read(text: string, options?: CrontabImportOptions) {
  const all = importCrontab(text, options);
  return {
    schedules: all.filter((found): found is ImportedSchedule => found.kind === 'schedule'),
    refused: all.filter((found): found is RefusedImport => found.kind === 'refused'),
  };
}

describe('crontab files of the corpus', () => {
  test.each(files)('%s: each entry is a schedule, each error is refused', (file) => {
    const { schedules, refused } = read(readData(`corpus/crontabs/${file}`), {
      userColumn: file.endsWith('.cron'),
    });
    const mine = rows.filter((row) => row.file === file);
    const entries = mine.filter((row) => row.kind === 'entry' && row.schedule !== '@reboot');
    expect(
      schedules.map(({ line, definition, template }) => {
        const { command, stdin = '', user = '' } = template.data as Record<string, string>;
        return { line: `${line}`, cron: definition.cron, tz: definition.tz, command, stdin, user };
      }),
    ).toEqual(
      entries.map((row) => ({
        line: row.line,
        cron: row.schedule,
        tz: row.zone || 'UTC',
        command: row.command,
        stdin: row.stdin?.replaceAll('\\n', '\n'),
        user: row.user,
      })),
    );
    const errors = mine.filter((row) => row.kind === 'error' || row.schedule === '@reboot');
    expect(refused.map(({ line, reason }) => [`${line}`, reason])).toEqual(
      errors.map((row) => [row.line, row.note]),
    );
  });

  test.each(files)('%s: what comes out is a definition, and its ids are ids', (file) => {
    const { schedules } = read(readData(`corpus/crontabs/${file}`), { userColumn: file.endsWith('.cron') });
    const ids = schedules.map(({ id, definition }) => {
      checkSchedule(definition, `q:${id}`);
      return checkScheduleId(id);
    });
    expect(new Set(ids).size).toBe(ids.length);
  });
});

describe('what crond does is kept', () => {
  test('missed ticks are dropped and runs may overlap', () => {
    expect(read('0 5 * * * x').schedules[0]?.definition).toEqual({
      cron: '0 5 * * *',
      tz: 'UTC',
      missed: 'skip',
      overlap: 'allow',
      tags: ['crontab'],
    });
    expect(read('0 5 * * * x', { missed: 'latest' }).schedules[0]?.definition.missed).toBe('latest');
  });

  test('the given zone is that of lines without CRON_TZ only', () => {
    const { schedules } = read('0 5 * * * a\nCRON_TZ=Asia/Tokyo\n0 5 * * * b\nCRON_TZ=\n0 5 * * * c\n', {
      tz: 'Europe/Berlin',
    });
    expect(schedules.map(({ definition }) => definition.tz)).toEqual([
      'Europe/Berlin',
      'Asia/Tokyo',
      'Europe/Berlin',
    ]);
  });

  test('the run carries command, input, user and the variables above the line', () => {
    const text = 'A=1\n0 5 * * * bob run%in%put\nA=2\n0 6 * * * bob run\n';
    expect(read(text, { userColumn: true }).schedules.map(({ template }) => template)).toEqual([
      { name: 'run-command', data: { command: 'run', stdin: 'in\nput', user: 'bob', env: { A: '1' } } },
      { name: 'run-command', data: { command: 'run', user: 'bob', env: { A: '2' } } },
    ]);
  });

  test('mail and users are listed as not translated', () => {
    const [first, second] = read('MAILTO=ops\n0 5 * * * bob a\nMAILTO=""\n0 5 * * * bob b\n', {
      userColumn: true,
    }).schedules;
    expect(first?.notTranslated).toEqual([
      'user bob: the worker runs as who started it, unless it reads data.user',
      'MAILTO=ops: no output is sent by mail',
    ]);
    expect(second?.notTranslated).toHaveLength(1);
  });

  test('an expression that never fires is taken with a warning', () => {
    expect(read('0 0 31 2 * x').schedules[0]?.warnings).toEqual([expect.stringContaining('never fires')]);
  });
});

describe('ids', () => {
  const idOf = (text: string, options?: CrontabImportOptions) => read(text, options).schedules[0]?.id ?? '';

  test('follow the command, not the times', () => {
    expect(idOf('0 5 * * * /opt/jobs/refresh.sh --all')).toMatch(/^opt-jobs-refresh-sh-all-[a-z0-9]{6}$/);
    expect(idOf('0 5 * * * run x')).toBe(idOf('CRON_TZ=Asia/Tokyo\nA=1\n*/5 7 * * 1 run x'));
    expect(idOf('0 5 * * * run x')).not.toBe(idOf('0 5 * * * run  x'));
    expect(idOf('0 5 * * * run x')).not.toBe(idOf('0 5 * * * run x%y'));
    expect(idOf('0 5 * * * amy run', { userColumn: true })).not.toBe(
      idOf('0 5 * * * bob run', { userColumn: true }),
    );
  });

  test('are short, and made of plain letters', () => {
    expect(idOf(`0 5 * * * ${'x'.repeat(900)}`)).toMatch(/^x{40}-[a-z0-9]{6}$/);
    expect(idOf('0 5 * * * [ -e /a/b ] && "é" 日本')).toMatch(/^e-a-b-[a-z0-9]{6}$/);
    expect(idOf('0 5 * * * 日本')).toMatch(/^[a-z0-9]{6}$/);
  });

  test('a command that stands twice is two schedules', () => {
    const ids = read('0 5 * * * run\n0 9 * * * run\n0 12 * * * run\n').schedules.map(({ id }) => id);
    expect(ids).toEqual([ids[0], `${ids[0]}-2`, `${ids[0]}-3`]);
  });

  test('take the prefix', () => {
    expect(idOf('0 5 * * * run', { idPrefix: 'web1-' })).toMatch(/^web1-run-/);
  });
});
