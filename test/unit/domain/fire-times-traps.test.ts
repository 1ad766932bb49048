import { describe, expect, test } from 'vitest';
import { compileSchedule } from '../../../src/domain/fire-times.js';
import { readCsv } from './corpus.js';

const HOUR = 3_600_000;

function walk(cron: string, tz: string, from: string, to: string): string[] {
  const timing = compileSchedule({ cron, tz });
  const times: string[] = [];
  const end = Date.parse(to);
  for (let at = timing.next(Date.parse(from)); at !== undefined && at < end; at = timing.next(at)) {
    times.push(new Date(at).toISOString().slice(11, 16));
  }
  return times;
}

/** The first time after each of many starts must be the first of the walk that lies after it. */
function expectOneAnswer(cron: string, tz: string, from: number, to: number, step: number): void {
  const timing = compileSchedule({ cron, tz });
  const walked: number[] = [];
  for (let at = timing.next(from); at !== undefined; at = timing.next(at)) {
    walked.push(at);
    if (at >= to) break;
  }
  for (let start = from; start < to; start += step) {
    const answer = timing.next(start);
    const expected = walked.find((at) => at > start);
    if (answer !== expected)
      expect({ cron, tz, start, answer }).toEqual({ cron, tz, start, answer: expected });
  }
}

describe('traps that cron libraries fall into', () => {
  test('T1: Chatham in autumn goes forward', () => {
    expect(walk('*/15 * * * *', 'Pacific/Chatham', '2026-04-04T12:59:00Z', '2026-04-04T14:20:00Z')).toEqual([
      '13:00',
      '13:15',
      '13:30',
      '13:45',
      '14:00',
      '14:15',
    ]);
  });

  test('T2, T3: Lord Howe, whose clock changes by half an hour', () => {
    const quarters = walk(
      '*/15 * * * *',
      'Australia/Lord_Howe',
      '2026-04-04T14:29:00Z',
      '2026-04-04T15:46:00Z',
    );
    expect(quarters).toEqual(['14:30', '14:45', '15:00', '15:15', '15:30', '15:45']);
    expect(
      walk('*/15 * * * *', 'Australia/Lord_Howe', '2026-10-03T15:14:00Z', '2026-10-03T15:46:00Z'),
    ).toEqual(['15:15', '15:30', '15:45']);
    expect(walk('0 8 * * *', 'Australia/Lord_Howe', '2026-04-04T14:00:00Z', '2026-04-06T00:00:00Z')).toEqual([
      '21:30',
      '21:30',
    ]);
    // 02:00 to 02:30 is skipped, 02:30 is not.
    expect(walk('30 2 * * *', 'Australia/Lord_Howe', '2026-10-03T00:00:00Z', '2026-10-04T00:00:00Z')).toEqual(
      ['15:30'],
    );
    expect(walk('59 1 * * *', 'Australia/Lord_Howe', '2026-04-04T13:00:00Z', '2026-04-05T13:00:00Z')).toEqual(
      ['14:59'],
    );
  });

  test('T4 to T6: what is asked after a restart in a changed hour is what was asked before it', () => {
    const minute = 60_000;
    const fold = Date.parse('2026-11-01T03:00:00Z');
    for (const tz of ['America/New_York', 'America/Havana']) {
      for (const cron of ['30 1 * * *', '30 0 * * *', '0 1 * * *', '*/10 1 * * *', '*/30 * * * *']) {
        expectOneAnswer(cron, tz, fold, fold + 6 * HOUR, minute);
      }
    }
    const gap = Date.parse('2026-03-08T04:00:00Z');
    for (const cron of ['30 2 * * *', '0 2 * * *', '59 2 * * *', '*/10 2 * * *', '15 2,3 * * *']) {
      expectOneAnswer(cron, 'America/New_York', gap, gap + 6 * HOUR, minute);
      expectOneAnswer(cron, 'America/Havana', gap, gap + 6 * HOUR, minute);
    }
  });

  test('T7: a gap adds no runs to an interval and moves each of a fixed hour once', () => {
    expect(walk('0 */2 * * *', 'America/New_York', '2026-03-08T04:59:00Z', '2026-03-08T10:01:00Z')).toEqual([
      '05:00',
      '08:00',
      '10:00',
    ]);
    expect(walk('0 */6 * * *', 'Africa/Cairo', '2026-04-23T15:00:00Z', '2026-04-24T04:00:00Z')).toEqual([
      '16:00',
      '03:00',
    ]);
    expect(walk('*/10 2 * * *', 'America/New_York', '2026-03-08T05:00:00Z', '2026-03-08T12:00:00Z')).toEqual([
      '07:00',
      '07:10',
      '07:20',
      '07:30',
      '07:40',
      '07:50',
    ]);
    // 02:30 moves to 03:30, which is named too: one run.
    expect(walk('30 2,3 * * *', 'America/New_York', '2026-03-08T05:00:00Z', '2026-03-08T12:00:00Z')).toEqual([
      '07:30',
    ]);
  });

  test('T8: a fold drops no runs', () => {
    expect(
      walk('*/30 1-2 * * *', 'America/New_York', '2026-11-01T04:59:00Z', '2026-11-01T12:00:00Z'),
    ).toEqual(['05:00', '05:30', '07:00', '07:30']);
    expect(walk('0 */6 * * *', 'America/Havana', '2026-11-01T03:00:00Z', '2026-11-01T12:00:00Z')).toEqual([
      '04:00',
      '05:00',
      '11:00',
    ]);
  });

  test('every expression of the corpus, asked each ten minutes around five clock changes', () => {
    const crons = [...new Set(readCsv('corpus/dst-cases.csv').map((row) => `${row.expr}`))];
    const changes = [
      ['Pacific/Chatham', '2026-04-04T12:00:00Z'],
      ['Australia/Lord_Howe', '2026-10-03T13:00:00Z'],
      ['America/New_York', '2026-11-01T04:00:00Z'],
      ['Africa/Cairo', '2026-04-23T20:00:00Z'],
      ['Antarctica/Troll', '2026-03-29T00:00:00Z'],
    ] as const;
    for (const [tz, from] of changes) {
      for (const cron of crons)
        expectOneAnswer(cron, tz, Date.parse(from), Date.parse(from) + 5 * HOUR, 10 * 60_000);
    }
  });

  test('no answer blocks the process', () => {
    const started = performance.now();
    for (const tz of ['Australia/Lord_Howe', 'America/New_York', 'Pacific/Chatham']) {
      for (const cron of ['0 0 29 2 *', '0 0 31 2 *', '0 0 29 2 */7', '0 2 * 3 SUN#2']) {
        compileSchedule({ cron: cron.replace('*/7', '*/6'), tz, gap: 'skip' }).next(0);
      }
    }
    // A search through 400 years of one zone takes tens of ms, once; cron-parser took 1.3 s for one answer.
    expect(performance.now() - started).toBeLessThan(3_000);
  });
});
