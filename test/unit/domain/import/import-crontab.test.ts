import { describe, expect, test } from 'vitest';
import { checkSchedule } from '../../../../src/domain/check-schedule.js';
import type { StandingCommand } from '../../../../src/domain/crontab-ids.js';
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

  test('cronie’s random delay is listed', () => {
    const lost = (value: string) => read(`RANDOM_DELAY=${value}\n0 5 * * * run`).schedules[0]?.notTranslated;
    expect(lost('30')).toEqual([expect.stringMatching(/^RANDOM_DELAY=30: .*minutes; jitter/)]);
    expect(lost('0')).toEqual([]);
    expect(lost('')).toEqual([]);
  });

  test('a system crontab that is read as a user’s is told of', () => {
    const warnings = (text: string, userColumn = false) => read(text, { userColumn }).schedules[0]?.warnings;
    expect(warnings('17 * * * * root cd / && run-parts /etc/cron.hourly')).toEqual([
      'root: a user, not a command? --user-column reads it so',
    ]);
    expect(warnings('@daily www-data /opt/x')).toHaveLength(1);
    expect(warnings('17 * * * * root cd /', true)).toEqual([]);
    expect(warnings('17 * * * * cd /root')).toEqual([]);
    expect(warnings('17 * * * * root')).toEqual([]);
  });

  test('a sixth field that a shell would be given is told of', () => {
    const warnings = (text: string, userColumn = false) => read(text, { userColumn }).schedules[0]?.warnings;
    expect(warnings('0 0 12 * * ? /opt/x')).toEqual(['?: a sixth field, not a command? A crontab has five']);
    expect(warnings('0 0 12 * * 1-5 /opt/x')).toHaveLength(1);
    expect(warnings('0 0 12 * * MON-FRI /opt/x')).toHaveLength(1);
    expect(warnings('0 0 12 * * MON root /opt/x', true)).toEqual([
      'MON: a sixth field, not a user? A crontab has five',
    ]);
    expect(warnings('0 0 12 * * monitor /opt/x')).toEqual([]);
    expect(warnings('0 0 12 * * 7z')).toEqual([]);
  });

  test('a step beyond its range is taken as crond takes it, with a warning of how it was written', () => {
    const { schedules } = read('*/60 * * * * x\n');
    expect(schedules[0]).toMatchObject({
      definition: { cron: '0 * * * *' },
      warnings: [
        'minute: */60: the step leads beyond the range, so crond runs it as 0 alone, and so it is kept',
      ],
    });
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

  describe('of a command that stands several times do not hang on the order of lines', () => {
    const all = (text: string, standing: readonly StandingCommand[] = []) =>
      read(text, { standing }).schedules.map(({ id, definition, template }) => {
        const { command, stdin } = template.data as { command: string; stdin?: string };
        return { id, cron: `${definition.cron}`, tz: `${definition.tz}`, command, stdin, user: undefined };
      });
    const tokyo = 'CRON_TZ=Asia/Tokyo\n0 9 * * * report\n';
    const london = 'CRON_TZ=Europe/London\n0 9 * * * report\n';
    const times = (found: readonly StandingCommand[]) => found.map(({ id, cron, tz }) => [id, cron, tz]);

    test('in several zones', () => {
      const [a, b] = all(tokyo + london);
      expect(a?.id).not.toBe(b?.id);
      expect(all(london + tokyo).map(({ id }) => id)).toEqual([b?.id, a?.id]);
      expect(a?.id).toMatch(/^report-[a-z0-9]{6}$/);
    });

    test.each([
      ['one of two zones', tokyo + london, london, [1]],
      ['the other of two zones', tokyo + london, tokyo, [0]],
      ['the first of two times', '0 5 * * * run\n0 9 * * * run\n', '0 9 * * * run\n', [1]],
      ['an added zone', london, tokyo + london, [-1, 0]],
      ['an added time', '0 9 * * * run\n', '0 5 * * * run\n0 9 * * * run\n', [-1, 0]],
      ['lines in another order', '0 5 * * * run\n0 9 * * * run\n', '0 9 * * * run\n0 5 * * * run\n', [1, 0]],
      [
        'one changed beside one that stays',
        '0 5 * * * x\n0 9 * * * x\n',
        '0 9 * * * x\n0 6 * * * x\n',
        [1, 0],
      ],
      ['a changed time under one of two zones', tokyo + london, london.replace('0 9', '30 9'), [1]],
      ['a zone that changed', tokyo, london, [0]],
    ])('%s: what stays keeps its id', (_what, before, after, kept) => {
      const first = all(before);
      const second = all(after, first);
      expect(second.map(({ id }) => first.findIndex((one) => one.id === id))).toEqual(kept);
      expect(new Set(second.map(({ id }) => id)).size).toBe(second.length);
      // And from then on nothing moves.
      expect(times(all(after, second))).toEqual(times(second));
    });

    test('a line that is refused now names what it was', () => {
      const first = all('0 5 * * * run%in\n0 6 * * * other\n');
      const { refused } = read('0 25 * * * run%in\n0 6 * * * other\n', { standing: first });
      expect(refused[0]?.ids).toEqual([first[0]?.id]);
    });

    test('another prefix is another crontab', () => {
      const [first] = all('0 5 * * * run\n');
      const standing = first === undefined ? [] : [first];
      expect(read('0 5 * * * run', { standing, idPrefix: 'web1-' }).schedules[0]?.id).toMatch(/^web1-run-/);
    });
  });

  test('take the prefix', () => {
    expect(idOf('0 5 * * * run', { idPrefix: 'web1-' })).toMatch(/^web1-run-/);
  });
});
