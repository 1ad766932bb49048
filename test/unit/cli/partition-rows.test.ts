import { describe, expect, test } from 'vitest';
import { partitionRows } from '../../../src/cli/partition-rows.js';
import type { ClusterView, Member } from '../../../src/coordination/etcd/cluster-view.js';
import type { BucketLoad } from '../../../src/redis/bucket-loads.js';

const NOW = 1_900_000_000_000;
const AT = '2030-03-17T17:46:00.000Z';

function member(instanceId: string, over: Partial<Member> = {}): Member {
  return {
    instanceId,
    host: 'h',
    pid: 1,
    startedAt: AT,
    partitions: 2,
    versions: { carillon: '1', bullmq: '6', format: 1, tzdata: '2026a' },
    fit: true,
    draining: false,
    lease: '1',
    createRevision: 1,
    ...over,
  };
}

/** Two partitions of two instances, all of whose fences are raised. */
function aView(over: Partial<ClusterView> = {}): ClusterView {
  return {
    revision: 20,
    epoch: { number: 1, id: 'deadbeef', modRevision: 1 },
    layout: { partitions: 2, pinned: false, modRevision: 2 },
    members: [member('a'), member('b')],
    partitions: [
      { count: 2, n: 0, instanceId: 'a', at: AT, token: 7, lease: '1' },
      { count: 2, n: 1, instanceId: 'b', at: AT, token: 9, lease: '2' },
    ],
    handOvers: [],
    drains: [],
    unreadable: [],
    ...over,
  };
}

function loads(fenceOf: (bucket: number) => string | undefined): BucketLoad[] {
  return Array.from({ length: 256 }, (_, bucket) => ({
    head: undefined,
    pending: 0,
    fence: fenceOf(bucket),
  }));
}

const raised = loads((bucket) => (bucket < 128 ? '1|deadbeef|7|a' : '1|deadbeef|9|b'));

function states(view: ClusterView, buckets = raised): string[] {
  return partitionRows(view, buckets, NOW).map(({ partition, of, state }) => `${partition}/${of} ${state}`);
}

describe('partitionRows', () => {
  test('the leader, its token, its buckets, and how the term before ended', () => {
    const handOver = { count: 2, n: 1, instanceId: 'c', token: 8, at: AT, reason: 'drain' };
    const rows = partitionRows(aView({ handOvers: [handOver] }), raised, NOW);
    expect(rows[1]).toEqual({
      partition: 1,
      of: 2,
      first: 128,
      last: 255,
      state: 'led',
      leader: 'b',
      token: 9,
      since: AT,
      lag: 0,
      pending: 0,
      dueHeads: 0,
      lastHandOver: { at: AT, reason: 'drain', from: 'c', token: 8 },
    });
    expect(rows[0]?.lastHandOver).toBeNull();
  });

  test('lag is the age of the oldest timer that is due; those to come are pending', () => {
    const buckets = structuredClone(raised);
    Object.assign(buckets[3] as BucketLoad, { head: NOW - 1500, pending: 4 });
    Object.assign(buckets[4] as BucketLoad, { head: NOW - 200, pending: 1 });
    Object.assign(buckets[5] as BucketLoad, { head: NOW + 1, pending: 2 });
    const [first, second] = partitionRows(aView(), buckets, NOW);
    expect(first).toMatchObject({ lag: 1500, dueHeads: 2, pending: 7 });
    expect(second).toMatchObject({ lag: 0, dueHeads: 0, pending: 0 });
  });

  test.each<[string, Partial<ClusterView>, string[]]>([
    ['all is well', {}, ['0/2 led', '1/2 led']],
    ['one has no key', { partitions: aView().partitions.slice(0, 1) }, ['0/2 led', '1/2 leaderless']],
    [
      'a leader is draining',
      { members: [member('a', { draining: true }), member('b')] },
      ['0/2 handing over', '1/2 led'],
    ],
    ['it was asked to', { drains: [{ instanceId: 'b', at: AT }] }, ['0/2 led', '1/2 handing over']],
    [
      'the number of partitions changes',
      { layout: { partitions: 1, pinned: true, modRevision: 3 } },
      ['0/1 waiting', '0/2 handing over', '1/2 handing over'],
    ],
    ['nobody ever took part', { layout: undefined, partitions: [], members: [] }, []],
  ])('%s', (_what, over, expected) => {
    expect(states(aView(over))).toEqual(expected);
  });

  test('fences that are not raised yet, and fences above', () => {
    expect(
      states(
        aView(),
        loads(() => '1|deadbeef|6|z'),
      ),
    ).toEqual(['0/2 taking over', '1/2 taking over']);
    expect(
      states(
        aView(),
        loads((bucket) => (bucket === 200 ? '1|deadbeef|10|z' : raised[bucket]?.fence)),
      ),
    ).toEqual(['0/2 led', '1/2 refused']);
    expect(
      states(
        aView(),
        loads((bucket) => (bucket === 0 ? '1|cafecafe|1|z' : raised[bucket]?.fence)),
      ),
    ).toEqual(['0/2 refused', '1/2 led']);
  });
});
