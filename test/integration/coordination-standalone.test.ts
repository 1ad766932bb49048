import { describe, expect, onTestFinished, test } from 'vitest';
import { fenceOf } from '../../src/coordination/coordinator.js';
import { StandaloneCoordinator } from '../../src/coordination/standalone.js';
import { HeartbeatScripts } from '../../src/redis/heartbeat-scripts.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { ManualClock } from '../support/manual-clock.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { NOW, Spine } from '../support/spine.js';
import { LineLogger } from '../support/spine-scheduler.js';

const TTL = 5000;

/** A coordinator over real scripts, whose monotonic clock is real time plus what the test adds. */
async function setup(spine: Spine, holder: string, over: { takeOver?: boolean; through?: Spine } = {}) {
  const clock = new ManualClock();
  const logger = new LineLogger();
  const beats = new HeartbeatScripts((over.through ?? spine).shard);
  const monotonic = () => clock.monotonic() + performance.now();
  const coordinator = new StandaloneCoordinator(beats, {
    holder,
    ttl: TTL,
    takeOver: over.takeOver ?? false,
    monotonic,
    logger,
  });
  const changes: boolean[] = [];
  coordinator.onChange(() => changes.push(coordinator.terms().length > 0));
  onTestFinished(() => coordinator.stop());
  return { coordinator, clock, logger, changes, monotonic };
}

/** A namespace whose Redis clock the test moves, so that nobody’s beat grows old by itself. */
const open = (task: { name: string }) => Spine.virtual(task);

describe('leading', () => {
  test('one term of all buckets, with the token and the epoch of Redis; told once', async ({ task }) => {
    const spine = await open(task);
    const { coordinator, changes } = await setup(spine, 'a');
    await coordinator.start();
    const [term] = coordinator.terms();
    expect(term).toMatchObject({
      first: 0,
      last: 255,
      token: 1,
      holder: 'a',
      epoch: expect.stringMatching(/^1\|/),
    });
    expect(term && fenceOf(term)).toMatch(/^1\|[^|]+\|1\|a$/);
    expect(changes).toEqual([true]);
  });

  test('trust ends by the local clock alone, a margin before the TTL, with nobody to ask', async ({
    task,
  }) => {
    const spine = await open(task);
    const { coordinator, clock } = await setup(spine, 'a');
    await coordinator.start();
    const [term] = coordinator.terms();
    clock.advance(TTL - 1000);
    expect(term?.isValid()).toBe(true);
    clock.advance(600);
    expect(term?.isValid()).toBe(false);
    expect(coordinator.terms()).toEqual([]);
  });

  test('the trust counts from before the beat was sent: a slow line does not lengthen it', async ({
    task,
  }) => {
    const spine = await open(task);
    const proxy = await FaultProxy.start({ port: Number(new URL(spine.url).port) });
    const choices = { clock: 'virtual' } as const;
    const through = await Spine.open({ url: proxy.url, namespace: spine.namespace, choices });
    const { coordinator, clock } = await setup(spine, 'a', { through });
    proxy.delay(600, 'down');
    await coordinator.start();
    clock.advance(TTL - 1000);
    expect(coordinator.terms()).toEqual([]);
  });

  test('a loop without progress for half a TTL gives it up, so that another can take it', async ({
    task,
  }) => {
    const spine = await open(task);
    const { coordinator, clock, logger, changes } = await setup(spine, 'a');
    await coordinator.start();
    clock.advance(TTL / 2 + 1);
    await eventually(() => expect(changes).toContain(false));
    expect(logger.lines.join('\n')).toContain('made no progress');
    await eventually(async () => expect(await spine.client.hexists(spine.keys.leader, 'holder')).toBe(0), {
      every: 2,
    });
  });

  test('fed, it beats on and keeps its token', async ({ task }) => {
    const spine = await open(task);
    const { coordinator, monotonic } = await setup(spine, 'a');
    await coordinator.start();
    await spine.setClock(NOW + 1000);
    await eventually(async () => {
      coordinator.fed(monotonic());
      expect(await spine.client.hget(spine.keys.leader, 'beat')).toBe(String(NOW + 1000));
    });
    expect(coordinator.terms()[0]?.token).toBe(1);
  });

  test('a refused fence ends the term that is named, no other', async ({ task }) => {
    const spine = await open(task);
    const { coordinator } = await setup(spine, 'a');
    await coordinator.start();
    const [term] = coordinator.terms();
    if (term === undefined) throw new Error('it should lead');
    coordinator.refused({ ...term }, 'a copy');
    expect(coordinator.terms()).toHaveLength(1);
    coordinator.refused(term, 'FENCED');
    expect(term.isValid()).toBe(false);
    expect(coordinator.terms()).toEqual([]);
  });

  test('stop gives the leadership back at once', async ({ task }) => {
    const spine = await open(task);
    const { coordinator } = await setup(spine, 'a');
    await coordinator.start();
    await coordinator.stop();
    expect(await spine.client.hexists(spine.keys.leader, 'holder')).toBe(0);
    const next = await setup(spine, 'b');
    await next.coordinator.start();
    expect(next.coordinator.terms()[0]?.token).toBe(2);
  });
});

describe('standing by', () => {
  test('says who leads, once; takes over when the beat is stale', async ({ task }) => {
    const spine = await open(task);
    await new HeartbeatScripts(spine.shard).hold('a', 0, TTL, false);
    const { coordinator, logger } = await setup(spine, 'b');
    await coordinator.start();
    expect(coordinator.terms()).toEqual([]);
    expect(logger.lines).toEqual(['info stands by: a leads']);
    await spine.client.hset(spine.keys.leader, 'beat', NOW - TTL);
    await eventually(() => expect(coordinator.terms()[0]?.token).toBe(2));
  });

  test.each([
    [2 * TTL, 'longer'],
    [TTL / 2, 'shorter'],
  ])(
    'a leader with a TTL of %i ms may be silent for as long, not for the TTL of who waits',
    async (ttl, word) => {
      const spine = await open({ name: `other ttl, ${word}` });
      await new HeartbeatScripts(spine.shard).hold('a', 0, ttl, false);
      const { coordinator } = await setup(spine, 'b');
      const beats = new HeartbeatScripts(spine.shard);
      await spine.client.hset(spine.keys.leader, 'beat', NOW - ttl + 1);
      expect(await beats.hold('b', 0, TTL, false)).toMatchObject({ status: 'STANDBY', holder: 'a' });
      await spine.client.hset(spine.keys.leader, 'beat', NOW - ttl);
      await coordinator.start();
      expect(coordinator.terms()[0]?.token).toBe(2);
    },
  );

  test('LOST: another took it by force; the term ends with the next beat', async ({ task }) => {
    const spine = await open(task);
    const { coordinator, logger, monotonic } = await setup(spine, 'a');
    await coordinator.start();
    await new HeartbeatScripts(spine.shard).hold('b', 0, TTL, true);
    await eventually(() => {
      coordinator.fed(monotonic());
      expect(coordinator.terms()).toEqual([]);
    });
    expect(logger.lines.join('\n')).toContain('b holds the leadership');
  });

  test('--take-over takes it at the first try, and only then', async ({ task }) => {
    const spine = await open(task);
    const first = await setup(spine, 'a');
    await first.coordinator.start();
    const second = await setup(spine, 'b', { takeOver: true });
    await second.coordinator.start();
    expect(second.coordinator.terms()[0]?.token).toBe(2);
    const third = await setup(spine, 'c', { takeOver: true });
    await third.coordinator.start();
    await eventually(() => expect(second.coordinator.terms()).toEqual([]));
    expect(third.coordinator.terms()[0]?.token).toBe(3);
  });

  test('B31 an error while it tries to lead is not a leadership', async ({ task }) => {
    const spine = await open(task);
    const proxy = await FaultProxy.start({ port: Number(new URL(spine.url).port) });
    const through = await Spine.open({
      url: proxy.url,
      namespace: spine.namespace,
      choices: { clock: 'virtual' },
      connection: { maxRetriesPerRequest: 0, commandTimeout: 500 },
    });
    const { coordinator, logger } = await setup(spine, 'a', { through });
    await proxy.suspend();
    await coordinator.start();
    expect(coordinator.terms()).toEqual([]);
    expect(logger.lines.join('\n')).toContain('the heartbeat failed');
    await proxy.resume();
    await eventually(() => expect(coordinator.terms()).toHaveLength(1));
  });
});

test('an answer that was lost on the way: the next beat finds out whether it leads', async ({ task }) => {
  const spine = await Spine.open({ url: sharedRedisUrl(), namespace: namespaceFor(task) });
  const proxy = await FaultProxy.start({ port: Number(new URL(spine.url).port) });
  const through = await Spine.open({
    url: proxy.url,
    namespace: spine.namespace,
    connection: { maxRetriesPerRequest: 0, commandTimeout: 500 },
  });
  // The server knows the script, so that the one call that is lost was carried out.
  await new HeartbeatScripts(spine.shard).release('nobody', 1);
  const drop = proxy.dropReplies(1, 'EVALSHA');
  const { coordinator } = await setup(spine, 'a', { through });
  await coordinator.start();
  expect(drop.dropped).toBe(1);
  expect(await spine.client.hget(spine.keys.leader, 'holder')).toBe('a');
  // Redis may name it as the holder; it does not believe so itself, and gets a token of its own after the TTL.
  expect(coordinator.terms()).toEqual([]);
  await eventually(() => expect(coordinator.terms()[0]?.token).toBe(2), { timeout: 5 * TTL });
}, 60_000);
