import { describe, expect, test } from 'vitest';
import { DIALECTS, type Dialect, translateExpression } from '../../../../src/domain/dialect.js';
import { compileSchedule } from '../../../../src/domain/fire-times.js';
import type { TimingDefinition } from '../../../../src/domain/fire-times-definition.js';
import { nextFireTimes } from '../../../../src/domain/next-fire-times.js';
import { readCsv } from '../corpus.js';

const rows = readCsv('corpus/schedules.csv').filter((row) => DIALECTS.includes(row.dialect as Dialect));
const withEquivalent = rows.filter((row) => row.cron_equiv !== '');
/** Rows without an equivalent that have one here: intervals, and two day fields that our AND says. */
const OURS: Readonly<Record<string, TimingDefinition>> = {
  S0600: { every: '5m' },
  S0601: { every: '1h' },
  S0611: { every: '5m' },
  S0615: { every: '1m' },
  S0511: { cron: '15 12 */10 1-8 5' },
};
const refusedRows = rows.filter((row) => row.cron_equiv === '' && OURS[`${row.id}`] === undefined);

/** Two timings with the same text here fire at the same times. */
const canonical = (timing: TimingDefinition) => compileSchedule(timing, { createdAt: 0 }).canonical;

function translated(dialect: Dialect, text: string, tz?: string) {
  const translation = translateExpression(dialect, text, tz);
  if ('refused' in translation) throw new Error(`refused: ${translation.refused}`);
  return translation;
}

function refusal(dialect: Dialect, text: string, tz?: string): string {
  const translation = translateExpression(dialect, text, tz);
  return 'refused' in translation ? translation.refused : `translated: ${JSON.stringify(translation.timing)}`;
}

const fires = (timing: TimingDefinition, after: string, count: number) =>
  nextFireTimes(timing, { after, count }).map((time) => time.toISOString().slice(0, 16));

describe('expressions found in public projects', () => {
  test('the corpus holds each dialect', () => {
    expect(new Set(withEquivalent.map((row) => row.dialect))).toEqual(new Set(DIALECTS));
    expect(withEquivalent.length).toBeGreaterThan(40);
  });

  test.each(withEquivalent)('$dialect $id: $raw', (row) => {
    const { timing } = translated(row.dialect as Dialect, `${row.raw}`, row.tz || undefined);
    expect(timing.tz).toBe(row.tz || undefined);
    expect(canonical(timing)).toBe(canonical({ cron: row.cron_equiv, tz: row.tz || undefined }));
  });

  test.each(Object.entries(OURS))('%s has an equivalent here', (id, timing) => {
    const row = rows.find((found) => found.id === id);
    expect(canonical(translated(row?.dialect as Dialect, `${row?.raw}`).timing)).toBe(canonical(timing));
  });

  test.each(refusedRows)('$dialect $id: $raw is refused', (row) => {
    expect(refusal(row.dialect as Dialect, `${row.raw}`)).toMatch(/; \S+/);
    expect(refusal(row.dialect as Dialect, `${row.raw}`)).not.toMatch(/^translated/);
  });
});

describe('Quartz', () => {
  test('weekdays count from 1 = Sunday and come out as names', () => {
    expect(translated('quartz', '0 0 12 ? * 2-6').timing).toEqual({ cron: '0 12 * * MON-FRI' });
    expect(translated('quartz', '0 0 12 ? * 1,7').timing).toEqual({ cron: '0 12 * * SUN,SAT' });
    expect(translated('quartz', '0 0 12 ? * 6#3').timing).toEqual({ cron: '0 12 * * FRI#3' });
    expect(translated('quartz', '0 0 12 ? * 6L').timing).toEqual({ cron: '0 12 * * FRIL' });
    expect(translated('quartz', '0 0 12 ? * L').timing).toEqual({ cron: '0 12 * * SAT' });
    expect(translated('quartz', '0 0 12 ? * 2/2').timing).toEqual({ cron: '0 12 * * MON/2' });
    expect(fires({ cron: '0 12 * * MON/2' }, '2026-01-04T00:00:00Z', 3)).toEqual([
      '2026-01-05T12:00',
      '2026-01-07T12:00',
      '2026-01-09T12:00',
    ]);
  });

  test('a week that runs over its end keeps its days', () => {
    expect(fires(translated('quartz', '0 0 12 ? * 6-2').timing, '2026-01-01T00:00:00Z', 5)).toEqual([
      '2026-01-02T12:00',
      '2026-01-03T12:00',
      '2026-01-04T12:00',
      '2026-01-05T12:00',
      '2026-01-09T12:00',
    ]);
  });

  test.each(['0', '8', '0-4'])('the weekday %s does not exist', (weekday) => {
    expect(refusal('quartz', `0 0 12 ? * ${weekday}`)).toContain('counts from 1 = Sunday to 7 = Saturday');
  });

  test('seconds other than 0 stay, a step may have no start, * and ? in the year say nothing', () => {
    expect(translated('quartz', '30 /10 * ? * * *').timing).toEqual({ cron: '30 */10 * * * *' });
  });

  test('a year is refused with the dates that say the same', () => {
    expect(refusal('quartz', '0 15 10 ? * 6L 2002-2005')).toContain(
      "write startDate: '2002-01-01T00:00:00Z', endDate: '2005-12-31T23:59:59Z'",
    );
    expect(refusal('quartz', '0 0 12 1 1 ? 2027')).toContain("endDate: '2027-12-31T23:59:59Z'");
    expect(refusal('quartz', '0 0 12 1 1 ? 2027/2')).toContain('one schedule for each span of years');
    // By the clock of the zone: that of the expression, or the one that is given.
    for (const [text, tz] of [
      ['0 0 22 31 12 ? 2027', 'America/New_York'],
      ['0 0 22 31 12 ? 2027 America/New_York', undefined],
    ] as const) {
      expect(refusal('quartz', text, tz)).toContain(
        "write startDate: '2027-01-01T00:00:00-05:00', endDate: '2027-12-31T23:59:59-05:00'",
      );
    }
  });

  test('both day fields, or neither, are refused as Quartz refuses them', () => {
    expect(refusal('quartz', '0 0 12 13 * 6')).toContain('does not take together');
    expect(refusal('quartz', '0 0 12 ? * ?')).toContain('? in both day fields');
  });

  test('five fields are plain cron, and say so; a weekday that could be either’s is refused', () => {
    expect(translated('quartz', '0 12 * * 1')).toEqual({
      timing: { cron: '0 12 * * 1' },
      warnings: ['five fields are plain cron, not Quartz: weekdays count from 0 = Sunday'],
    });
    expect(refusal('quartz', '0 12 ? * 2')).toContain('could be either');
    expect(translated('quartz', '0 12 ? * MON').timing).toEqual({ cron: '0 12 ? * MON' });
  });

  test('a zone behind the fields wins over the one that is given', () => {
    expect(translated('quartz', '0 0 12 * * ? Europe/Berlin', 'UTC').timing).toEqual({
      cron: '0 12 * * *',
      tz: 'Europe/Berlin',
    });
    expect(refusal('quartz', '0 0 12 * * ? Mars/Olympus')).toMatch(/year|zone/i);
  });

  test.each(['', '0 0 12 * *  ? 2027 2028', '@daily', '* * *'])('%j is refused', (text) => {
    expect(refusal('quartz', text)).not.toMatch(/^translated/);
  });
});

describe('Spring', () => {
  test('weekdays count as in cron', () => {
    expect(canonical(translated('spring', '0 0 9 ? * 1-5').timing)).toBe(
      canonical({ cron: '0 9 * * MON-FRI' }),
    );
    expect(canonical(translated('spring', '0 0 9 ? * FRI-SUN').timing)).toBe(
      canonical({ cron: '0 9 * * 5,6,0' }),
    );
  });

  test('macros in any case', () => {
    expect(translated('spring', '@Midnight').timing).toEqual({ cron: '@midnight' });
    expect(refusal('spring', '@reboot')).toContain('no macro of Spring');
  });

  test('a dash, which switches a method off, is no schedule', () => {
    expect(refusal('spring', '-')).toContain('switches the method off');
  });

  test('five fields are refused with six', () => {
    expect(refusal('spring', '*/5 * * * 1-5')).toContain("'0 */5 * * * 1-5'");
  });

  test('ranges that run backwards never started, so they are refused', () => {
    expect(refusal('spring', '0 0 22-2 * * *')).toContain('hour: Spring takes no range that runs backwards');
    expect(refusal('spring', '0 0 9 ? * FRI-MON')).toContain('day of week: Spring takes no range');
    expect(refusal('spring', '0 0 9 ? * FRI-0')).toContain('day of week: Spring takes no range');
    expect(translated('spring', '0 0 9 ? * 7-2').timing).toEqual({ cron: '0 9 * * 7-2' });
  });

  test.each([
    ['*/2', 'MON,WED,FRI,SUN'],
    ['*/3', 'MON,THU,SUN'],
    ['*/4', 'MON,FRI'],
    ['*/5', 'MON,SAT'],
    ['*/6', 'MON,SUN'],
    ['*/1', '*'],
    ['MON/2', 'MON,WED,FRI,SUN'],
    ['1/2', 'MON,WED,FRI,SUN'],
    ['1/3', 'MON,THU,SUN'],
    ['SUN/2', 'SUN'],
    ['7/2', 'SUN'],
    ['SUN/1', 'SUN'],
    ['FRI/2', 'FRI,SUN'],
    ['WED/4', 'WED,SUN'],
    ['1/6', 'MON,SUN'],
    ['TUE,4/3', 'TUE,THU,SUN'],
    ['0/2', 'SUN,TUE,THU,SAT'],
    ['2/3', 'TUE,FRI'],
    ['1-5/2', 'MON,WED,FRI'],
    ['SUN-TUE/2', 'SUN,TUE'],
    ['MON-SUN/3', 'MON,THU,SUN'],
    ['SUN-SUN', '*'],
    ['0-SUN', '*'],
    ['7-7/2', 'SUN,TUE,THU,SAT'],
  ])('weeks run from Monday to Sunday, which is 7: the weekday %s is %s', (weekday, days) => {
    expect(canonical(translated('spring', `0 0 9 * * ${weekday}`).timing)).toBe(
      canonical({ cron: `0 9 * * ${days}` }),
    );
  });

  test('both day fields mean both also where a weekday begins with a star', () => {
    expect(refusal('spring', '0 0 9 13 * */2')).toContain('Spring fires where both match');
    expect(canonical(translated('spring', '0 0 9 13 * */1').timing)).toBe(canonical({ cron: '0 9 13 * *' }));
  });

  test('both day fields mean both: refused, unless ours reads them so', () => {
    expect(refusal('spring', '0 0 0 13 * FRI')).toContain('Spring fires where both match');
    expect(fires(translated('spring', '0 0 0 */13 * FRI').timing, '2026-01-01T00:00:00Z', 2)).toEqual([
      '2026-02-27T00:00',
      '2026-03-27T00:00',
    ]);
  });
});

describe('EventBridge', () => {
  test('a rate is an interval', () => {
    expect(translated('eventbridge', 'rate(2 days)').timing).toEqual({ every: '2d' });
    expect(translated('eventbridge', 'rate(1 hour)').timing).toEqual({ every: '1h' });
    expect(translated('eventbridge', 'rate(5 minutes)', 'Europe/Berlin').timing).toEqual({ every: '5m' });
    for (const text of ['rate(0 minutes)', 'rate(5)', 'rate(5 seconds)', 'rate(1.5 hours)']) {
      expect(refusal('eventbridge', text)).toContain('is no rate');
    }
  });

  test.each([
    ['rate(1 days)', 'rate(1 day)'],
    ['rate(1 hours)', 'rate(1 hour)'],
    ['rate(5 minute)', 'rate(5 minutes)'],
    ['rate(07 hour)', 'rate(7 hours)'],
  ])('a rate has the singular for 1 and the plural for more: %s is refused', (text, todo) => {
    expect(refusal('eventbridge', text)).toContain(`write ${todo}`);
  });

  test('at() is one tick by the wall clock of its zone', () => {
    const { timing } = translated('eventbridge', 'at(2027-07-01T09:12:30)', 'America/New_York');
    expect(nextFireTimes(timing, { after: '2026-01-01T00:00:00Z', count: 3 })).toEqual([
      new Date('2027-07-01T13:12:30Z'),
    ]);
    expect(timing.limit).toBe(1);
    expect(nextFireTimes(timing, { after: '2027-07-02T00:00:00Z' })).toEqual([]);
    for (const zone of ['Pacific/Kiritimati', 'Pacific/Pago_Pago']) {
      const night = translated('eventbridge', 'at(2027-12-31T23:59:59)', zone).timing;
      expect(nextFireTimes(night, { after: '2026-01-01T00:00:00Z', count: 2 })).toHaveLength(1);
    }
    for (const text of ['at(2027-02-30T00:00:00)', 'at(2027-07-01)', 'at(2027-07-01T25:00:00)', 'at()']) {
      expect(refusal('eventbridge', text)).not.toMatch(/^translated/);
    }
  });

  test('exactly one day field is ?', () => {
    for (const text of ['cron(0 12 * * * *)', 'cron(0 12 ? * ? *)', 'cron(0 12 1 * 2 *)']) {
      expect(refusal('eventbridge', text)).toContain('exactly one of the day fields must be ?');
    }
  });

  test('the year, other calls and other numbers of fields are refused', () => {
    expect(refusal('eventbridge', 'cron(0 12 1 1 ? 2027)')).toContain("startDate: '2027-01-01T00:00:00Z'");
    expect(refusal('eventbridge', 'every(5 minutes)')).toContain('every() is unknown');
    expect(refusal('eventbridge', 'cron(0 12 * *)')).toContain('takes six');
  });
});

describe('what its own scheduler would not run is refused', () => {
  test.each<[Dialect, string, RegExp]>([
    ['eventbridge', 'cron(0 12 ? * 2#1,4#1 *)', /day of week: EventBridge .*alone.*; write one schedule for each/],
    ['eventbridge', 'cron(0 12 ? * MON,THU#2 *)', /day of week: EventBridge .*; write one schedule for each/],
    ['quartz', '0 0 12 L,15 * ?', /day of month: Quartz .*; write one schedule for each/],
    ['quartz', '0 0 12 1,LW * ?', /day of month: Quartz .*; write one schedule for each/],
    ['quartz', '0 0 12 ? * 2#1,5', /day of week: Quartz .*; write one schedule for each/],
    ['quartz', '0 0 12 ? * 2#2,4#1', /day of week: Quartz .*; write one schedule for each/],
    ['quartz', '0 0 12 ? * MON#2,FRIL', /day of week: Quartz .*; write one schedule for each/],
    ['quartz', '0 0 12 ? * 2,L', /day of week: Quartz .*; write one schedule for each/],
    ['spring', '0 0 9 L-3W * *', /day of month: Spring .*L-3W; write L-3 or LW/],
    ['spring', '0 0 9 15,L-3W * *', /day of month: Spring .*L-3W; write/],
  ])('%s: %s', (dialect, text, message) => {
    expect(refusal(dialect, text)).toMatch(message);
  }); // biome-ignore format: a table

  test.each<[Dialect, string]>([
    ['quartz', '0 H 12 * * ?'],
    ['quartz', 'H 4 * * *'],
    ['quartz', '0 0~30 4 * * ?'],
    ['spring', '0 H/15 4 * * *'],
    ['spring', '0 0 H(2-4) * * MON'],
    ['spring', '0 0 4 1~7 * *'],
    ['eventbridge', 'cron(H 4 * * ? *)'],
    ['eventbridge', '~ 4 * * *'],
  ])('values that an id picks, which only we have: %s: %s', (dialect, text) => {
    expect(refusal(dialect, text)).toMatch(/holds [H~], which \w+ does not have; write a value/);
  });

  test.each<[Dialect, string, string]>([
    ['quartz', '0 0 12 ? * MONDAY-FRIDAY', 'MON'],
    ['spring', '0 0 9 * * MONDAY', 'MON'],
    ['spring', '0 0 9 1 JANUARY *', 'JAN'],
    ['eventbridge', 'cron(0 12 ? * 2,FRIDAYL *)', 'FRI'],
  ])('names in full: %s: %s', (dialect, text, short) => {
    expect(refusal(dialect, text)).toContain(`write ${short}`);
  });

  test('what Spring takes in lists, and Quartz alone, is taken', () => {
    expect(translated('spring', '0 0 9 L,15 * *').timing).toEqual({ cron: '0 9 L,15 * *' });
    expect(translated('spring', '0 0 9 * * MON#2,FRIL').timing).toEqual({ cron: '0 9 * * MON#2,FRIL' });
    expect(translated('quartz', '0 0 12 L-3W MAR ?').timing).toEqual({ cron: '0 12 L-3W MAR *' });
    expect(translated('quartz', '0 0 12 ? JUL THU').timing).toEqual({ cron: '0 12 * JUL THU' });
    expect(translated('quartz', '0 0 12 1,15 * ?').timing).toEqual({ cron: '0 12 1,15 * *' });
  });

  test.each<[Dialect, string]>([
    ['eventbridge', 'cron(*/60 * * * ? *)'],
    ['quartz', '0 */60 * * * ?'],
    ['spring', '0 */60 * * * *'],
    ['spring', '0 0 9 * * */7'],
  ])('a step beyond its range stays refused: %s: %s', (dialect, text) => {
    expect(refusal(dialect, text)).toContain('leads beyond its range');
  });
});

describe('a refusal names the expression as it is written', () => {
  test.each<[Dialect, string, string]>([
    [
      'quartz',
      '0 0 12 ? * L-2',
      'expression "0 0 12 ? * L-2", which is cron "0 12 * * L-MON": day of week: ',
    ],
    ['quartz', '0 0/90 12 ? * 2', 'expression "0 0/90 12 ? * 2", which is cron "0/90 12 * * MON": minute: '],
    ['quartz', '0 90 * * *', 'expression "0 90 * * *": hour: 90'],
    ['spring', '0 61 9 * * MON', 'expression "0 61 9 * * MON", which is cron "61 9 * * MON": minute: 61'],
    ['spring', '5 61 9 * * MON', 'expression "5 61 9 * * MON": minute: 61'],
    [
      'eventbridge',
      'cron(0 25 * * ? *)',
      'expression "cron(0 25 * * ? *)", which is cron "0 25 * * *": hour: 25',
    ],
    [
      'eventbridge',
      'at(2027-07-01T25:00:00)',
      'expression "at(2027-07-01T25:00:00)", which is cron "0 0 25 1 7 *"',
    ],
  ])('%s: %s', (dialect, text, begin) => {
    expect(refusal(dialect, text).slice(0, begin.length)).toBe(begin);
  });
});

describe('every n hours from 0', () => {
  const warnings = (dialect: Dialect, text: string, tz?: string) => translated(dialect, text, tz).warnings;

  test.each<[Dialect, string, string]>([
    ['quartz', '0 0 0/1 * * ?', 'write */1 '],
    ['quartz', '0 0 0/2 * * ? Europe/London', 'write */2 '],
    ['spring', '30 0 0/6 * * MON', 'write */6 '],
    ['eventbridge', 'cron(0 0/2 * * ? *)', 'write */2 '],
  ])('%s: %s is fixed where clocks change, and told of', (dialect, text, todo) => {
    expect(warnings(dialect, text, 'Europe/London')).toEqual([expect.stringContaining(todo)]);
    expect(compileSchedule(translated(dialect, text, 'Europe/London').timing).kind).toBe('fixed');
  });

  test('not where they do not, nor for hours that run through', () => {
    expect(warnings('quartz', '0 0 0/2 * * ?')).toEqual([]);
    expect(warnings('quartz', '0 0 0/2 * * ?', 'Asia/Tokyo')).toEqual([]);
    for (const text of ['0 0 */2 * * ?', '0 0 1/2 * * ?', '0 0/5 * * * ?', '0 0 0 * * ?', '0 0 /2 * * ?'])
      expect(warnings('quartz', text, 'Europe/London')).toEqual([]);
  });
});

test('no text of three alphabets makes a translator throw', () => {
  const pieces = [
    '*',
    '?',
    'L',
    '#',
    '/',
    '-',
    ',',
    '7',
    '2027',
    'MON',
    '@',
    '(',
    ')',
    'rate',
    'é',
    '%',
    ' ',
  ];
  for (const a of pieces) {
    for (const b of pieces) {
      for (const c of pieces) {
        for (const dialect of DIALECTS) {
          const text = `0 ${a}${b} ${c} ${b} ${a} ${c}`;
          expect(Object.keys(translateExpression(dialect, text)).length).toBeGreaterThan(0);
        }
      }
    }
  }
});
