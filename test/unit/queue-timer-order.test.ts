import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { mergeTimers, type Timer, type TimerSource } from '../../src/queue/timer-order.js';

/** A source that gives its list in pages of `size`. */
function paged(list: readonly Timer[], size: number): TimerSource & { reads: number } {
  let from = 0;
  const source = Object.assign(
    async () => {
      source.reads += 1;
      const page = list.slice(from, from + size);
      from += size;
      return page;
    },
    { reads: 0 },
  );
  return source;
}

const named = (times: readonly number[], stem: string) =>
  times.map((fireAt, n) => ({ jobId: `${stem}${n}`, fireAt }));

describe('mergeTimers', () => {
  test('merges either way, and stops at the count', async () => {
    const lists = [named([1, 4, 7], 'a'), named([2, 5], 'b'), named([], 'c')];
    const sources = () => lists.map((list) => paged(list, 2));
    expect((await mergeTimers(sources(), false, 9)).map(({ fireAt }) => fireAt)).toEqual([1, 2, 4, 5, 7]);
    expect((await mergeTimers(sources(), false, 2)).map(({ fireAt }) => fireAt)).toEqual([1, 2]);
    const reversed = lists.map((list) => paged([...list].reverse(), 2));
    expect((await mergeTimers(reversed, true, 3)).map(({ fireAt }) => fireAt)).toEqual([7, 5, 4]);
    expect(await mergeTimers([], false, 5)).toEqual([]);
  });

  test('a timer that moved under way, and is met twice, is listed once', async () => {
    const twice = [
      { jobId: 'a', fireAt: 1 },
      { jobId: 'b', fireAt: 2 },
      { jobId: 'a', fireAt: 3 },
    ];
    expect((await mergeTimers([paged(twice, 1)], false, 9)).map(({ jobId }) => jobId)).toEqual(['a', 'b']);
  });

  test('a long list is not read to its end for a few', async () => {
    const long = paged(
      named(
        Array.from({ length: 1000 }, (_, n) => n),
        'a',
      ),
      10,
    );
    await mergeTimers([long, paged(named([5000], 'b'), 10)], false, 10);
    expect(long.reads).toBeLessThan(4);
  });

  test('equals a sort of everything, whatever the pages', async () => {
    const lists = fc.array(fc.array(fc.nat(50)), { maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(
        lists,
        fc.integer({ min: 1, max: 7 }),
        fc.nat(60),
        fc.boolean(),
        async (times, size, count, latest) => {
          const order = (a: number, b: number) => (latest ? b - a : a - b);
          const sources = times.map((list, n) => paged(named([...list].sort(order), `${n}-`), size));
          const merged = await mergeTimers(sources, latest, count);
          expect(merged.map(({ fireAt }) => fireAt)).toEqual(times.flat().sort(order).slice(0, count));
        },
      ),
    );
  });
});
