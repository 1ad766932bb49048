import { describe, expect, test } from 'vitest';
import { ClockWatch } from '../../../src/scheduler/clock-watch.js';
import { ManualClock } from '../../support/manual-clock.js';

const REDIS = 1_800_000_000_000;

function setup() {
  const clock = new ManualClock();
  const watch = new ClockWatch(clock.monotonic, clock.now);
  watch.saw(REDIS, watch.instant());
  return { clock, watch };
}

describe('I6 a jump forward of Redis’ clock', () => {
  test('before anything is known, every TIME is believed', () => {
    const clock = new ManualClock();
    expect(new ClockWatch(clock.monotonic, clock.now).latest()).toBe(0);
  });

  test('is believed up to 5 s beyond the time that passed here', () => {
    const { clock, watch } = setup();
    expect(watch.latest()).toBe(REDIS + 5000);
    clock.advance(60_000);
    expect(watch.latest()).toBe(REDIS + 65_000);
  });

  test('is believed when this machine’s wall clock made it too: it was suspended', () => {
    const { clock, watch } = setup();
    clock.jumpWall(clock.now() + 3_600_000);
    expect(watch.latest()).toBe(REDIS + 3_605_000);
  });

  test('a wall clock set back holds nothing (B23 a)', () => {
    const { clock, watch } = setup();
    clock.jumpWall(clock.now() - 12 * 3_600_000);
    clock.advance(10_000);
    expect(watch.latest()).toBe(REDIS + 15_000);
  });

  test('is believed when it was suspended before it heard the answer', () => {
    const { clock, watch } = setup();
    const askedAt = watch.instant();
    clock.jumpWall(clock.now() + 3_600_000);
    watch.saw(REDIS + 10, askedAt);
    expect(watch.latest()).toBe(REDIS + 3_605_010);
  });

  test('holds for a minute at most, from the first time that it is seen', () => {
    const { clock, watch } = setup();
    watch.jumped();
    clock.advance(59_999);
    watch.jumped();
    expect(watch.latest()).toBe(REDIS + 64_999);
    clock.advance(1);
    expect(watch.latest()).toBe(0);
  });

  test('ends as soon as a TIME is believed again', () => {
    const { clock, watch } = setup();
    watch.jumped();
    clock.advance(1000);
    watch.saw(REDIS + 1000, watch.instant());
    expect(watch.latest()).toBe(REDIS + 6000);
    clock.advance(70_000);
    expect(watch.latest()).toBe(REDIS + 76_000);
  });

  test('what a stand-by hears counts as far as it can be believed, for a minute', () => {
    const { clock, watch } = setup();
    clock.advance(1000);
    watch.heard(REDIS + 1200, watch.instant());
    expect(watch.latest()).toBe(REDIS + 6200);
    watch.heard(REDIS + 600_000, watch.instant());
    expect(watch.latest()).toBe(REDIS + 6200);
    clock.advance(60_000);
    watch.heard(REDIS + 660_000, watch.instant());
    expect(watch.latest()).toBe(REDIS + 665_000);
  });
});
