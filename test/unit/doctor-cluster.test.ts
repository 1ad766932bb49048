import { describe, expect, test } from 'vitest';
import {
  type ClusterLook,
  type ClusterMember,
  judgeClusterFences,
  judgeMembers,
  judgeTerms,
} from '../../src/client/doctor-cluster.js';

function member(instanceId: string, over: Partial<ClusterMember> = {}): ClusterMember {
  return { instanceId, partitions: 2, fit: true, versions: { carillon: '1.0.0', format: 1 }, ...over };
}

function look(over: Partial<ClusterLook> = {}): ClusterLook {
  return {
    epoch: { number: 1, id: 'deadbeef' },
    layout: { partitions: 2, pinned: false },
    terms: [
      { partition: '0 of 2', first: 0, last: 127, instanceId: 'a', token: 7 },
      { partition: '1 of 2', first: 128, last: 255, instanceId: 'b', token: 9 },
    ],
    members: [member('a'), member('b')],
    ...over,
  };
}

function fences(over: Record<number, string> = {}): Record<string, string> {
  const texts: Record<string, string> = {};
  for (let bucket = 0; bucket < 256; bucket++)
    texts[bucket] = bucket < 128 ? '1|deadbeef|7|a' : '1|deadbeef|9|b';
  return { ...texts, ...over };
}

describe('judgeTerms', () => {
  test('every bucket is led', () => expect(judgeTerms(look(), 5)).toEqual([]));

  test('names the buckets without a leader; an error while timers are pending', () => {
    const half = look({ terms: look().terms.slice(1) });
    expect(judgeTerms(half, 5)).toEqual([
      {
        check: 'leader',
        severity: 'error',
        subject: 'partitions',
        detail: 'buckets 0-127 have no leader; 2 take part',
      },
    ]);
    expect(judgeTerms(half, 0)).toMatchObject([{ severity: 'warning' }]);
  });

  test('an empty namespace that nobody serves is well', () => {
    expect(judgeTerms(look({ terms: [], members: [] }), 0)).toEqual([]);
    expect(judgeTerms(look({ terms: [], members: [] }), 1)).toMatchObject([{ severity: 'error' }]);
  });
});

describe('judgeClusterFences', () => {
  test('every fence is its leader’s', () => expect(judgeClusterFences(look(), fences())).toEqual([]));

  function found(subject: string, what: string, text: string) {
    return [
      {
        check: 'fence',
        severity: 'error',
        subject,
        detail: `the fences of 2 bucket(s) are ${what} (${text})`,
      },
    ];
  }

  test.each([
    ['1|deadbeef|6|z', 'not raised to the token of a, 7'],
    ['1|deadbeef|8|z', 'above the token of a, 7: etcd is behind them'],
  ])('%s', (text, what) => {
    expect(judgeClusterFences(look(), fences({ 3: text, 4: text }))).toEqual(
      found('partition 0 of 2', what, text),
    );
  });

  test.each(['1|cafecafe|1|z', '2|cafecafe|1|z'])(
    'another epoch, %s, whether or not the partition is led just now',
    (text) => {
      const what = 'of another epoch than etcd’s: etcd was rebuilt or restored';
      for (const terms of [look().terms, look().terms.slice(1), []]) {
        expect(judgeClusterFences(look({ terms }), fences({ 3: text, 4: text }))).toEqual(
          found('buckets 3-4', what, text),
        );
      }
    },
  );

  test('an etcd that has no epoch yet vouches for no fence', () => {
    expect(judgeClusterFences(look({ epoch: undefined, terms: [] }), fences())).toMatchObject([
      { subject: 'buckets 0-255' },
    ]);
    expect(judgeClusterFences(look({ epoch: undefined, terms: [] }), {})).toEqual([]);
  });
});

describe('judgeMembers', () => {
  test('one configuration and one version: nothing', () => expect(judgeMembers(look())).toEqual([]));

  test('mixed configurations, unless the number is pinned', () => {
    const mixed = [member('a'), member('b', { partitions: 4 }), member('c')];
    expect(judgeMembers(look({ members: mixed }))).toEqual([
      {
        check: 'instances',
        severity: 'warning',
        subject: 'partitions',
        detail: 'instances differ: 2 (2), 4 (1)',
      },
    ]);
    expect(judgeMembers(look({ members: mixed, layout: { partitions: 2, pinned: true } }))).toEqual([]);
  });

  test('unfit ones and other versions', () => {
    const members = [
      member('a', { fit: false, unfitReason: 'it does not get through to Redis' }),
      member('b', { versions: { carillon: '1.1.0', format: 1 } }),
    ];
    expect(judgeMembers(look({ members })).map(({ subject, detail }) => `${subject}: ${detail}`)).toEqual([
      'a: it is unfit: it does not get through to Redis',
      'carillon: instances differ: 1.0.0 (1), 1.1.0 (1)',
    ]);
  });
});
