import { expect, test } from 'vitest';
import {
  adoptFences,
  type Epoch,
  type EpochSource,
  type FenceStore,
  planAdopt,
} from '../../src/coordination/adopt-fences.js';

const ALL = Array.from({ length: 256 }, (_, bucket) => bucket);
const all = (fence: string) => new Map(ALL.map((bucket) => [bucket, fence]));
const upTo = (token: number) => () => token;
const E: Epoch = { number: 2, id: 'e' };

test('nothing to do: all fences are of this epoch, at or below its tokens, or there are none yet', () => {
  expect(planAdopt(all('2|e|9|a'), E, upTo(9), 'n').epoch).toBeUndefined();
  expect(planAdopt(new Map(), E, upTo(9), 'n').epoch).toBeUndefined();
  expect(planAdopt(new Map(), undefined, upTo(9), 'n').epoch).toBeUndefined();
});

test.each([
  ['a higher number', '3|x|1|a', 4],
  ['another id under the same number', '2|x|1|a', 3],
  ['a token ahead of the source', '2|e|10|a', 3],
])('%s stands in the way: the highest number + 1', (_, fence, number) => {
  const plan = planAdopt(all('2|e|9|a').set(77, fence), E, upTo(9), 'n');
  expect(plan).toMatchObject({ epoch: { number, id: 'n' }, isNew: true, inTheWay: [77] });
});

test('a source without an epoch adopts the fences of whoever led before', () => {
  expect(planAdopt(all('1|uuid|4|h'), undefined, upTo(0), 'n')).toMatchObject({
    epoch: { number: 2, id: 'n' },
    isNew: true,
  });
});

test('an adopt that was cut off is finished under the number it began with', () => {
  const half = new Map(ALL.map((b) => [b, b < 100 ? '2|e|0|fence-adopt' : '1|uuid|4|h']));
  expect(planAdopt(half, E, upTo(9), 'n')).toMatchObject({ epoch: E, isNew: false });
});

test('what cannot be read, or is not there, is below', () => {
  const fences = all('2|e|9|a').set(3, 'garbage');
  fences.delete(4);
  expect(planAdopt(fences, E, upTo(9), 'n')).toMatchObject({ epoch: E, isNew: false, below: [3, 4] });
});

/** Fences and a source in memory, that raise as Redis and etcd do. */
function inMemory(fences: Map<number, string>, epoch: Epoch | undefined) {
  const state = { fences, epoch, conflicts: 0, callsLeft: Number.POSITIVE_INFINITY };
  const source: EpochSource = {
    read: async () => ({ epoch: state.epoch, highestToken: () => 100 }),
    raise: async (to) => {
      if (state.conflicts-- > 0) return false;
      state.epoch = to;
      return true;
    },
  };
  const store: FenceStore = {
    read: async () => new Map(state.fences),
    raise: async (first, last, fence) => {
      if (state.callsLeft-- <= 0) throw new Error('cut off');
      for (let bucket = first; bucket <= last; bucket++) state.fences.set(bucket, fence);
      return [];
    },
  };
  return { state, source, store };
}

test('the source comes first, then every bucket; a second call changes nothing', async () => {
  const { state, source, store } = inMemory(all('1|uuid|4|h'), undefined);
  const outcome = await adoptFences(source, store, 'n');
  expect(outcome).toMatchObject({ epoch: { number: 2, id: 'n' }, above: [] });
  expect(state.epoch).toEqual({ number: 2, id: 'n' });
  expect(state.fences).toEqual(all('2|n|0|fence-adopt'));
  expect((await adoptFences(source, store, 'm')).epoch).toBeUndefined();
  expect(state.epoch).toEqual({ number: 2, id: 'n' });
});

test('cut off after any bucket, it is finished by the next call, under one number', async () => {
  for (let calls = 0; calls < 16; calls++) {
    const { state, source, store } = inMemory(all('1|uuid|4|h'), undefined);
    state.callsLeft = calls;
    await expect(adoptFences(source, store, 'n')).rejects.toThrow('cut off');
    state.callsLeft = Number.POSITIVE_INFINITY;
    await adoptFences(source, store, 'm');
    expect(state.fences).toEqual(all('2|n|0|fence-adopt'));
  }
});

test('a source that somebody else changes is read again, and given up after a while', async () => {
  const twice = inMemory(all('1|uuid|4|h'), undefined);
  twice.state.conflicts = 2;
  expect(await adoptFences(twice.source, twice.store, 'n')).toMatchObject({ isNew: true });
  const busy = inMemory(all('1|uuid|4|h'), undefined);
  busy.state.conflicts = 99;
  await expect(adoptFences(busy.source, busy.store, 'n')).rejects.toThrow('somebody else');
});
