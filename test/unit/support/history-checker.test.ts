import { expect, test } from 'vitest';
import { type ClusterHistory, type LeaderCall, violationsOf } from '../../support/history-checker.js';

const DUE = 1_000;

/** Two runs that were accepted, dispatched on time by two leaders one after the other, and started once. */
function history(over: Partial<ClusterHistory> = {}): ClusterHistory {
  return {
    accepted: new Map([
      ['a', DUE],
      ['b', DUE],
    ]),
    possible: new Map(),
    stored: new Map([
      ['a', 1],
      ['b', 1],
    ]),
    dispatched: new Map([
      ['a', [DUE]],
      ['b', [DUE + 5_000]],
    ]),
    started: new Map([
      ['a', 1],
      ['b', 1],
    ]),
    calls: [takeOver(7), pop(7, 3), takeOver(19), pop(19, 3)],
    ...over,
  };
}

function call(script: string, fence: string, over: Partial<LeaderCall>): LeaderCall {
  const claims = [
    { first: 0, last: 15, fence },
    { first: 16, last: 31, fence: '1|e|2|other' },
  ];
  return { at: DUE, client: '127.0.0.1:1', script, claims, raised: [], wrote: [], ...over };
}

function takeOver(token: number, epoch = '1|e'): LeaderCall {
  return call('take-over', `${epoch}|${token}|h${token}`, { raised: [3, 4] });
}

function pop(token: number, ...wrote: number[]): LeaderCall {
  return call('pop-due', `1|e|${token}|h${token}`, { wrote });
}

test('a history without fault has no violation', () => {
  expect(violationsOf(history())).toEqual([]);
});

test('I1 an accepted run that never entered the queue, and one that no worker was given', () => {
  const dispatched = new Map([['a', [DUE]]]);
  expect(violationsOf(history({ dispatched, started: new Map() }))).toEqual([
    'I1 lost: b',
    'I1 never started: a',
  ]);
});

test('I2 a run before its time, accepted or only possible', () => {
  const dispatched = new Map([
    ['a', [DUE - 1]],
    ['b', [DUE]],
    ['c', [DUE - 1]],
  ]);
  const possible = new Map([['c', DUE]]);
  const started = new Map([...dispatched.keys()].map((id) => [id, 1]));
  expect(violationsOf(history({ dispatched, possible, started }))).toEqual(['I2 early: a', 'I2 early: c']);
});

test('I3 a run that became visible twice, one stored twice, one started twice, one that nobody asked for', () => {
  const runs = ['a', 'b', 'c', 'd'];
  expect(
    violationsOf(
      history({
        accepted: new Map(['a', 'b', 'c'].map((id) => [id, DUE])),
        dispatched: new Map([
          ['a', [DUE, DUE + 1]],
          ['b', [DUE]],
          ['c', [DUE]],
          ['d', [DUE]],
        ]),
        stored: new Map(runs.map((id) => [id, id === 'b' ? 2 : 1])),
        started: new Map(runs.map((id) => [id, id === 'c' ? 2 : 1])),
      }),
    ),
  ).toEqual([
    'I3 enqueued twice: a',
    'I3 enqueued twice: b',
    'I3 started twice: c',
    'I3 nobody asked for: d',
  ]);
});

test('I3 a run that started without having been dispatched', () => {
  const started = new Map([
    ['a', 1],
    ['b', 1],
    ['z', 1],
  ]);
  expect(violationsOf(history({ started }))).toEqual(['I3 started without dispatch: z']);
});

test('a run whose acceptance nobody knows may come, or not', () => {
  const possible = new Map([
    ['b', DUE],
    ['c', DUE],
  ]);
  expect(violationsOf(history({ accepted: new Map([['a', DUE]]), possible }))).toEqual([]);
});

test('I5 a stale leader that writes, at once or later', () => {
  const calls = [takeOver(7), takeOver(19), pop(7, 3), pop(19, 3), pop(7, 4, 3)];
  expect(violationsOf(history({ calls }))).toEqual([
    'I5 pop-due of a stale leader wrote bucket 3: 1|e|7|h7 after 1|e|19|h19',
    'I5 pop-due of a stale leader wrote bucket 4: 1|e|7|h7 after 1|e|19|h19',
    'I5 pop-due of a stale leader wrote bucket 3: 1|e|7|h7 after 1|e|19|h19',
  ]);
});

test('I5 a stale leader that is refused is none', () => {
  expect(violationsOf(history({ calls: [takeOver(7), takeOver(19), pop(7), pop(19, 3)] }))).toEqual([]);
});

test('I5 a leader that writes before it took over', () => {
  expect(violationsOf(history({ calls: [pop(7, 3), takeOver(7), pop(19, 4)] }))).toEqual([
    'I5 pop-due wrote bucket 3 before its take-over: 1|e|7|h7',
    'I5 pop-due wrote bucket 4 before its take-over: 1|e|19|h19',
  ]);
});

test('I5 a fence that falls: tokens are numbers, the epoch comes first', () => {
  expect(violationsOf(history({ calls: [takeOver(9), takeOver(10), takeOver(100)] }))).toEqual([]);
  expect(violationsOf(history({ calls: [takeOver(100), takeOver(2, '2|f')] }))).toEqual([]);
  expect(violationsOf(history({ calls: [takeOver(10), takeOver(9)] }))).toEqual([
    'I5 fence of bucket 3 fell: 1|e|10|h10 → 1|e|9|h9',
    'I5 fence of bucket 4 fell: 1|e|10|h10 → 1|e|9|h9',
  ]);
  expect(violationsOf(history({ calls: [takeOver(5, '2|f'), takeOver(100)] }))).toHaveLength(2);
});

test('I5 two holders of one token', () => {
  const other = call('take-over', '1|e|7|other', { raised: [3] });
  expect(violationsOf(history({ calls: [takeOver(7), other] }))).toEqual([
    'I5 fence of bucket 3 fell: 1|e|7|h7 → 1|e|7|other',
  ]);
});

test('I5 a write to a bucket that the script did not claim', () => {
  expect(violationsOf(history({ calls: [takeOver(7), pop(7, 200)] }))).toEqual([
    'I5 pop-due wrote bucket 200 before its take-over: pop-due without a claim',
  ]);
});

test('without the fence check the order of tokens is not judged, all else is', () => {
  const calls = [takeOver(19), takeOver(7), pop(7, 3)];
  expect(violationsOf(history({ calls, started: new Map([['a', 1]]) }), false)).toEqual([
    'I1 never started: b',
  ]);
});
