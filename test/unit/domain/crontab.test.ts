import { readdirSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { type CrontabLine, parseCrontab } from '../../../src/domain/crontab.js';
import { readCsv, readData } from './corpus.js';

const rows = readCsv('corpus/crontabs/expected-lines.csv');
const files = [...new Set(rows.map((row) => `${row.file}`))];
const EXAMPLES = new URL('../../../examples/crontabs/', import.meta.url);

/** A parsed line as a row of expected-lines.csv. */
function asRow(file: string, line: CrontabLine): Record<string, string> {
  const row = { file, line: `${line.line}`, kind: line.kind as string, schedule: '', user: '', zone: '' };
  const rest = { command: '', stdin: '', note: line.notes.join('; ') };
  if (line.kind === 'env') return { ...row, ...rest, command: `${line.name}=${line.value}` };
  if (line.kind === 'comment' || line.kind === 'blank') return { ...row, ...rest };
  const entry = {
    ...row,
    schedule: line.expression,
    user: line.user ?? '',
    zone: line.tz ?? '',
    ...rest,
    command: line.command,
  };
  if (line.kind === 'entry') return { ...entry, stdin: (line.stdin ?? '').replaceAll('\n', '\\n') };
  // The corpus counts @reboot as an entry, which it is to crond; there is no time to give it here.
  return { ...entry, kind: line.expression === '@reboot' ? 'entry' : 'error', note: line.reason };
}

describe('crontab files', () => {
  test.each(files)('%s', (file) => {
    const lines = parseCrontab(readData(`corpus/crontabs/${file}`), { userColumn: file.endsWith('.cron') });
    const expected = rows.filter((row) => row.file === file);
    const never = 'valid syntax, can never fire: refuse or warn';
    const found = lines.map((line) => {
      const row = asRow(file, line);
      return row.note?.startsWith('this expression never fires') ? { ...row, note: never } : row;
    });
    expect(found).toEqual(expected);
  });

  test('@reboot is refused, each with its reason', () => {
    const lines = parseCrontab('@reboot /opt/start.sh');
    expect(lines).toMatchObject([{ kind: 'refused', reason: 'start-up event, no clock time' }]);
  });

  test('the examples are the corpus files, unchanged', () => {
    expect(
      readdirSync(EXAMPLES)
        .filter((name) => /\.cron(tab)?$/.test(name))
        .sort(),
    ).toEqual([...files].sort());
    for (const file of files) {
      expect(readFileSync(new URL(file, EXAMPLES), 'utf8')).toBe(readData(`corpus/crontabs/${file}`));
    }
  });
});

describe('crontab lines', () => {
  const only = (text: string, userColumn = false) => parseCrontab(text, { userColumn })[0];

  test('an entry carries the variables set above it', () => {
    const lines = parseCrontab('A=1\n0 5 * * * one\nA=2\nCRON_TZ=Europe/Berlin\nB=3\n@daily two\n');
    expect(lines[1]).toMatchObject({ kind: 'entry', env: { A: '1' }, tz: undefined, notes: [] });
    expect(lines[5]).toMatchObject({ kind: 'entry', env: { A: '2', B: '3' }, tz: 'Europe/Berlin' });
  });

  test('standard input may be empty, and an escaped percent sign is one in it too', () => {
    expect(only('0 5 * * * cat%')).toMatchObject({ command: 'cat', stdin: '' });
    expect(only('0 5 * * * cat')).toMatchObject({ command: 'cat', stdin: undefined });
    expect(only('0 5 * * * cat %50\\%%50')).toMatchObject({ command: 'cat', stdin: '50%\n50' });
  });

  test('what Carillon cannot run is refused although crond would', () => {
    // The days that both fields name, to crond, which no two fields say here.
    for (const days of ['*/31 * 1', '15 * */7', '1,15 * */9,3'])
      expect(only(`0 0 ${days} x`)).toMatchObject({
        kind: 'refused',
        reason: expect.stringMatching(
          /^day of (month|week): .*to crond, on days that match both fields; write/,
        ),
      });
  });

  test.each([
    ['*/60 * * * *', '0 * * * *', 'minute'],
    ['*/90 * * * *', '0 * * * *', 'minute'],
    ['0 */24 * * *', '0 0 * * *', 'hour'],
    ['0 9-17/12 * * *', '0 9 * * *', 'hour'],
    ['0 0 */31 * *', '0 0 1 * *', 'day of month'],
    ['0 0 */31 * */2', '0 0 1 * */2', 'day of month'],
    ['0 0 */2 * */7', '0 0 */2 * 0', 'day of week'],
    ['0 0 * */12 *', '0 0 * 1 *', 'month'],
    ['0 0 * * */7', '0 0 * * 0', 'day of week'],
    ['0 0 * * MON-FRI/5', '0 0 * * MON', 'day of week'],
    ['0 0 15 * 0-7/7', '0 0 15 * 0', 'day of week'],
    ['15,*/123456 * * * *', '15,0 * * * *', 'minute'],
  ])('a step beyond its range names the first value to crond: %s is %s', (written, expression, field) => {
    const line = only(`${written} x\n`);
    expect(line).toMatchObject({ kind: 'entry', expression });
    const step = written.split(/[ ,]/).find((item) => item.includes('/') && !['*/2'].includes(item));
    expect(line?.notes).toEqual([expect.stringContaining(`${field}: ${step}: the step leads beyond`)]);
    expect(line?.notes[0]).toContain('crond');
  });

  test('a step within its range is kept', () => {
    for (const cron of [
      '*/59 * * * *',
      '0 */23 * * *',
      '0 0 */30 * *',
      '0 0 * * */6',
      '0 0 * * 1-7/6',
      '1-1/1 * * * *',
    ])
      expect(only(`${cron} x\n`)).toMatchObject({ kind: 'entry', expression: cron, notes: [] });
  });

  test('notation that crond does not have is refused although Carillon has it', () => {
    for (const field of ['L', '15W', '?', '1,L']) expect(only(`0 0 ${field} * * x`)?.kind).toBe('refused');
    for (const field of ['5L', '1#2', '?', 'H']) expect(only(`0 0 * * ${field} x`)?.kind).toBe('refused');
    expect(only('H H * * * x')?.kind).toBe('refused');
  });

  test('random values of cronie are taken', () => {
    expect(only('0~30 3 * * * x')).toMatchObject({ kind: 'entry', expression: '0~30 3 * * *' });
    expect(only('50~10 3 * * * x')?.kind).toBe('refused');
  });

  test('TZ does not move the times, and says so', () => {
    const lines = parseCrontab('TZ=Asia/Tokyo\n0 5 * * * x\n');
    expect(lines[0]?.notes).toEqual(['TZ is for the command; only CRON_TZ moves the times']);
    expect(lines[1]).toMatchObject({ tz: undefined, env: { TZ: 'Asia/Tokyo' } });
  });

  test('a user column', () => {
    expect(only('@hourly root run it', true)).toMatchObject({
      user: 'root',
      command: 'run it',
      expression: '@hourly',
    });
    expect(only('0 5 * * * root', true)).toMatchObject({
      kind: 'refused',
      reason: 'no command',
      user: 'root',
    });
    expect(only('0 5 * * *', true)).toMatchObject({ kind: 'refused', reason: 'no command', user: undefined });
  });

  test('an assignment inside a command is part of it', () => {
    expect(only('0 5 * * * A=1 run')).toMatchObject({ kind: 'entry', command: 'A=1 run' });
    expect(only("X='unclosed")).toMatchObject({ kind: 'refused', reason: 'fewer than five fields' });
  });

  test('no text is no lines', () => {
    expect(parseCrontab('')).toEqual([]);
    expect(parseCrontab('\n')).toMatchObject([{ kind: 'blank' }]);
  });
});

describe('six fields are no line of a crontab', () => {
  const only = (text: string, userColumn = false) => parseCrontab(text, { userColumn })[0];

  test.each([
    ['0 0 12 * * * /opt/x', '* is no command: a crontab has five fields, and then a command'],
    ['*/30 * * * * * /opt/y', '* is no command'],
    ['0 0 12 * * */2 /opt/x', '*/2 is no command'],
    ['@daily * /opt/x', '* is no command'],
  ])('%s', (text, reason) => {
    expect(only(text)).toMatchObject({ kind: 'refused', reason: expect.stringContaining(reason) });
    expect(only(text)).toMatchObject({ reason: expect.stringContaining('schedules upsert') });
  });

  test.each([
    ['0 5 * * * root * x', '* is no command: a crontab has five fields, a user and then a command'],
    ['0 0 12 * * * root /opt/x', '* is no user'],
    ['0 0 12 * * * /opt/x', '* is no user'],
    ['0 0 12 * * 1-5 root /opt/x', '1-5 is no user'],
    ['0 0 12 * * ? root /opt/x', '? is no user'],
  ])('with a user column: %s', (text, reason) => {
    expect(only(text, true)).toMatchObject({ kind: 'refused', reason: expect.stringContaining(reason) });
  });

  test('a star further on, or a number in a name, is a command', () => {
    expect(only('0 5 * * * ls *')?.kind).toBe('entry');
    expect(only('0 5 * * * 7z a b')?.kind).toBe('entry');
    expect(only('0 5 * * * r2d2 run', true)?.kind).toBe('entry');
  });
});

describe('cronie’s dash before the fields', () => {
  test('a system crontab may have it', () => {
    for (const times of ['*/15 * * * *', '@hourly']) {
      expect(parseCrontab(`-${times} root run\n`, { userColumn: true })).toMatchObject([
        { kind: 'entry', expression: times, user: 'root', command: 'run', notes: [] },
      ]);
    }
  });

  test('so may root’s own, and it is told', () => {
    expect(parseCrontab('-*/15 * * * * run\n')).toMatchObject([
      { kind: 'entry', expression: '*/15 * * * *', notes: [expect.stringContaining('only root’s')] },
    ]);
  });
});

describe('a zone is spelled as the zone files are, or cron runs it by UTC', () => {
  const entryOf = (tz: string) => parseCrontab(`CRON_TZ=${tz}\n0 5 * * * x\n`);

  test.each([
    ['america/new_york', 'America/New_York'],
    ['EUROPE/LONDON', 'Europe/London'],
    ['est5edt', 'EST5EDT'],
    ['us/eastern', 'US/Eastern'],
  ])('%s', (tz, right) => {
    expect(entryOf(tz)).toMatchObject([
      { kind: 'env', notes: ['unknown zone'] },
      { kind: 'refused', reason: expect.stringMatching(`by UTC; write CRON_TZ=${right}, or CRON_TZ=UTC`) },
    ]);
  });

  test.each(['UTC', 'utc', 'Gmt', 'etc/utc', 'zulu', 'US/Eastern', 'Etc/GMT+5', 'EST5EDT'])(
    '%s is taken',
    (tz) => {
      expect(entryOf(tz)).toMatchObject([{ notes: [] }, { kind: 'entry', tz }]);
    },
  );
});

describe('percent signs behind backslashes, as cronie reads them', () => {
  test.each([
    ['a \\\\% b', 'a \\\\', ' b'],
    ['a \\% b', 'a % b', undefined],
    ['a \\\\\\% b', 'a \\\\% b', undefined],
    ['a \\x% b', 'a \\x', ' b'],
    ['a \\', 'a \\', undefined],
    ['a%b \\\\% c', 'a', 'b \\% c'],
    ['a%b\\\\%%c\\', 'a', 'b\\%\nc\\'],
    ['a \\  ', 'a \\  ', undefined],
    ['a  %b', 'a', 'b'],
  ])('%s', (text, command, stdin) => {
    expect(parseCrontab(`0 5 * * * ${text}\n`)).toMatchObject([{ kind: 'entry', command, stdin }]);
  });
});

describe('quotes in a variable end its value', () => {
  const kindOf = (text: string) => {
    const [line] = parseCrontab(text);
    return line?.kind === 'env' ? `${line.name}=${line.value}|` : line?.kind;
  };

  test.each(['F = "x" y', 'F="x" y', "M='x' # c", "M =\t'x' # c", 'F="x', 'F=\t"x', "'F=1'=x"])(
    '%j is none',
    (text) => {
      expect(kindOf(text)).toBe('refused');
    },
  );

  test.each([
    ['F = "x"', 'F=x|'],
    ['F = x "y" ', 'F=x "y"|'],
    ['F=\t a b', 'F=a b|'],
    ['F = " x "', 'F= x |'],
    ['F=', 'F=|'],
    ['F =  ', 'F=|'],
    [`F=it's "x"`, `F=it's "x"|`],
  ])('%j is %j', (text, told) => {
    expect(kindOf(text)).toBe(told);
  });
});

test.each([
  ['5-', '5-'],
  ['/5', '/5'],
  ['1,-', '-'],
  ['1-x', 'x'],
  ['--5', '-5'],
  ['- 5', '-'],
])('a bad value is named: %s', (minute, told) => {
  expect(parseCrontab(`${minute} * * * * run`)).toMatchObject([
    { kind: 'refused', reason: `minute: bad value ${told}` },
  ]);
});

test('a variable may have a name that every object has', () => {
  const [, , , entry] = parseCrontab('__proto__=1\nconstructor=2\ntoString=3\n@daily run\n');
  expect(entry).toMatchObject({ kind: 'entry' });
  const { env = {} } = entry as { env?: Record<string, string> };
  expect(Object.entries(env)).toEqual([
    ['__proto__', '1'],
    ['constructor', '2'],
    ['toString', '3'],
  ]);
});
