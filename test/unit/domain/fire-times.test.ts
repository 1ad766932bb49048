import { describe, expect, test } from 'vitest';
import { compileSchedule, following } from '../../../src/domain/fire-times.js';
import type { TimingDefinition } from '../../../src/domain/fire-times-definition.js';
import { nextFireTimes } from '../../../src/domain/next-fire-times.js';
import { fireTexts } from './corpus.js';

const DAY = 86_400_000;
const T0 = Date.parse('2026-01-15T00:00:00Z');

function next(definition: TimingDefinition, after: string | number): string | undefined {
  const time = compileSchedule(definition, { createdAt: T0 }).next(new Date(after).getTime());
  return time === undefined ? undefined : new Date(time).toISOString();
}

describe('asking', () => {
  test('answers are strictly after the start, to the millisecond', () => {
    const { length } = nextFireTimes({ cron: '* * * * *' }, { after: T0, count: 3 });
    expect(length).toBe(3);
    expect(next({ cron: '0 0 * * *' }, T0)).toBe('2026-01-16T00:00:00.000Z');
    expect(next({ cron: '0 0 * * *' }, T0 - 1)).toBe('2026-01-15T00:00:00.000Z');
    expect(next({ cron: '* * * * * *' }, T0 + 500)).toBe('2026-01-15T00:00:01.000Z');
    expect(next({ cron: '* * * * * *' }, T0 + 0.5)).toBe('2026-01-15T00:00:01.000Z');
  });

  test('the start may be a Date, ms or a text with its offset', () => {
    for (const after of [
      T0,
      new Date(T0),
      '2026-01-15T00:00:00Z',
      '2026-01-15T02:00+02:00',
      '2026-01-14T19:00:00.000-0500',
    ]) {
      expect(nextFireTimes({ cron: '5 0 * * *' }, { after })).toEqual([new Date('2026-01-15T00:05:00Z')]);
    }
  });

  test('UTC unless a zone is named', () => {
    expect(next({ cron: '0 9 * * *' }, T0)).toBe('2026-01-15T09:00:00.000Z');
    expect(compileSchedule({ cron: '0 9 * * *' }).tz).toBe('UTC');
    expect(next({ cron: '0 9 * * *', tz: 'Asia/Kathmandu' }, T0)).toBe('2026-01-15T03:15:00.000Z');
  });

  test('times are given from 1970 to the end of 9999', () => {
    expect(next({ cron: '0 0 1 1 *' }, -1)).toBe('1970-01-01T00:00:00.000Z');
    expect(next({ cron: '0 0 1 1 *' }, -8.64e15)).toBe('1970-01-01T00:00:00.000Z');
    expect(fireTexts({ cron: '0 0 1 12 *', tz: 'America/New_York' }, '9998-06-01T00:00:00Z', 5)).toEqual([
      '9998-12-01T05:00:00Z',
      '9999-12-01T05:00:00Z',
    ]);
    expect(next({ cron: '59 59 23 31 12 *' }, '9999-06-01T00:00:00Z')).toBe('9999-12-31T23:59:59.000Z');
    expect(next({ cron: '* * * * * *' }, '9999-12-31T23:59:59Z')).toBeUndefined();
    expect(next({ cron: '* * * * * *' }, 8.64e15)).toBeUndefined();
    expect(next({ every: '1h' }, '9999-12-31T23:30:00Z')).toBeUndefined();
    expect(next({ cron: '0 2 9-15 3 0', tz: 'America/New_York' }, '9000-01-01T00:00:00Z')).toBeDefined();
  });

  test('B85: daylight saving time goes on after 2037, for ever', () => {
    for (const year of [2038, 2100, 2500, 9998]) {
      const times = fireTexts({ cron: '0 12 1 1,7 *', tz: 'America/New_York' }, `${year}-01-01T00:00:00Z`, 2);
      expect(times).toEqual([`${year}-01-01T17:00:00Z`, `${year}-07-01T16:00:00Z`]);
    }
  });

  test('B01 d, B21: far and rare times', () => {
    expect(next({ cron: '0 4 1 * *' }, T0)).toBe('2026-02-01T04:00:00.000Z');
    expect(fireTexts({ cron: '0 3 * * 0' }, '2026-01-15T00:00:00Z', 2)).toEqual([
      '2026-01-18T03:00:00Z',
      '2026-01-25T03:00:00Z',
    ]);
  });

  test('B07: the time after a scheduled time is the same, however early or late one asks', () => {
    const timing = compileSchedule({ cron: '*/10 * * * *' });
    expect(timing.next(Date.parse('2026-01-15T17:20:00Z'))).toBe(Date.parse('2026-01-15T17:30:00Z'));
    expect(timing.next(Date.parse('2026-01-15T17:30:00Z'))).toBe(Date.parse('2026-01-15T17:40:00Z'));
  });

  test('B10, B12: the time after an edit is that of the new definition', () => {
    const eight = { cron: '0 8 * * *', tz: 'America/New_York' };
    expect(next(eight, '2025-10-15T14:00:30Z')).toBe('2025-10-16T12:00:00.000Z');
    expect(next({ ...eight, cron: '* * * * *' }, '2025-10-15T14:10:30Z')).toBe('2025-10-15T14:11:00.000Z');
    expect(next({ cron: '0 5 * * *' }, '2025-03-14T12:00:00Z')).toBe('2025-03-15T05:00:00.000Z');
  });
});

describe('gap and fold', () => {
  const gapDay = { cron: '0,30 2 * * *', tz: 'America/New_York' };
  const foldDay = { cron: '0,30 1 * * *', tz: 'America/New_York' };

  test.each([
    [undefined, ['2026-03-08T07:00:00Z', '2026-03-08T07:30:00Z', '2026-03-09T06:00:00Z']],
    ['shift', ['2026-03-08T07:00:00Z', '2026-03-08T07:30:00Z', '2026-03-09T06:00:00Z']],
    ['edge', ['2026-03-08T07:00:00Z', '2026-03-09T06:00:00Z', '2026-03-09T06:30:00Z']],
    ['skip', ['2026-03-09T06:00:00Z', '2026-03-09T06:30:00Z', '2026-03-10T06:00:00Z']],
  ] as const)('gap: %s', (gap, expected) => {
    expect(fireTexts({ ...gapDay, gap }, '2026-03-07T12:00:00Z', 3)).toEqual(expected);
  });

  test.each([
    [
      undefined,
      ['2026-11-01T05:00:00Z', '2026-11-01T05:30:00Z', '2026-11-02T06:00:00Z', '2026-11-02T06:30:00Z'],
    ],
    [
      'first',
      ['2026-11-01T05:00:00Z', '2026-11-01T05:30:00Z', '2026-11-02T06:00:00Z', '2026-11-02T06:30:00Z'],
    ],
    [
      'last',
      ['2026-11-01T06:00:00Z', '2026-11-01T06:30:00Z', '2026-11-02T06:00:00Z', '2026-11-02T06:30:00Z'],
    ],
    [
      'both',
      ['2026-11-01T05:00:00Z', '2026-11-01T05:30:00Z', '2026-11-01T06:00:00Z', '2026-11-01T06:30:00Z'],
    ],
  ] as const)('fold: %s', (fold, expected) => {
    expect(fireTexts({ ...foldDay, fold }, '2026-10-31T12:00:00Z', 4)).toEqual(expected);
  });

  test('an interval ignores both', () => {
    for (const cron of ['30 * * * *', '30 */2 * * *', '30 0-23 * * *', '30 00-23/3 * * *']) {
      const plain = fireTexts({ cron, tz: 'America/New_York' }, '2026-03-08T00:00:00Z', 20);
      for (const gap of ['shift', 'edge', 'skip'] as const) {
        for (const fold of ['first', 'last', 'both'] as const) {
          expect(fireTexts({ cron, tz: 'America/New_York', gap, fold }, '2026-03-08T00:00:00Z', 20)).toEqual(
            plain,
          );
        }
      }
    }
  });

  test('only the hour field, as written, makes an interval', () => {
    const kind = (cron: string) => compileSchedule({ cron }, { seed: 'q:a' }).kind;
    for (const hour of ['*', '*/1', '*/5', '0-23', '0-23/2', '00-23'])
      expect(kind(`0 ${hour} * * *`)).toBe('interval');
    for (const hour of ['0', '0-22', '1-23', '0/2', '*,5', 'H', 'H/1', '~', '0,1'])
      expect(kind(`0 ${hour} * * *`)).toBe('fixed');
    expect(kind('0 0 * * * *')).toBe('interval');
    expect(compileSchedule({ crons: ['0 * * * *', '0 5 * * *'] }).kind).toBe('mixed');
  });

  test('a whole day that a zone left out moves on by a day, and two names for one instant run once', () => {
    // Samoa had no 30 December 2011.
    const samoa = { cron: '0 9 * * *', tz: 'Pacific/Apia' };
    expect(fireTexts(samoa, '2011-12-29T00:00:00Z', 3)).toEqual([
      '2011-12-29T19:00:00Z',
      '2011-12-30T19:00:00Z',
      '2011-12-31T19:00:00Z',
    ]);
    expect(fireTexts({ cron: '0 9 30 12 *', tz: 'Pacific/Apia' }, '2011-12-29T00:00:00Z', 1)).toEqual([
      '2011-12-30T19:00:00Z',
    ]);
    expect(fireTexts({ ...samoa, gap: 'edge' }, '2011-12-29T20:00:00Z', 2)).toEqual([
      '2011-12-30T10:00:00Z',
      '2011-12-30T19:00:00Z',
    ]);
    expect(
      fireTexts({ cron: '0 9 30 12 *', tz: 'Pacific/Apia', gap: 'skip' }, '2011-12-29T00:00:00Z', 1),
    ).toEqual(['2012-12-29T19:00:00Z']);
  });
});

describe('several expressions', () => {
  test('fire when any of them does, once if several do', () => {
    const definition = { crons: ['0 9 * * 1-5', '0 10 * * 6', '0 9 1 * *'], tz: 'Europe/Berlin' };
    expect(fireTexts(definition, '2026-05-29T00:00:00Z', 4)).toEqual([
      '2026-05-29T07:00:00Z',
      '2026-05-30T08:00:00Z',
      '2026-06-01T07:00:00Z',
      '2026-06-02T07:00:00Z',
    ]);
  });
});

describe('every', () => {
  test('B01 e, B21: from the creation, which is no tick itself, without drift', () => {
    expect(next({ every: 5_702_400_000 }, T0)).toBe(new Date(T0 + 66 * DAY).toISOString());
    const week = compileSchedule({ every: 604_800_000 }, { createdAt: T0 });
    expect(week.next(T0 - 5)).toBe(T0 + 7 * DAY);
    for (const asked of [T0, T0 + 1, T0 + 7 * DAY - 1]) expect(week.next(asked)).toBe(T0 + 7 * DAY);
    expect(week.next(T0 + 7 * DAY)).toBe(Date.parse('2026-01-29T00:00:00Z'));
  });

  test('from an anchor, which is the first tick if still to come', () => {
    const hourly = { every: '1h', anchor: '2026-02-01T00:20:00Z' };
    expect(next(hourly, T0)).toBe('2026-02-01T00:20:00.000Z');
    expect(next(hourly, '2026-02-01T00:20:00Z')).toBe('2026-02-01T01:20:00.000Z');
    expect(next({ every: '1h', anchor: 0 }, '2026-02-01T00:20:00Z')).toBe('2026-02-01T01:00:00.000Z');
    expect(next({ every: '1h', anchor: 0, phase: '10m' }, '2026-02-01T00:20:00Z')).toBe(
      '2026-02-01T01:10:00.000Z',
    );
  });

  test('is found by arithmetic, however far the anchor', () => {
    const everyMs = compileSchedule({ every: 1, anchor: 0 });
    expect(everyMs.next(253_402_300_000_000)).toBe(253_402_300_000_001);
    expect(everyMs.latest(0, 253_402_300_000_000)).toBe(253_402_300_000_000);
  });
});

describe('start and end', () => {
  test('a tick exactly at either fires', () => {
    const definition = {
      cron: '0 * * * *',
      startDate: '2026-02-01T10:00:00Z',
      endDate: '2026-02-01T12:00:00Z',
    };
    expect(fireTexts(definition, '2026-01-01T00:00:00Z', 9)).toEqual([
      '2026-02-01T10:00:00Z',
      '2026-02-01T11:00:00Z',
      '2026-02-01T12:00:00Z',
    ]);
  });

  test('limit is checked and handed on; who stores the schedule counts', () => {
    expect(compileSchedule({ cron: '0 * * * *', limit: 2 }).limit).toBe(2);
    const timing = compileSchedule({ cron: '0 * * * *', limit: 2 });
    expect(following(timing, Date.parse('2026-01-01T00:00:00Z'), 3)).toHaveLength(3);
  });
});

describe('the latest time in a stretch', () => {
  test('is the last one of a walk', () => {
    for (const cron of ['*/7 * * * *', '30 2 * * *', '0 0 29 2 *', '30 1 * * 0', '*/30 1-2 * * *']) {
      for (const tz of ['UTC', 'America/New_York', 'Australia/Lord_Howe']) {
        const timing = compileSchedule({ cron, tz });
        const from = Date.parse('2026-10-30T00:00:00Z');
        for (const hours of [0, 1, 26, 53, 100, 7_000]) {
          const until = from + hours * 3_600_000;
          let last: number | undefined;
          for (let at = timing.next(from); at !== undefined && at <= until; at = timing.next(at)) last = at;
          expect(timing.latest(from, until)).toBe(last);
        }
      }
    }
  });

  test('B18: 101 missed minutes', () => {
    const timing = compileSchedule({ cron: '* * * * *' });
    const down = Date.parse('2026-01-15T12:00:30Z');
    const up = Date.parse('2026-01-15T13:41:30Z');
    expect(timing.next(down)).toBe(Date.parse('2026-01-15T12:01:00Z'));
    expect(timing.latest(down, up)).toBe(Date.parse('2026-01-15T13:41:00Z'));
    expect(timing.next(up)).toBe(Date.parse('2026-01-15T13:42:00Z'));
  });

  test('of an every-second schedule after a year takes milliseconds', () => {
    const timing = compileSchedule({ cron: '* * * * * *', tz: 'Europe/London' });
    const started = performance.now();
    expect(timing.latest(T0, T0 + 365 * DAY + 999)).toBe(T0 + 365 * DAY);
    expect(performance.now() - started).toBeLessThan(100);
  });
});

describe('canonical text', () => {
  const canonical = (definition: TimingDefinition) => compileSchedule(definition).canonical;

  test('is equal for definitions that mean the same', () => {
    const monday = canonical({ cron: '0 9 * * MON-FRI' });
    expect(canonical({ pattern: ' 00 09 * * 1,2,3,4,5', tz: 'UTC', gap: 'shift' })).toBe(monday);
    expect(canonical({ crons: ['0 9 * * 1-3', '0 5 * * *'] })).toBe(
      canonical({ crons: ['@daily', '0 9 * * 1-3'].map((cron) => (cron === '@daily' ? '0 5 * * *' : cron)) }),
    );
    expect(canonical({ every: '1h' })).toBe(canonical({ every: 3_600_000 }));
    expect(canonical({ cron: '0 * * * *', gap: 'edge' })).toBe(canonical({ cron: '0 * * * *' }));
  });

  test('differs for those that do not', () => {
    const all = [
      { cron: '0 9 * * *' },
      { cron: '0 9 * * *', tz: 'Europe/London' },
      { cron: '0 9 * * *', gap: 'skip' },
      { cron: '0 9 * * *', fold: 'both' },
      { cron: '0 9 * * *', limit: 5 },
      { cron: '0 9 * * *', startDate: 0 },
      { cron: '0 9 * * *', endDate: 5 },
      { cron: '0 */1 * * *' },
      { cron: '0 0-23,5 * * *' },
      { every: '1d' },
      { every: '1d', anchor: 0 },
      { every: '1d', anchor: 0, phase: '1h' },
    ] as const;
    expect(new Set(all.map(canonical)).size).toBe(all.length);
  });
});

describe('explanations', () => {
  const explain = (definition: TimingDefinition, after: string, count = 2) =>
    compileSchedule(definition).explainNext(Date.parse(after), count);
  const newYork = (cron: string, policy: object = {}) => ({ cron, tz: 'America/New_York', ...policy });

  test('show the wall clock with its offset', () => {
    const [time] = explain({ cron: '0 9 * * *', tz: 'Asia/Kathmandu' }, '2026-01-15T00:00:00Z', 1);
    expect(time).toEqual({
      at: Date.parse('2026-01-15T03:15:00Z'),
      wallClock: '2026-01-15T09:00:00+05:45',
      notes: [],
    });
  });

  test('mark a time moved out of a gap', () => {
    const [moved, plain] = explain(newYork('30 2 * * *'), '2026-03-07T12:00:00Z');
    expect(moved?.wallClock).toBe('2026-03-08T03:30:00-04:00');
    expect(moved?.notes).toEqual([
      {
        change: 'gap',
        outcome: 'shifted',
        named: '2026-03-08T02:30:00',
        text: 'the clock skips 2026-03-08 02:30: moved on by the gap',
      },
    ]);
    expect(plain?.notes).toEqual([]);
    const [edge] = explain(newYork('30 2 * * *', { gap: 'edge' }), '2026-03-07T12:00:00Z');
    expect(edge?.notes).toMatchObject([{ outcome: 'at-change', named: '2026-03-08T02:30:00' }]);
    const [unmoved] = explain(newYork('0 3 * * *'), '2026-03-07T12:00:00Z');
    expect(unmoved).toMatchObject({ wallClock: '2026-03-08T03:00:00-04:00', notes: [] });
  });

  test('mark what a gap left out on the time after it', () => {
    const [after] = explain(newYork('30 2 * * *', { gap: 'skip' }), '2026-03-07T12:00:00Z');
    expect(after).toMatchObject({
      wallClock: '2026-03-09T02:30:00-04:00',
      notes: [{ change: 'gap', outcome: 'skipped', named: '2026-03-08T02:30:00' }],
    });
    const interval = explain(newYork('30 */2 * * *'), '2026-03-08T05:00:00Z');
    expect(interval[1]).toMatchObject({ notes: [{ outcome: 'skipped', named: '2026-03-08T02:30:00' }] });
  });

  test('mark the passes of a repeated hour', () => {
    const outcomes = (policy: object, cron = '30 1 * * *') =>
      explain(newYork(cron, policy), '2026-11-01T04:00:00Z').map((time) =>
        time.notes.map((note) => note.outcome),
      );
    expect(outcomes({})).toEqual([['first-pass'], []]);
    expect(outcomes({ fold: 'last' })).toEqual([['second-pass'], []]);
    expect(outcomes({ fold: 'both' })).toEqual([['first-pass'], ['second-pass']]);
    expect(outcomes({}, '30 * * * *')).toEqual([[], ['first-pass']]);
  });
});
