import { describe, expect, test } from 'vitest';
import {
  calendarLine,
  checkCalendarName,
  MOST_CALENDAR_ENTRIES,
  readCalendar,
} from '../../../src/domain/calendar.js';

describe('a calendar from a plain list', () => {
  test('one date a line, ranges, comments, empty lines, a byte order mark and CRLF', () => {
    const text =
      '\uFEFF# England and Wales\r\n\r\n2026-12-25  # Christmas Day # really\r\n 2026-12-28..2026-12-31\r\n2026-04-03';
    expect(readCalendar(text)).toEqual([
      { from: '2026-04-03', to: '2026-04-03' },
      { from: '2026-12-25', to: '2026-12-25', label: 'Christmas Day # really' },
      { from: '2026-12-28', to: '2026-12-31' },
    ]);
  });

  test('lines and objects may be given as a list', () => {
    expect(
      readCalendar([
        '2026-12-26',
        { from: '2026-12-25', label: 'Christmas Day' },
        { from: '2026-01-01', to: '2026-01-02' },
      ]),
    ).toEqual([
      { from: '2026-01-01', to: '2026-01-02' },
      { from: '2026-12-25', to: '2026-12-25', label: 'Christmas Day' },
      { from: '2026-12-26', to: '2026-12-26' },
    ]);
  });

  test('what is read is written as it was', () => {
    const lines = ['2026-12-25  # Christmas Day', '2026-12-28..2026-12-31'];
    const entries = readCalendar(lines);
    expect(entries.map(calendarLine)).toEqual(lines);
    expect(readCalendar(entries)).toEqual(entries);
  });

  test.each<[Parameters<typeof readCalendar>[0], string, string]>([
    ['2026-12-25\n2026-02-30', 'line 2', 'has no day 30'],
    ['25/12/2026', 'line 1', 'is not a date'],
    ['2026-12-25, 2026-12-26', 'line 1', 'is not a date'],
    ['2026-12-25..', 'line 1', 'is not a date'],
    ['2026-12-25..2026-12-26..2026-12-27', 'line 1', 'is not a date'],
    ['2026-12-26..2026-12-25', 'line 1', 'lies before 2026-12-26'],
    ['BEGIN:VCALENDAR', 'line 1', 'is not a date'],
    ['2026-12-25\n# again\n2026-12-25 # Christmas', 'line 3', 'repeats line 1'],
    ['# nothing yet\n', 'dates', 'hold no date'],
    [[], 'dates', 'hold no date'],
    [[{ from: '2026-12-25' }, '2026-12-25'], 'dates[1]', 'repeats dates[0]'],
    [`2026-12-25 # ${'x'.repeat(201)}`, 'line 1', 'is no short label'],
    [[{ from: '2026-12-25', label: 'a\nb' }], 'dates[0]', 'is no short label'],
    [[{ from: '2026-12-25', label: '\uD800' }], 'dates[0]', 'is no short label'],
    [[null as never], 'dates[0]', 'is not a date'],
    [[{ from: '2026-12-25', date: 'x' } as never], 'dates[0].date', 'is no option'],
    [5 as never, 'dates', 'are no list'],
  ])('%j is refused', (dates, field, message) => {
    expect(() => readCalendar(dates)).toThrow(
      expect.objectContaining({ code: 'INVALID_OPTION', field, message: expect.stringContaining(message) }),
    );
  });

  test(`${MOST_CALENDAR_ENTRIES} entries are taken, one more is not`, () => {
    const dates = Array.from({ length: MOST_CALENDAR_ENTRIES + 1 }, (_, i) =>
      new Date(i * 86_400_000).toISOString().slice(0, 10),
    );
    expect(readCalendar(dates.slice(1))).toHaveLength(MOST_CALENDAR_ENTRIES);
    expect(() => readCalendar(dates)).toThrow(/are 10001 entries/);
  });
});

test('names are short words', () => {
  expect(checkCalendarName('UK-holidays_2026.v1')).toBe('UK-holidays_2026.v1');
  expect(() => checkCalendarName('uk holidays')).toThrow(
    expect.objectContaining({ code: 'INVALID_ID', field: 'calendar' }),
  );
});
