import { describe, expect, test } from 'vitest';
import { Sleeper } from '../../../src/scheduler/sleeper.js';

/** A sleeper whose clock the test moves; Redis is a million ms ahead of it. */
function aSleeper(poll = 1000) {
  let now = 5000;
  const sleeper = new Sleeper(() => now, poll);
  const pass = (ms: number) => {
    now += ms;
  };
  return { sleeper, pass };
}

const REDIS = 1_005_000;
const never = new AbortController().signal;

/** True when the sleep is over at once. */
async function isAwake(sleeper: Sleeper): Promise<boolean> {
  const abort = new AbortController();
  let awake = false;
  const sleeping = sleeper.sleep(abort.signal).then(() => {
    awake = true;
  });
  await Promise.resolve();
  await Promise.resolve();
  const result = awake;
  abort.abort();
  await sleeping;
  return result;
}

describe('the sleep of a loop', () => {
  test('tells Redis’ time between replies by the monotonic clock', () => {
    const { sleeper, pass } = aSleeper();
    expect(sleeper.redisNow()).toBe(0);
    sleeper.replied(REDIS, 0);
    pass(40);
    expect(sleeper.redisNow()).toBe(REDIS + 40);
  });

  test('ends at the next head, or at the poll', async () => {
    const { sleeper, pass } = aSleeper();
    sleeper.replied(REDIS, REDIS + 30);
    expect(await isAwake(sleeper)).toBe(false);
    pass(30);
    expect(await isAwake(sleeper)).toBe(true);
    const polled = aSleeper(20);
    polled.sleeper.replied(REDIS, 0);
    const started = performance.now();
    const sleeping = polled.sleeper.sleep(never);
    polled.pass(20);
    await sleeping;
    expect(performance.now() - started).toBeGreaterThan(10);
  });

  test('a hint wakes it, a later one than the head does not', async () => {
    const { sleeper } = aSleeper(60_000);
    sleeper.replied(REDIS, REDIS + 50_000);
    const sleeping = sleeper.sleep(never);
    sleeper.hint(REDIS + 55_000);
    sleeper.hint(REDIS);
    await sleeping;
  });

  test('a reply that was under way when a hint came does not hide it', async () => {
    const { sleeper } = aSleeper();
    sleeper.replied(REDIS, 0);
    sleeper.sending();
    sleeper.hint(REDIS + 1);
    sleeper.replied(REDIS + 2, REDIS + 9000);
    expect(await isAwake(sleeper)).toBe(true);
    // The next call sees it in Redis.
    sleeper.sending();
    sleeper.replied(REDIS + 3, REDIS + 9000);
    expect(await isAwake(sleeper)).toBe(false);
  });

  test('a reply that was under way when it was woken does not hide that', async () => {
    const { sleeper } = aSleeper();
    sleeper.sending();
    sleeper.wake();
    sleeper.replied(REDIS, REDIS + 9000);
    expect(await isAwake(sleeper)).toBe(true);
    // Once.
    expect(await isAwake(sleeper)).toBe(false);
  });

  test('wake and an abort end it at once', async () => {
    const { sleeper } = aSleeper(60_000);
    sleeper.replied(REDIS, 0);
    const sleeping = sleeper.sleep(never);
    sleeper.wake();
    await sleeping;
    const abort = new AbortController();
    sleeper.replied(REDIS, 0);
    const aborted = sleeper.sleep(abort.signal);
    abort.abort();
    await aborted;
  });
});
