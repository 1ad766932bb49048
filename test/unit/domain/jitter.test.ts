import { describe, expect, test } from 'vitest';
import { compileSchedule } from '../../../src/domain/fire-times.js';
import { jitterFor } from '../../../src/domain/jitter.js';

const HOUR = 3_600_000;

describe('jitter', () => {
  test('is a pure function of identity and scheduled time', () => {
    // Written down: a change of the hash would move fire times that are already stored.
    expect(jitterFor('emails:nightly', 1_768_435_200_000, 300_000, HOUR)).toBe(93_200);
    expect(jitterFor('emails:nightly', 1_768_435_200_000, 300_000, HOUR)).toBe(
      jitterFor('emails:nightly', 1_768_435_200_000, 300_000, HOUR),
    );
    const of = (identity: string, time: number) => jitterFor(identity, time, HOUR, HOUR);
    expect(of('emails:a', 0)).not.toBe(of('emails:b', 0));
    expect(of('emails:a', 0)).not.toBe(of('emails:a', HOUR));
  });

  test('is spread evenly from 0 to the jitter, both included', () => {
    const sizes = (jitters: number[]) => {
      const counts = new Array<number>(10).fill(0);
      for (const jitter of jitters) counts[jitter] = (counts[jitter] ?? 0) + 1;
      return counts;
    };
    const runs = Array.from({ length: 20_000 }, (_, i) => i);
    const overIds = sizes(runs.map((i) => jitterFor(`q:job-${i}`, 1_768_435_200_000, 9, HOUR)));
    const overTimes = sizes(runs.map((i) => jitterFor('q:job', i * 60_000, 9, HOUR)));
    for (const counts of [overIds, overTimes]) {
      expect(counts).toHaveLength(10);
      // Five standard deviations of 20,000 throws at ten targets.
      for (const count of counts) expect(Math.abs(count - 2_000)).toBeLessThan(215);
    }
  });

  test('stays below the gap to the following tick', () => {
    for (let i = 0; i < 1_000; i++) {
      expect(jitterFor('q:a', i, HOUR, 10)).toBeLessThan(10);
      expect(jitterFor('q:a', i, HOUR, 1)).toBe(0);
      expect(jitterFor('q:a', i, 0, HOUR)).toBe(0);
      expect(jitterFor('q:a', i, 5, Number.POSITIVE_INFINITY)).toBeLessThanOrEqual(5);
    }
  });

  test('B26: jitter as long as the period loses no slot and moves no base', () => {
    const timing = compileSchedule({ cron: '0 6,18 * * *' });
    const start = Date.parse('2026-01-15T00:00:00Z');
    const fired: number[] = [];
    let at = timing.next(start);
    while (at !== undefined && at < start + 240 * HOUR) {
      const following = timing.next(at);
      const fireAt = at + jitterFor('q:job-42', at, 12 * HOUR, (following ?? Number.POSITIVE_INFINITY) - at);
      expect(fireAt).toBeGreaterThanOrEqual(at);
      expect(fireAt).toBeLessThan(following ?? 0);
      fired.push(fireAt);
      at = following;
    }
    expect(fired).toHaveLength(20);
    expect(new Set(fired.map((time) => Math.floor((time - 6 * HOUR) / (12 * HOUR)))).size).toBe(20);
  });
});
