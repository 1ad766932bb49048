import { describe, expect, test } from 'vitest';
import type { ClusterView, Member } from '../../src/coordination/etcd/cluster-view.js';
import { EtcdKeys } from '../../src/coordination/etcd/etcd-keys.js';
import { FreePartitions } from '../../src/coordination/etcd/free-partitions.js';
import { Standing } from '../../src/coordination/etcd/membership.js';
import { nextLayout } from '../../src/coordination/etcd/partition-layout.js';
import { Progress } from '../../src/coordination/etcd/progress.js';

const VERSIONS = { carillon: '1', bullmq: '6', format: 1, tzdata: '2025c' };

function member(instanceId: string, createRevision: number, over: Partial<Member> = {}): Member {
  return {
    instanceId,
    host: 'h',
    pid: 1,
    startedAt: '2027-01-01T00:00:00.000Z',
    partitions: 16,
    versions: VERSIONS,
    fit: true,
    draining: false,
    lease: String(createRevision),
    createRevision,
    ...over,
  };
}

/** What `a` sees over time: members at an instant in ms, and then the candidates. */
function watching(...reads: [at: number, ...members: Member[]][]) {
  const standing = new Standing('a', { settle: 2000, confirm: 3000 });
  let last: Member[] = [];
  for (const [at, ...members] of reads) {
    standing.observe(members, at);
    last = members;
  }
  return standing.candidates(last);
}

describe('newcomers', () => {
  const a = member('a', 10);

  test('one that joined before us has settled; one that came later settles first', () => {
    expect(watching([0, member('b', 5), a])).toEqual({ all: ['a', 'b'], settled: ['b'] });
    expect(watching([0, a], [2000, a])).toEqual({ all: ['a'], settled: ['a'] });
    expect(watching([0, a], [5000, a, member('b', 20)])).toEqual({ all: ['a', 'b'], settled: ['a'] });
    expect(watching([0, a], [5000, a, member('b', 20)], [7000, a, member('b', 20)]).settled).toEqual([
      'a',
      'b',
    ]);
  });

  test('one that went and came back is a newcomer again', () => {
    const reads: [number, ...Member[]][] = [
      [0, a, member('b', 20)],
      [3000, a, member('b', 20)],
      [4000, a, member('b', 30)],
    ];
    expect(watching(...reads).settled).toEqual(['a']);
  });
});

test('a newcomer settles only while it is fit: what it cannot serve is not handed to it', () => {
  const a = member('a', 10);
  const sick = member('b', 20, { fit: false });
  const joining: [number, ...Member[]][] = [
    [0, a],
    [5000, a, member('b', 20)],
    [5100, a, sick],
    [7100, a, sick],
  ];
  expect(watching(...joining)).toEqual({ all: ['a', 'b'], settled: ['a'] });
  expect(watching(...joining, [9000, a, member('b', 20)]).settled).toEqual(['a']);
  expect(watching(...joining, [9100, a, member('b', 20)]).settled).toEqual(['a', 'b']);
  // One that has settled stays so.
  expect(watching(...joining, [9100, a, member('b', 20)], [9200, a, sick]).settled).toEqual(['a', 'b']);
});

describe('the unfit', () => {
  const a = member('a', 10);
  const b = member('b', 5);
  const sick = member('b', 5, { fit: false });

  test('one is passed over when it stays unfit while another stays fit', () => {
    expect(watching([0, a, b], [1000, a, sick], [3900, a, sick]).all).toEqual(['a', 'b']);
    expect(watching([0, a, b], [1000, a, sick], [4000, a, sick]).all).toEqual(['a']);
    expect(watching([0, a, b], [1000, a, sick], [4000, a, b]).all).toEqual(['a', 'b']);
  });

  test('a Redis that nobody reaches moves nothing, nor does its return to one a moment before another', () => {
    const sickToo = member('a', 10, { fit: false });
    const down: [number, ...Member[]][] = [
      [0, a, b],
      [1000, a, sick],
      [2500, sickToo, sick],
      [60_000, sickToo, sick],
    ];
    expect(watching(...down).all).toEqual(['a', 'b']);
    expect(watching(...down, [61_000, a, sick], [63_000, a, sick]).all).toEqual(['a', 'b']);
    expect(watching(...down, [61_000, a, sick], [64_000, a, sick]).all).toEqual(['a']);
  });

  test('a draining one is passed over at once, and is not the fit one that others are held against', () => {
    const draining = member('a', 10, { draining: true });
    expect(watching([0, draining, b]).all).toEqual(['b']);
    expect(watching([0, draining, sick], [9000, draining, sick]).all).toEqual(['b']);
    expect(watching([0, draining]).all).toEqual([]);
  });
});

test('progress: unfit after half a TTL without a script; fit again when scripts have completed for a while', () => {
  const progress = new Progress(10_000, 0);
  expect(progress.isFit(5000)).toBe(true);
  expect(progress.isFit(5001)).toBe(false);
  progress.fed(6000);
  expect(progress.isFit(6001)).toBe(false);
  progress.fed(7500);
  expect(progress.isFit(7999)).toBe(false);
  expect(progress.isFit(8000)).toBe(true);
  // A late answer to an early call is no progress.
  progress.fed(3000);
  expect(progress.isFit(12_400)).toBe(true);
  expect(progress.isFit(12_501)).toBe(false);
});

describe('free partitions', () => {
  const view = (over: Partial<ClusterView> = {}): ClusterView => ({
    revision: 1,
    epoch: undefined,
    layout: { partitions: 2, pinned: false, modRevision: 1 },
    members: [],
    partitions: [],
    handOvers: [],
    drains: [],
    unreadable: [],
    ...over,
  });
  const led = (n: number, token: number, count = 2) => ({
    count,
    n,
    instanceId: 'x',
    at: 'T0',
    token,
    lease: '1',
  });

  test('never led', () => {
    expect(new FreePartitions().observe(view(), 'T')).toEqual([
      { count: 2, n: 0, lost: undefined },
      { count: 2, n: 1, lost: undefined },
    ]);
  });

  test('given back by its holder; vanished without a word, and told so', () => {
    const free = new FreePartitions();
    free.observe(view({ partitions: [led(0, 7), led(1, 8)] }), 'T0');
    const end = { count: 2, n: 0, instanceId: 'x', token: 7, at: 'T1', reason: 'it stopped' };
    const after = view({ handOvers: [end, { ...end, n: 1, token: 3 }] });
    expect(free.observe(after, 'T2')).toEqual([
      { count: 2, n: 0, lost: undefined },
      { count: 2, n: 1, lost: { instanceId: 'x', token: 8, at: 'T2', reason: 'lost its lease' } },
    ]);
  });

  test('given back by a holder that came and went between two reads', () => {
    const free = new FreePartitions();
    free.observe(view({ partitions: [led(0, 7)] }), 'T0');
    const end = { count: 2, n: 0, instanceId: 'y', token: 9, at: 'T1', reason: 'it stopped' };
    const [first] = free.observe(view({ handOvers: [end] }), 'T2');
    expect(first).toEqual({ count: 2, n: 0, lost: undefined });
  });

  test('not while a key of another count stands over any of its buckets', () => {
    const free = new FreePartitions();
    expect(free.observe(view({ partitions: [led(0, 7, 4)] }), 'T').map(({ n }) => n)).toEqual([1]);
    expect(free.observe(view({ partitions: [led(0, 7, 1)] }), 'T')).toEqual([]);
  });
});

describe('layout', () => {
  test('follows the configuration when all agree, and stays when it is pinned or they do not', () => {
    const layout = { partitions: 8, pinned: false };
    expect(nextLayout(layout, [16, 16, 16])).toEqual({ partitions: 16, pinned: false });
    expect(nextLayout(layout, [16, 8, 16])).toBeUndefined();
    expect(nextLayout(layout, [8, 8])).toBeUndefined();
    expect(nextLayout(layout, [])).toBeUndefined();
    expect(nextLayout({ partitions: 8, pinned: true }, [16, 16])).toBeUndefined();
  });
});

test('keys: every one is read back as it was built; names never reach into another’s keys', () => {
  const keys = new EtcdKeys('a/b%2F');
  expect(keys.prefix).toBe('/carillon/a%2Fb%252F/');
  expect(keys.parse(keys.epoch)).toEqual({ kind: 'epoch' });
  expect(keys.parse(keys.layout)).toEqual({ kind: 'layout' });
  for (const instanceId of ['h:1:ab', 'x/y', '%2F', '%252F']) {
    expect(keys.parse(keys.member(instanceId))).toEqual({ kind: 'members', instanceId });
    expect(keys.parse(keys.drain(instanceId))).toEqual({ kind: 'drain', instanceId });
  }
  expect(keys.parse(keys.partition(16, 3))).toEqual({ kind: 'partitions', count: 16, n: 3 });
  expect(keys.parse(keys.handOver(16, 3))).toEqual({ kind: 'last', count: 16, n: 3 });
  for (const stranger of [
    'x',
    'members',
    'members/a/b',
    'partitions/16',
    'partitions/a/b',
    'epoch/1',
    'last/1/2/3',
  ])
    expect(keys.parse(keys.prefix + stranger)).toBeUndefined();
});
