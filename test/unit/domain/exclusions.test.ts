import { describe, expect, test } from 'vitest';
import type { Calendar, CalendarSet } from '../../../src/domain/calendar.js';
import { readCalendar } from '../../../src/domain/calendar.js';
import { compileExclusions } from '../../../src/domain/exclusions.js';
import { calendarsOf, checkExclude, checkOnExcluded } from '../../../src/domain/exclusions-definition.js';
import { withExclusions } from '../../../src/domain/exclusions-timing.js';
import { compileSchedule } from '../../../src/domain/fire-times.js';
import type { TimingDefinition } from '../../../src/domain/fire-times-definition.js';

const at = (text: string) => Date.parse(text);
const iso = (ms: number | undefined) => (ms === undefined ? undefined : new Date(ms).toISOString());

function calendars(...list: [name: string, version: number, dates: string][]): CalendarSet {
  return new Map(
    list.map(([name, version, dates]): [string, Calendar] => [
      name,
      { name, version, entries: readCalendar(dates) },
    ]),
  );
}

function excluding(
  definition: TimingDefinition & { exclude: unknown[]; onExcluded?: 'skip' | 'next' },
  set?: CalendarSet,
) {
  const { exclude, onExcluded, ...timing } = definition;
  const compiled = compileSchedule(timing, { createdAt: at('2026-01-01T00:00:00Z') });
  return withExclusions(
    compiled,
    compileExclusions(checkExclude(exclude) ?? [], compiled.tz, set),
    onExcluded,
  );
}

function timesAfter(
  timing: ReturnType<typeof excluding>,
  from: string,
  count: number,
): (string | undefined)[] {
  const times: (string | undefined)[] = [];
  let time: number | undefined = at(from);
  for (let i = 0; i < count && time !== undefined; i++) {
    time = timing.next(time);
    times.push(iso(time));
  }
  return times;
}

describe('what exclude may hold', () => {
  test('dates, ranges of dates and of instants, and calendars are stored as texts and ms', () => {
    expect(
      checkExclude([
        '2026-12-25',
        { from: '2026-12-28', to: '2026-12-31' },
        { from: '2027-01-01T00:00:00+01:00', to: new Date(at('2027-01-02T00:00:00Z')) },
        { calendar: 'uk-holidays' },
      ]),
    ).toEqual([
      '2026-12-25',
      { from: '2026-12-28', to: '2026-12-31' },
      { from: at('2026-12-31T23:00:00Z'), to: at('2027-01-02T00:00:00Z') },
      { calendar: 'uk-holidays' },
    ]);
    expect(checkExclude([])).toBeUndefined();
    expect(checkExclude(undefined)).toBeUndefined();
  });

  test('what is stored may be checked again', () => {
    const stored = checkExclude(['2026-12-25', { from: 5, to: 9 }, { from: '2026-01-01', to: '2026-01-02' }]);
    expect(checkExclude(stored)).toEqual(stored);
  });

  test.each<[unknown, string, string]>([
    ['2026-12-25', 'exclude', 'is no list'],
    [['2026-02-30'], 'exclude[0]', 'has no day 30; write a day from 01 to 28'],
    [['2024-02-30'], 'exclude[0]', 'write a day from 01 to 29'],
    [['2026-13-01'], 'exclude[0]', 'has no month 13'],
    [['2026-00-01'], 'exclude[0]', 'has no month 00'],
    [['1969-12-31'], 'exclude[0]', 'lies before 1970'],
    [['25.12.2026'], 'exclude[0]', 'is not a date'],
    [['2026-12-25T00:00:00Z'], 'exclude[0]', 'is not a date'],
    [[5], 'exclude[0]', 'excludes nothing'],
    [[null], 'exclude[0]', 'excludes nothing'],
    [[{}], 'exclude[0].from', 'is missing'],
    [[{ from: '2026-12-25' }], 'exclude[0].to', 'is missing'],
    [[{ from: '2026-12-26', to: '2026-12-25' }], 'exclude[0].to', 'lies before from'],
    [[{ from: '2026-12-26', to: '2026-12-27T00:00:00Z' }], 'exclude[0]', 'a date at one end only'],
    [[{ from: '2026-12-26T00:00', to: '2026-12-27T00:00Z' }], 'exclude[0].from', 'has no offset'],
    [[{ from: 1, to: 2, label: 'x' }], 'exclude[0].label', 'is no option here'],
    [[{ calendar: 'uk', from: 1 }], 'exclude[0].from', 'is no option here'],
    [['2026-12-25', '2026-12-26', '2026-12-25'], 'exclude[2]', 'repeats exclude[0]'],
    [[{ calendar: 'uk' }, { calendar: 'uk' }], 'exclude[1]', 'repeats exclude[0]'],
    [Array.from({ length: 1_001 }, (_, i) => ({ from: i, to: i })), 'exclude', 'has 1001 entries'],
  ])('%j is refused', (exclude, field, message) => {
    expect(() => checkExclude(exclude)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', field, message: expect.stringContaining(message) }),
    );
  });

  test.each(['', 'a b', '-x', 'ü', 'a:b', 'x'.repeat(65), 5])('%j is no name of a calendar', (calendar) => {
    expect(() => checkExclude([{ calendar }])).toThrow(
      expect.objectContaining({ code: 'INVALID_ID', field: 'exclude[0].calendar' }),
    );
  });

  test('onExcluded is skip or next, beside something excluded', () => {
    expect(checkOnExcluded(undefined, undefined)).toBeUndefined();
    expect(checkOnExcluded('skip', ['2026-12-25'])).toBeUndefined();
    expect(checkOnExcluded('next', ['2026-12-25'])).toBe('next');
    expect(() => checkOnExcluded('move', ['2026-12-25'])).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', field: 'onExcluded' }),
    );
    expect(() => checkOnExcluded('next', undefined)).toThrow(/belongs to exclude/);
  });

  test('the calendars that a definition names are found', () => {
    expect(calendarsOf(undefined)).toEqual([]);
    expect(calendarsOf(['2026-12-25', { calendar: 'b' }, { from: 1, to: 2 }, { calendar: 'a' }])).toEqual([
      'b',
      'a',
    ]);
  });
});

describe('what is excluded', () => {
  test('a date is excluded from its first to its last moment in the zone', () => {
    const exclusions = compileExclusions(['2026-12-25'], 'Asia/Tokyo');
    expect(exclusions.spanAt(at('2026-12-24T15:00:00Z'))).toEqual({
      start: at('2026-12-24T15:00:00Z'),
      end: at('2026-12-25T15:00:00Z'),
    });
    expect(exclusions.excludes(at('2026-12-24T14:59:59.999Z'))).toBeUndefined();
    expect(exclusions.excludes(at('2026-12-25T15:00:00Z'))).toBeUndefined();
    expect(exclusions.excludes(at('2026-12-25T14:59:59.999Z'))?.text).toBe('2026-12-25');
  });

  test('a day on which the clock is put forward or back is as long as it is', () => {
    const hours = (date: string) => {
      const span = compileExclusions([date], 'America/New_York').spanAfter(at(`${date}T00:00:00Z`));
      return ((span?.end ?? 0) - (span?.start ?? 0)) / 3_600_000;
    };
    expect([hours('2026-03-08'), hours('2026-11-01'), hours('2026-06-01')]).toEqual([23, 25, 24]);
  });

  test('a date that a zone left out holds nothing', () => {
    // Samoa went from 29 to 31 December 2011.
    expect(compileExclusions(['2011-12-30'], 'Pacific/Apia').spanAfter(0)).toBeUndefined();
    expect(compileExclusions(['2011-12-31'], 'Pacific/Apia').excludes(at('2011-12-30T10:00:00Z'))?.text).toBe(
      '2011-12-31',
    );
  });

  test('both ends of a range belong to it', () => {
    const [from, to] = [at('2026-12-24T12:00:00Z'), at('2026-12-24T18:00:00Z')];
    const exclusions = compileExclusions([{ from, to }], 'UTC');
    const excluded = [from - 1, from, to, to + 1].map((ms) => exclusions.excludes(ms) !== undefined);
    expect(excluded).toEqual([false, true, true, false]);
    expect(exclusions.excludes(from)?.text).toBe('2026-12-24T12:00:00.000Z..2026-12-24T18:00:00.000Z');
  });

  test('the first reason in the order written is given, with calendar, version and label', () => {
    const set = calendars(['uk', 3, '2026-12-25 # Christmas Day\n2026-12-26 # Boxing Day']);
    const exclude = checkExclude([{ calendar: 'uk' }, { from: '2026-12-01', to: '2026-12-31' }]) ?? [];
    const exclusions = compileExclusions(exclude, 'Europe/London', set);
    expect(exclusions.excludes(at('2026-12-25T12:00:00Z'))).toEqual({
      entry: '2026-12-25',
      calendar: 'uk',
      version: 3,
      label: 'Christmas Day',
      text: '2026-12-25 (Christmas Day) of calendar uk, version 3',
    });
    expect(exclusions.excludes(at('2026-12-24T12:00:00Z'))?.entry).toBe('2026-12-01..2026-12-31');
    expect(exclusions.versions).toEqual({ uk: 3 });
  });

  test('a calendar that is not there is an error, not an empty one', () => {
    expect(() => compileExclusions([{ calendar: 'uk' }], 'UTC')).toThrow(
      expect.objectContaining({
        code: 'NOT_FOUND',
        todo: expect.stringContaining('carillon calendars set uk'),
      }),
    );
  });

  test('schedules with the same list, zone and calendars share what was compiled', () => {
    const set = calendars(['uk', 1, '2026-12-25']);
    const first = compileExclusions([{ calendar: 'uk' }], 'UTC', set);
    expect(compileExclusions([{ calendar: 'uk' }], 'UTC', set)).toBe(first);
    expect(compileExclusions([{ calendar: 'uk' }], 'Asia/Tokyo', set)).not.toBe(first);
    const changed = calendars(['uk', 2, '2026-12-26']);
    expect(compileExclusions([{ calendar: 'uk' }], 'UTC', changed).canonical).not.toBe(first.canonical);
  });
});

describe('skip', () => {
  test('an excluded tick does not exist', () => {
    const timing = excluding({ cron: '30 2 * * *', tz: 'Europe/London', exclude: ['2026-12-25'] });
    expect(timesAfter(timing, '2026-12-23T12:00:00Z', 3)).toEqual([
      '2026-12-24T02:30:00.000Z',
      '2026-12-26T02:30:00.000Z',
      '2026-12-27T02:30:00.000Z',
    ]);
  });

  test('an interval keeps its step beyond what is excluded', () => {
    const timing = excluding({
      every: '7h',
      anchor: '2026-12-24T00:00:00Z',
      exclude: [{ from: '2026-12-24T07:00:00Z', to: '2026-12-25T04:00:00Z' }],
    });
    expect(timesAfter(timing, '2026-12-23T23:00:00Z', 3)).toEqual([
      '2026-12-24T00:00:00.000Z',
      '2026-12-25T11:00:00.000Z',
      '2026-12-25T18:00:00.000Z',
    ]);
  });

  test('a date is one of the schedule’s zone', () => {
    const timing = excluding({ cron: '0 1 * * *', tz: 'Asia/Tokyo', exclude: ['2026-12-25'] });
    expect(timesAfter(timing, '2026-12-23T00:00:00Z', 2)).toEqual([
      '2026-12-23T16:00:00.000Z',
      '2026-12-25T16:00:00.000Z',
    ]);
  });

  test('a schedule without a free time has none', () => {
    const exclude = [{ from: '1970-01-01', to: '9999-12-31' }];
    for (const onExcluded of ['skip', 'next'] as const) {
      const timing = excluding({ cron: '0 9 * * *', exclude, onExcluded });
      expect(timing.next(at('2026-01-01T00:00:00Z'))).toBeUndefined();
      expect(timing.latest(0, at('2026-01-01T00:00:00Z'))).toBeUndefined();
      expect(timing.explainNext(0, 5)).toEqual([]);
    }
    const bounded = excluding({
      cron: '0 9 * * *',
      endDate: '2026-12-31T00:00:00Z',
      exclude: [{ from: '2026-01-01', to: '2026-12-31' }],
      onExcluded: 'next',
    });
    expect(bounded.next(at('2026-01-01T00:00:00Z'))).toBeUndefined();
  });
});

describe('next', () => {
  test('a tick moves to the same time on the next date that is not excluded', () => {
    const timing = excluding({
      cron: '30 2 * * 5',
      tz: 'Europe/London',
      exclude: ['2026-12-25', '2026-12-26'],
      onExcluded: 'next',
    });
    expect(timesAfter(timing, '2026-12-18T12:00:00Z', 3)).toEqual([
      '2026-12-27T02:30:00.000Z',
      '2027-01-01T02:30:00.000Z',
      '2027-01-08T02:30:00.000Z',
    ]);
  });

  test('moved ticks and the tick of the date itself are one', () => {
    const timing = excluding({
      cron: '30 2 * * *',
      exclude: [{ from: '2026-12-24', to: '2026-12-26' }],
      onExcluded: 'next',
    });
    expect(timesAfter(timing, '2026-12-23T00:00:00Z', 3)).toEqual([
      '2026-12-23T02:30:00.000Z',
      '2026-12-27T02:30:00.000Z',
      '2026-12-28T02:30:00.000Z',
    ]);
  });

  test('a tick that the clock shifted moves to the time that the expression names', () => {
    const timing = excluding({
      cron: '30 2 * * 0',
      tz: 'America/New_York',
      exclude: ['2026-03-08'],
      onExcluded: 'next',
    });
    // 02:30 is skipped on the 8th, and would have run at 03:30.
    expect(timesAfter(timing, '2026-03-02T00:00:00Z', 2)).toEqual([
      '2026-03-09T06:30:00.000Z',
      '2026-03-15T06:30:00.000Z',
    ]);
  });

  test('two minutes excluded in the second pass of a repeated hour: both move', () => {
    // Until 01:00Z the clock is two hours ahead, then not at all: 01:00 to 03:00 are shown twice.
    const timing = excluding({
      cron: '* * * * 0',
      tz: 'Antarctica/Troll',
      exclude: [
        { from: '2024-10-27T01:01:00Z', to: '2024-10-27T01:01:30Z' },
        { from: '2024-10-27T00:59:00Z', to: '2024-10-27T00:59:30Z' },
      ],
      onExcluded: 'next',
    });
    expect(timesAfter(timing, '2024-10-27T23:59:00Z', 3)).toEqual([
      '2024-10-28T01:01:00.000Z',
      '2024-10-28T02:59:00.000Z',
      '2024-11-03T00:00:00.000Z',
    ]);
  });

  test('a tick moves into a gap by the gap policy, and passes over the date where that is to skip', () => {
    const moved = (gap: 'shift' | 'edge' | 'skip') =>
      iso(
        excluding({
          cron: '30 2 * * 6',
          tz: 'America/New_York',
          gap,
          exclude: ['2026-03-07'],
          onExcluded: 'next',
        }).next(at('2026-03-02T00:00:00Z')),
      );
    expect(moved('shift')).toBe('2026-03-08T07:30:00.000Z');
    expect(moved('edge')).toBe('2026-03-08T07:00:00.000Z');
    expect(moved('skip')).toBe('2026-03-09T06:30:00.000Z');
  });

  test('a second pass that is excluded alone moves alone', () => {
    const excludeSecond = (fold: 'first' | 'last' | 'both') =>
      timesAfter(
        excluding({
          cron: '30 1 1 11 *',
          tz: 'America/New_York',
          fold,
          exclude: [{ from: '2026-11-01T06:00:00Z', to: '2026-11-01T07:00:00Z' }],
          onExcluded: 'next',
        }),
        '2026-10-01T00:00:00Z',
        2,
      ).map((time) => time?.slice(0, 16));
    expect(excludeSecond('both')).toEqual(['2026-11-01T05:30', '2026-11-02T06:30']);
    expect(excludeSecond('first')).toEqual(['2026-11-01T05:30', '2027-11-01T05:30']);
    expect(excludeSecond('last')).toEqual(['2026-11-02T06:30', '2027-11-01T05:30']);
  });

  test('of the times in a gap only those move whose shifted instant is excluded', () => {
    const timing = excluding({
      cron: '*/20 0-4 8 3 *',
      tz: 'America/New_York',
      exclude: [{ from: '2026-03-08T07:20:00Z', to: '2026-03-08T20:00:00Z' }],
      onExcluded: 'next',
    });
    const times = timesAfter(timing, '2026-03-08T06:30:00Z', 9).map((time) => time?.slice(5, 16));
    expect(times).toEqual([
      '03-08T06:40',
      // 02:00, shifted, and 03:00 itself.
      '03-08T07:00',
      '03-09T06:20',
      '03-09T06:40',
      '03-09T07:20',
      '03-09T07:40',
      '03-09T08:00',
      '03-09T08:20',
      '03-09T08:40',
    ]);
  });

  test('several names of one excluded instant each move by their own time of day', () => {
    // 02:00, shifted, and 03:00 both stand for the instant of the change; only that one is excluded.
    const change = '2026-03-08T07:00:00Z';
    const timing = excluding({
      cron: '*/20 0-4 * * 0',
      tz: 'America/New_York',
      exclude: [{ from: change, to: change }],
      onExcluded: 'next',
    });
    const monday = timesAfter(timing, '2026-03-08T09:00:00Z', 2).map((time) => time?.slice(5, 16));
    expect(monday).toEqual(['03-09T06:00', '03-09T07:00']);
  });

  test('a time that the clock skips on the next date passes over it alone', () => {
    // Chatham skips 02:45 to 03:45 on 27 September 2026, a Sunday.
    const timing = excluding({
      cron: '0 0-4 * * 6',
      tz: 'Pacific/Chatham',
      gap: 'skip',
      exclude: ['2026-09-26'],
      onExcluded: 'next',
    });
    const local = (time: string | undefined) =>
      new Date(Date.parse(time ?? '')).toLocaleString('sv', { timeZone: 'Pacific/Chatham' }).slice(8, 16);
    expect(timesAfter(timing, '2026-09-25T00:00:00Z', 5).map(local)).toEqual([
      '27 00:00',
      '27 01:00',
      '27 02:00',
      '27 04:00',
      '28 03:00',
    ]);
  });

  test('times moved into a short gap keep their order', () => {
    // Lord Howe skips 02:00 to 02:30: 02:15 runs at 02:45, after 02:40.
    const timing = excluding({
      cron: '15,40 2 3 10 *',
      tz: 'Australia/Lord_Howe',
      exclude: ['2026-10-03'],
      onExcluded: 'next',
    });
    expect(timesAfter(timing, '2026-09-01T00:00:00Z', 2)).toEqual([
      '2026-10-03T15:40:00.000Z',
      '2026-10-03T15:45:00.000Z',
    ]);
  });

  test('a tick of the first excluded date moves past a day of 23 hours', () => {
    const timing = excluding({
      cron: '0 0 7 3 *',
      tz: 'America/New_York',
      exclude: [{ from: '2026-03-07', to: '2026-03-10' }],
      onExcluded: 'next',
    });
    expect(timesAfter(timing, '2026-03-01T00:00:00Z', 1)).toEqual(['2026-03-11T04:00:00.000Z']);
  });

  test('a range that begins at noon moves the evening first, and the morning not at all', () => {
    const timing = excluding({
      cron: '0 6,18 * * 1',
      exclude: [{ from: '2026-06-15T12:00:00Z', to: '2026-06-17T12:00:00Z' }],
      onExcluded: 'next',
    });
    expect(timesAfter(timing, '2026-06-14T00:00:00Z', 3)).toEqual([
      '2026-06-15T06:00:00.000Z',
      '2026-06-17T18:00:00.000Z',
      '2026-06-22T06:00:00.000Z',
    ]);
  });

  test('what clock changes long ago skipped does not move, and what they left does', () => {
    // Casey put its clock forward from 00:01 to 03:01 on the first Sundays of October 2020 to 2022.
    const timing = excluding({
      cron: '*/10 0-4 * 10 0#1',
      tz: 'Antarctica/Casey',
      gap: 'skip',
      exclude: [{ from: '2019-12-01', to: '2023-06-01' }],
      onExcluded: 'next',
    });
    const midnight = at('2023-06-02T00:00:00+08:00');
    const minutes = [0, ...Array.from({ length: 11 }, (_, i) => 190 + i * 10)];
    expect(timesAfter(timing, '2023-05-01T00:00:00Z', 12)).toEqual(
      minutes.map((minute) => iso(midnight + minute * 60_000)),
    );
  });

  test('nothing moves past the end, nor from before the start', () => {
    const week = { cron: '0 9 * * 5', exclude: ['2026-12-25'], onExcluded: 'next' as const };
    const ended = excluding({ ...week, endDate: '2026-12-25T23:00:00Z' });
    expect(ended.next(at('2026-12-20T00:00:00Z'))).toBeUndefined();
    const begun = excluding({ ...week, startDate: '2026-12-25T10:00:00Z' });
    expect(iso(begun.next(at('2026-12-20T00:00:00Z')))).toBe('2027-01-01T09:00:00.000Z');
  });

  test('several expressions each move their own ticks', () => {
    const timing = excluding({
      crons: ['0 9 * * 4', '0 17 * * 5'],
      exclude: [{ from: '2026-12-24', to: '2026-12-25' }],
      onExcluded: 'next',
    });
    expect(timesAfter(timing, '2026-12-23T00:00:00Z', 3)).toEqual([
      '2026-12-26T09:00:00.000Z',
      '2026-12-26T17:00:00.000Z',
      '2026-12-31T09:00:00.000Z',
    ]);
  });

  test.each([{ every: '15m' }, { crons: ['@every 5m', '0 9 * * *'] }])('%j has no time of day', (timing) => {
    expect(() => excluding({ ...timing, exclude: ['2026-12-25'], onExcluded: 'next' })).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', field: 'onExcluded' }),
    );
  });
});

describe('years of exclusion cost milliseconds', () => {
  const exclude = [{ from: '2020-01-01', to: '9000-12-31' }];

  test.each(
    (['skip', 'next'] as const).flatMap((onExcluded) =>
      ['* * * * * *', '* * * * * MON', '* * 2 * * *', '*/5 * * * *', '0 9 1 1 *'].map((cron) => ({
        cron,
        onExcluded,
      })),
    ),
  )('$cron, $onExcluded', ({ cron, onExcluded }) => {
    const timing = excluding({ cron, tz: 'America/New_York', exclude, onExcluded });
    timing.next(at('2019-12-31T00:00:00Z'));
    const started = performance.now();
    expect(iso(timing.next(at('2021-02-01T00:00:00Z')))).toMatch(/^9001-01-0/);
    expect(timing.excludedBetween(at('2021-02-01T00:00:00Z'), at('2026-02-01T00:00:00Z'))).toHaveLength(1);
    timing.explainNext(at('2021-02-01T00:00:00Z'), 3);
    timing.latest(at('2019-01-01T00:00:00Z'), at('2026-01-01T00:00:00Z'));
    expect(performance.now() - started).toBeLessThan(500);
  });

  test.each(['0 9 * * *', '* * * * * *'])('%s, whose next exclusion is thousands of years away', (cron) => {
    const timing = excluding({
      cron,
      exclude: [{ from: '2027-01-01', to: '9990-12-30' }, '9999-12-31'],
      endDate: '9999-12-31T23:59:59Z',
      onExcluded: 'next',
    });
    const started = performance.now();
    expect(iso(timing.next(at('9999-12-30T23:59:59Z')))).toBeUndefined();
    expect(iso(timing.next(at('2026-12-31T23:59:59Z')))).toMatch(/^9990-12-31T0/);
    expect(performance.now() - started).toBeLessThan(500);
  });

  test('a tick that comes every few years, beside an exclusion far away', () => {
    const timing = excluding({
      cron: '0 0 29 2 *',
      endDate: '2028-12-31T00:00:00Z',
      exclude: ['2028-02-29', '9999-01-01'],
      onExcluded: 'next',
    });
    const started = performance.now();
    expect(timesAfter(timing, '2026-01-01T00:00:00Z', 2)).toEqual(['2028-03-01T00:00:00.000Z', undefined]);
    expect(performance.now() - started).toBeLessThan(200);
  });

  test('a calendar of 10,000 dates, none of them of a weekday that the schedule names', () => {
    const dates = Array.from({ length: 10_000 }, (_, i) =>
      new Date(at('2026-01-05T00:00:00Z') + 2 * i * 86_400_000).toISOString().slice(0, 10),
    );
    const set = calendars(['alternate', 1, dates.join('\n')]);
    const timing = excluding(
      {
        cron: '* * * * * MON',
        tz: 'Europe/London',
        exclude: [{ calendar: 'alternate' }],
        onExcluded: 'next',
      },
      set,
    );
    const started = performance.now();
    let time = at('2026-01-01T00:00:00Z');
    for (let i = 0; i < 1_000; i++) time = timing.next(time) ?? Number.NaN;
    // The first Monday is excluded: its seconds run on Tuesday.
    expect(iso(time)).toBe('2026-01-06T00:16:39.000Z');
    expect(performance.now() - started).toBeLessThan(1_000);
  });
});

describe('what was excluded is explained', () => {
  const set = calendars(['uk', 3, '2026-12-25 # Christmas Day\n2026-12-28 # Boxing Day, in lieu']);

  test('each time tells what was excluded before it, and where that went', () => {
    const timing = excluding(
      {
        cron: '30 2 * * 5',
        tz: 'Europe/London',
        exclude: [{ calendar: 'uk' }, '2026-12-26', '2027-01-01'],
        onExcluded: 'next',
      },
      set,
    );
    const rows = timing.explainNext(at('2026-12-19T00:00:00Z'), 3);
    expect(
      rows.map(({ at: time, movedFrom, excluded }) => [
        iso(time),
        iso(movedFrom),
        ...excluded.map(({ text }) => text),
      ]),
    ).toEqual([
      [
        '2026-12-27T02:30:00.000Z',
        '2026-12-25T02:30:00.000Z',
        '2026-12-25T02:30:00+00:00 excluded: 2026-12-25 (Christmas Day) of calendar uk, version 3; moved to 2026-12-27T02:30:00+00:00',
      ],
      [
        '2027-01-02T02:30:00.000Z',
        '2027-01-01T02:30:00.000Z',
        '2027-01-01T02:30:00+00:00 excluded: 2027-01-01; moved to 2027-01-02T02:30:00+00:00',
      ],
      ['2027-01-08T02:30:00.000Z', undefined],
    ]);
  });

  test('many ticks of one reason are one stretch', () => {
    const timing = excluding({ cron: '* * * * *', exclude: ['2026-12-25', { calendar: 'uk' }] }, set);
    const found = timing.excludedBetween(at('2026-12-20T00:00:00Z'), at('2026-12-30T00:00:00Z'));
    expect(found).toEqual([
      {
        first: at('2026-12-25T00:00:00Z'),
        last: at('2026-12-25T23:59:00Z'),
        wallClock: '2026-12-25T00:00:00+00:00',
        reason: { entry: '2026-12-25', text: '2026-12-25' },
        movedTo: undefined,
        text: '2026-12-25T00:00:00+00:00 to 2026-12-25T23:59:00+00:00 excluded: 2026-12-25',
      },
      expect.objectContaining({ first: at('2026-12-28T00:00:00Z'), last: at('2026-12-28T23:59:00Z') }),
    ]);
    expect(timing.excludedBetween(at('2026-12-25T10:00:00Z'), at('2026-12-25T11:00:00Z'))).toEqual([
      expect.objectContaining({ first: at('2026-12-25T10:01:00Z'), last: at('2026-12-25T11:00:00Z') }),
    ]);
  });

  test('clock changes are told as ever, and two timings differ in their canonical text', () => {
    const definition = { cron: '30 2 * * *', tz: 'America/New_York', exclude: ['2026-03-07'] };
    const timing = excluding(definition);
    expect(timing.explainNext(at('2026-03-07T00:00:00Z'), 1)[0]).toMatchObject({
      wallClock: '2026-03-08T03:30:00-04:00',
      notes: [{ change: 'gap', outcome: 'shifted' }],
      excluded: [{ first: at('2026-03-07T07:30:00Z') }],
    });
    const others = [{ exclude: ['2026-03-06'] }, { onExcluded: 'next' as const }];
    for (const other of others) {
      expect(excluding({ ...definition, ...other }).canonical).not.toBe(timing.canonical);
    }
    expect(excluding(definition).canonical).toBe(timing.canonical);
  });
});
