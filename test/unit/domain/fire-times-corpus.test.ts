import { describe, expect, test } from 'vitest';
import { compileSchedule } from '../../../src/domain/fire-times.js';
import { corpusQuestions, cronCases, fireTexts, LITERAL, readCsv } from './corpus.js';

describe('the corpus of real schedules', () => {
  const questions = corpusQuestions();

  test('is whole', () => {
    expect(questions).toHaveLength(1787 + 3 * 82);
    expect(questions.every((question) => question.expected.length === 5)).toBe(true);
  });

  test('has the answers of expected.csv and of each column of dst-cases.csv', () => {
    const wrong = questions.flatMap(({ id, definition, after, expected }) => {
      const found = fireTexts(definition, after, 5);
      return found.join(' ') === expected.join(' ') ? [] : [{ id, definition, after, expected, found }];
    });
    expect(wrong).toEqual([]);
  });

  test.each(readCsv('corpus/dst-cases.csv').map((row) => [row.expr, row.kind]))('%s is %s', (expr, kind) => {
    expect(compileSchedule({ cron: expr }).kind).toBe(kind);
  });
});

describe('rows from public bug reports', () => {
  test.each(cronCases().map((row) => [`${row.entry} ${row.case}`, row] as const))('%s', (_name, row) => {
    const { expr: cron, tz, after } = row;
    const times = (policy: object, length: number) =>
      fireTexts({ cron, tz, ...policy }, after, Math.max(1, length));
    expect(times({}, row.expected.length)).toEqual(row.expected);
    expect(times(LITERAL, row.literal.length)).toEqual(row.literal);
    if (compileSchedule({ cron }).kind === 'fixed') {
      expect(times({ gap: 'edge' }, row.edge.length)).toEqual(row.edge);
      expect(times({ gap: 'shift' }, row.shift.length)).toEqual(row.shift);
    }
  });

  /** The last times before an instant, by walking forward: how missed ticks are named. */
  function lastBefore(cron: string, tz: string, before: string, from: string, count: number): string[] {
    const end = Date.parse(before);
    const times: number[] = [];
    const timing = compileSchedule({ cron, tz });
    for (let at = timing.next(Date.parse(from)); at !== undefined && at < end; at = timing.next(at))
      times.push(at);
    return times
      .slice(-count)
      .reverse()
      .map((at) => new Date(at).toISOString().replace('.000Z', 'Z'));
  }

  test.each([
    ['0 2 * * *', 'America/New_York', '2020-03-08T07:01:00Z', ['2020-03-08T07:00:00Z']],
    [
      '30 1 * * *',
      'America/New_York',
      '2025-11-02T07:00:00Z',
      ['2025-11-02T05:30:00Z', '2025-11-01T05:30:00Z'],
    ],
    ['0 7,21 * * 3,5', 'UTC', '2020-08-14T21:00:01Z', ['2020-08-14T21:00:00Z', '2020-08-14T07:00:00Z']],
    ['0 1 * * *', 'America/Denver', '2024-03-11T07:00:00Z', ['2024-03-10T08:00:00Z']],
  ])('B75: the times before %s %s at %s', (cron, tz, before, expected) => {
    for (const days of [3, 10, 40]) {
      const from = new Date(Date.parse(before) - days * 86_400_000).toISOString();
      expect(lastBefore(cron, tz, before, from, expected.length)).toEqual(expected);
    }
  });

  test.each([
    ['* * * * *', 'America/New_York', '2025-11-02T04:00:00Z', '2025-11-03T05:00:00Z', 1500],
    ['* * * * *', 'America/New_York', '2025-03-09T05:00:00Z', '2025-03-10T04:00:00Z', 1380],
    ['*/15 * * * * *', 'Europe/London', '2025-10-25T23:00:00Z', '2025-10-27T00:00:00Z', 6000],
    ['* * * * *', 'Australia/Lord_Howe', '2025-04-05T13:00:00Z', '2025-04-06T13:30:00Z', 1470],
    ['* * * * *', 'Australia/Lord_Howe', '2025-10-04T13:30:00Z', '2025-10-05T13:00:00Z', 1410],
    ['* * * * *', 'Antarctica/Troll', '2025-10-25T22:00:00Z', '2025-10-27T00:00:00Z', 1560],
    ['* * * * *', 'Antarctica/Troll', '2025-03-30T00:00:00Z', '2025-03-30T22:00:00Z', 1320],
  ])('B65: %s %s runs from %s to %s on one local day %i times', (cron, tz, from, to, count) => {
    const timing = compileSchedule({ cron, tz });
    const end = Date.parse(to);
    let times = 0;
    for (let at = timing.next(Date.parse(from) - 1); at !== undefined && at < end; at = timing.next(at))
      times += 1;
    expect(times).toBe(count);
  });

  test('B67: a gap does not end a schedule that has an end date', () => {
    const between = { startDate: '2025-03-28T23:59:59Z', endDate: '2025-03-31T00:00:00Z', tz: 'Europe/Rome' };
    const times = (cron: string, gap?: 'edge') =>
      fireTexts({ cron, gap, ...between }, '2025-01-01T00:00:00Z', 9);
    expect(times('30 2 * * 7')).toEqual(['2025-03-30T01:30:00Z']);
    expect(times('30 2 * * 7', 'edge')).toEqual(['2025-03-30T01:00:00Z']);
    expect(times('0 3 * * 7')).toEqual(['2025-03-30T01:00:00Z']);
    expect(times('0 5 * * 7')).toEqual(['2025-03-30T03:00:00Z']);
  });
});
