import { describe, expect, test } from 'vitest';
import { compileSchedule } from '../../../src/domain/fire-times.js';
import type { TimingDefinition } from '../../../src/domain/fire-times-definition.js';
import { nextFireTimes } from '../../../src/domain/next-fire-times.js';

const AFTER = '2026-01-01T00:00:00Z';

function times(cron: string, count = 3, after = AFTER, seed?: string): string[] {
  return nextFireTimes({ cron }, { after, count, seed }).map((time) => time.toISOString().slice(0, 19));
}

/** The same times for the next three years' worth of ticks, from several starts. */
function expectSame(a: TimingDefinition, b: TimingDefinition): void {
  for (const after of [AFTER, '2026-02-27T13:59:59Z', '2027-12-31T23:59:59Z']) {
    expect(nextFireTimes(a, { after, count: 60 })).toEqual(nextFireTimes(b, { after, count: 60 }));
  }
}

describe('notation', () => {
  test.each([
    ['22-2 as an hour wraps round midnight', '0 22-2 * * *', '0 22,23,0,1,2 * * *'],
    ['sat-sun', '0 0 * * sat-sun', '0 0 * * 0,6'],
    ['fri-mon', '0 0 * * fri-mon', '0 0 * * 5,6,0,1'],
    ['5-7 ends on Sunday', '0 0 * * 5-7', '0 0 * * 0,5,6'],
    ['0-7 is every day', '0 0 * * 0-7', '0 0 * * 0-6'],
    ['7-1 starts on Sunday', '0 0 * * 7-1', '0 0 * * 0,1'],
    ['nov-feb', '0 0 1 nov-feb *', '0 0 1 1,2,11,12 *'],
    ['50-10/5 steps across the hour', '50-10/5 * * * *', '50,55,0,5,10 * * * *'],
    ['28-3 wraps round the end of the month', '0 0 28-3 * *', '0 0 1-3,28-31 * *'],
    ['duplicates', '1,1,1-3 * * * *', '1,2,3 * * * *'],
    ['*,5', '*,5 * * * *', '* * * * *'],
    ['names in any case', '0 0 1 jAN,february MoN', '0 0 1 1,2 1'],
    ['full names', '0 0 * * monday-FRIDAY', '0 0 * * 1-5'],
    ['lower-case specials', '0 0 lw * *', '0 0 LW * *'],
    ['fril', '0 0 * * fril', '0 0 * * 5L'],
    ['1#1,1#3', '0 0 * * 1#1,1#3', '0 0 * * MON#1,mon#3'],
    ['7L is the last Sunday', '0 0 * * 7L', '0 0 * * 0L'],
    ['? for either day field', '0 12 ? * ?', '0 12 * * *'],
    ['blanks and tabs', '  0\t12  * * *  ', '0 12 * * *'],
    ['leading zeros', '05 09 01 01 *', '5 9 1 1 *'],
    ['start/step runs to the end', '10/20 * * * *', '10,30,50 * * * *'],
    ['six fields', '0 */15 * * * *', '*/15 * * * *'],
    ['@yearly', '@yearly', '0 0 1 1 *'],
    ['@annually', '@annually', '0 0 1 1 *'],
    ['@monthly', '@monthly', '0 0 1 * *'],
    ['@weekly', '@weekly', '0 0 * * 0'],
    ['@daily in any case, with blanks', ' @Daily ', '0 0 * * *'],
    ['@midnight', '@midnight', '0 0 * * *'],
    ['@hourly', '@HOURLY', '0 * * * *'],
    ['@weekdays', '@weekdays', '0 0 * * 1-5'],
  ])('%s', (_name, cron, plain) => {
    expectSame({ cron }, { cron: plain });
  });

  test('`pattern` is another name for `cron`', () => {
    expectSame({ pattern: '5 4 * * *' }, { cron: '5 4 * * *' });
  });

  test('@every counts in milliseconds from the creation, not from the hour', () => {
    expect(times('@every 1h30m', 2, '2026-01-01T00:10:00Z')).toEqual([
      '2026-01-01T01:40:00',
      '2026-01-01T03:10:00',
    ]);
    expect(compileSchedule({ cron: '@every 5m' }).kind).toBe('every');
  });

  test('seconds', () => {
    expect(times('*/20 59 23 31 12 *')).toEqual([
      '2026-12-31T23:59:00',
      '2026-12-31T23:59:20',
      '2026-12-31T23:59:40',
    ]);
  });
});

describe('days', () => {
  test('both fields restricted: either day; a star first: both', () => {
    expect(times('0 0 13 * 5', 4)).toEqual(
      ['2026-01-02', '2026-01-09', '2026-01-13', '2026-01-16'].map(midnight),
    );
    expect(times('0 0 */13 * 5', 2)).toEqual(['2026-02-27', '2026-03-27'].map(midnight));
    expect(times('0 0 13 * */5', 2)).toEqual(['2026-02-13', '2026-03-13'].map(midnight));
    expect(times('0 0 ? * 5', 2)).toEqual(['2026-01-02', '2026-01-09'].map(midnight));
    // */1 is a star too, as in Vixie cron: Mondays. cron-parser runs it daily.
    expect(times('0 0 */1 * 1', 2)).toEqual(['2026-01-05', '2026-01-12'].map(midnight));
  });

  test('L, L-n, LW, L-nW, nW stay within their month', () => {
    expect(times('0 0 L * *')).toEqual(['2026-01-31', '2026-02-28', '2026-03-31'].map(midnight));
    expect(times('0 0 L-30 * *', 2)).toEqual(['2026-03-01', '2026-05-01'].map(midnight));
    expect(times('0 0 LW * *', 2)).toEqual(['2026-01-30', '2026-02-27'].map(midnight));
    expect(times('0 0 L-2W * *', 2)).toEqual(['2026-01-29', '2026-02-26'].map(midnight));
    // Saturday 1 August: Monday the 3rd, not Friday 31 July. Sunday 31 May: Friday the 29th.
    expect(times('0 0 1W 8 *', 1)).toEqual(['2026-08-03'].map(midnight));
    expect(times('0 0 31W 5 *', 1)).toEqual(['2026-05-29'].map(midnight));
    // A month without a 31st has no workday near it.
    expect(times('0 0 31W * *', 2, '2026-05-30T00:00:00Z')).toEqual(
      ['2026-07-31', '2026-08-31'].map(midnight),
    );
    expect(times('0 0 15,L * *', 2)).toEqual(['2026-01-15', '2026-01-31'].map(midnight));
  });

  test('nth and last weekdays', () => {
    expect(times('0 0 * * 5#5', 2)).toEqual(['2026-01-30', '2026-05-29'].map(midnight));
    expect(times('0 0 * * 1L,2#1', 2)).toEqual(['2026-01-06', '2026-01-26'].map(midnight));
  });

  test('29 February skips 2100 and comes in 2104', () => {
    expect(times('0 0 29 2 *', 1, '2096-03-01T00:00:00Z')).toEqual([midnight('2104-02-29')]);
  });

  test('a day that no month has never fires, and says so', () => {
    const timing = compileSchedule({ cron: '0 0 31 2 *' });
    expect(timing.next(0)).toBeUndefined();
    expect(timing.warnings).toEqual(['this expression never fires: no month it names has such a day']);
    // With a weekday beside it, Vixie's OR gives Mondays of February.
    expect(times('0 0 31 2 1', 1)).toEqual([midnight('2026-02-02')]);
  });
});

describe('seeded values', () => {
  const minutes = (cron: string, seed: string) =>
    times(cron, 60, AFTER, seed).map((time) => Number(time.slice(14, 16)));

  test('B26: the identity decides, for ever', () => {
    // Written down: a change of the hash would move every stored schedule.
    expect(times('H H * * *', 1, AFTER, 'emails:job-42')).toEqual(['2026-01-01T12:26:00']);
    expect(times('H H * * *', 1, AFTER, 'emails:job-43')).not.toEqual(
      times('H H * * *', 1, AFTER, 'emails:job-42'),
    );
  });

  test('values lie in their range and spread over it', () => {
    const found = { minute: new Set<number>(), narrow: new Set<number>(), day: new Set<number>() };
    for (let i = 0; i < 2_000; i++) {
      const [time = ''] = times('H * H * *', 1, AFTER, `q:${i}`);
      found.minute.add(Number(time.slice(14, 16)));
      found.day.add(Number(time.slice(8, 10)));
      found.narrow.add(Number(times('H(10-19) * * * *', 1, AFTER, `q:${i}`)[0]?.slice(14, 16)));
    }
    expect(found.minute.size).toBe(60);
    expect([...found.narrow].sort()).toEqual([10, 11, 12, 13, 14, 15, 16, 17, 18, 19]);
    // A bare H never names a day that some month lacks.
    expect(Math.max(...found.day)).toBe(28);
    expect(found.day.size).toBe(28);
  });

  test('steps keep their distance from a seeded start', () => {
    for (const seed of ['a', 'b', 'c']) {
      const [first = 0, ...rest] = [...new Set(minutes('H/15 * * * *', seed))].sort((a, b) => a - b);
      expect(first).toBeLessThan(15);
      expect(rest).toEqual([first + 15, first + 30, first + 45]);
    }
  });

  test('~ as in cronie', () => {
    for (const seed of ['a', 'b', 'c', 'd', 'e']) {
      for (const minute of minutes('5~9 * * * *', seed)) expect([5, 6, 7, 8, 9]).toContain(minute);
      for (const minute of minutes('~4 * * * *', seed)) expect([0, 1, 2, 3, 4]).toContain(minute);
      for (const minute of minutes('57~ * * * *', seed)) expect([57, 58, 59]).toContain(minute);
    }
  });

  test('minute and hour differ from each other', () => {
    const equal = Array.from(
      { length: 500 },
      (_, i) => times('H(0-23) H * * *', 1, AFTER, `q:${i}`)[0] ?? '',
    ).filter((time) => time.slice(11, 13) === time.slice(14, 16));
    expect(equal.length).toBeLessThan(50);
  });
});

describe('warnings', () => {
  const warnings = (definition: TimingDefinition) => compileSchedule(definition).warnings;

  test('numbers of weekdays beside ? name the day', () => {
    expect(warnings({ cron: '0 0 12 ? * 2' })).toEqual([
      'day of week: 2 is Tuesday here (Quartz: Monday); Quartz counts from 1 = Sunday, so write the name',
    ]);
    expect(warnings({ cron: '0 15 10 ? * 2-6' })[0]).toContain('6 is Saturday here (Quartz: Friday)');
    expect(warnings({ cron: '0 15 10 ? * 5L' })[0]).toContain('5 is Friday here (Quartz: Thursday)');
    expect(warnings({ cron: '0 15 10 ? * 6#3' })[0]).not.toContain('3 is');
    expect(warnings({ cron: '0 0 12 ? * TUE' })).toEqual([]);
    expect(warnings({ cron: '0 12 * * 2' })).toEqual([]);
  });

  test('gap and fold beside an interval', () => {
    expect(warnings({ cron: '0 */2 * * *', gap: 'edge' })[0]).toContain('gap: no effect');
    expect(warnings({ cron: '0 2 * * *', gap: 'edge' })).toEqual([]);
  });
});

function midnight(day: string): string {
  return `${day}T00:00:00`;
}
