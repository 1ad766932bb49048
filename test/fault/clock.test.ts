import { describe, expect, onTestFinished, test } from 'vitest';
import type { Coordinator, Term } from '../../src/coordination/coordinator.js';
import { StandaloneCoordinator } from '../../src/coordination/standalone.js';
import { CalendarStore } from '../../src/redis/calendar-store.js';
import { HeartbeatScripts } from '../../src/redis/heartbeat-scripts.js';
import { DispatchReport } from '../../src/scheduler/dispatch-report.js';
import { Planner } from '../../src/scheduler/planner.js';
import { ShardLoop } from '../../src/scheduler/shard-loop.js';
import { aJob, aSchedule, OVERLAPPING } from '../support/builders.js';
import { eventually } from '../support/eventually.js';
import { ManualClock } from '../support/manual-clock.js';
import { NOW, Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { LineLogger } from '../support/spine-scheduler.js';
import { timeZonesOf } from '../support/time-zones.js';

const MINUTE = 60_000;

/** A leadership that never ends, of a coordinator whose lease is fed by whoever asks. */
class Unchallenged implements Coordinator {
  fedAt: number[] = [];
  readonly #term: Term = { first: 0, last: 255, epoch: '1|e', token: 1, holder: 'h', isValid: () => true };

  async start(): Promise<void> {}
  async stop(): Promise<void> {}
  terms(): readonly Term[] {
    return [this.#term];
  }
  onChange(): void {}
  onTime(): void {}
  fed(at: number): void {
    this.fedAt.push(at);
  }
  trouble(): undefined {}
  onHandOver(): void {}
  refused(_term: Term, reason: string): boolean {
    throw new Error(reason);
  }
}

/** The test's clock on top of the real one: time passes by itself, and in leaps. */
function clocks(clock: ManualClock) {
  return {
    monotonic: () => clock.monotonic() + performance.now(),
    wall: () => clock.now() + performance.now(),
  };
}

/** A shard's loop on a namespace with a virtual Redis clock. */
async function startLoop(spine: Spine, clock: ManualClock, coordinator: Coordinator) {
  const { monotonic, wall } = clocks(clock);
  const logger = new LineLogger();
  const report = new DispatchReport(logger, monotonic);
  const loop = new ShardLoop({
    scripts: spine.leader,
    coordinator,
    planner: new Planner(logger, new CalendarStore(spine.shard), timeZonesOf(spine)),
    report,
    logger,
    monotonic,
    wall,
    clockLeaps: false,
    poll: 10,
    headroom: 0,
  });
  onTestFinished(() => loop.stop());
  await loop.start();
  return { report, logger, loop };
}

async function waiting(spine: Spine, queue = 'q'): Promise<string[]> {
  return (await spine.client.lrange(spine.bull(queue, 'wait'), 0, -1)).reverse();
}

/** Goes on with both clocks. */
async function pass(spine: Spine, clock: ManualClock, ms: number): Promise<void> {
  await spine.setClock(Number(await spine.client.get(spine.keys.clock)) + ms);
  clock.advance(ms);
}

describe('I6 Redis’ clock leaps forward', () => {
  async function setup(task: { name: string }) {
    const spine = await Spine.virtual(task);
    const clock = new ManualClock();
    const coordinator = new Unchallenged();
    const started = await startLoop(spine, clock, coordinator);
    await spine.submit('q', [aJob('soon', { time: NOW + 1000 }), aJob('later', { time: NOW + 10 * MINUTE })]);
    await eventually(() => started.report.readiness().leading);
    return { spine, clock, coordinator, ...started };
  }

  test('dispatch is held with CLOCK_JUMP, the leadership kept; it goes on when the clock is back', async ({
    task,
  }) => {
    const { spine, clock, coordinator, report, logger } = await setup(task);
    await pass(spine, clock, 1000);
    await eventually(async () => expect(await waiting(spine)).toEqual(['soon']));
    await spine.setClock(NOW + 11 * MINUTE);
    await eventually(() => expect(report.readiness().reason).toMatch(/^CLOCK_JUMP/));
    const fed = coordinator.fedAt.length;
    await eventually(() => coordinator.fedAt.length > fed + 3);
    expect(await waiting(spine)).toEqual(['soon']);
    expect(logger.lines.filter((line) => line.includes('leapt'))).toHaveLength(1);
    await spine.setClock(NOW + 2000);
    await eventually(() => expect(report.readiness()).toMatchObject({ ready: true }));
    expect(await waiting(spine)).toEqual(['soon']);
  });

  test('held for a minute at most: then it is the time', async ({ task }) => {
    const { spine, clock, report } = await setup(task);
    await spine.setClock(NOW + 11 * MINUTE);
    await eventually(() => expect(report.readiness().ready).toBe(false));
    clock.advance(59_000);
    const polls = Number((await spine.client.info('commandstats')).match(/cmdstat_evalsha:calls=(\d+)/)?.[1]);
    await eventually(async () => {
      const info = await spine.client.info('commandstats');
      return Number(info.match(/cmdstat_evalsha:calls=(\d+)/)?.[1]) > polls + 5;
    });
    expect(await waiting(spine)).toEqual([]);
    clock.advance(1500);
    await eventually(async () => expect(await waiting(spine)).toEqual(['soon', 'later']));
    await eventually(() => expect(report.readiness().ready).toBe(true));
    await expectHealthy(spine, 'leader', 'fence');
  });

  test('a leap that this machine’s wall clock made too (it was suspended) holds nothing', async ({
    task,
  }) => {
    const { spine, clock } = await setup(task);
    await spine.setClock(NOW + 11 * MINUTE);
    clock.jumpWall(clock.now() + 11 * MINUTE);
    await eventually(async () => expect(await waiting(spine)).toEqual(['soon', 'later']));
  });

  test('a leap while somebody stands by: who takes over holds as well', async ({ task }) => {
    const spine = await Spine.virtual(task);
    const beats = new HeartbeatScripts(spine.shard);
    await beats.hold('somebody', 0, 5000, false);
    const clock = new ManualClock();
    const logger = new LineLogger();
    const coordinator = new StandaloneCoordinator(beats, {
      holder: 'me',
      ttl: 5000,
      takeOver: false,
      monotonic: clocks(clock).monotonic,
      logger,
    });
    await spine.submit('q', [aJob('a', { time: NOW + 10 * MINUTE })]);
    const { report } = await startLoop(spine, clock, coordinator);
    onTestFinished(() => coordinator.stop());
    await coordinator.start();
    expect(coordinator.terms()).toEqual([]);
    // The leap makes the beat look stale: the stand-by takes over.
    await spine.setClock(NOW + 11 * MINUTE);
    await eventually(() => coordinator.terms().length === 1);
    await eventually(() => expect(report.readiness().reason).toMatch(/^CLOCK_JUMP/));
    expect(await waiting(spine)).toEqual([]);
  });
});

describe.each(['on', 'off'] as const)('I6 Redis’ clock goes back, fence check %s', (fence) => {
  test('B23 nothing is fired again, nothing planned at or below the last tick; ticks go on from there', async ({
    task,
  }) => {
    const spine = await Spine.virtual(task, { fence });
    const clock = new ManualClock();
    const { report } = await startLoop(spine, clock, new Unchallenged());
    const first = { cur: NOW + 1000, curFire: NOW + 1000, next: NOW + 2000, nextFire: NOW + 2000 };
    const policies = '{"every":1000,"missed":"skip"}';
    await spine.schedules.upsert('q', 's', aSchedule(NOW, { ...first, policies, ...OVERLAPPING }), 'r');
    await spine.submit('q', [aJob('a', { time: NOW + 3000 })]);
    const expected: string[] = [];
    for (let tick = 1; tick <= 3; tick++) {
      await pass(spine, clock, 1000);
      expected.push(`s@${NOW + tick * 1000}`);
      await eventually(async () =>
        expect((await waiting(spine)).filter((id) => id !== 'a')).toEqual(expected),
      );
    }
    await eventually(async () => expect(await waiting(spine)).toContain('a'));
    for (const back of [500, 2000, 12 * 3_600_000]) {
      await spine.setClock(NOW + 3000 - back);
      const { popped } = report.readiness();
      await pass(spine, clock, 100);
      await eventually(async () => expect(await spine.client.zscore(spine.keys.plan(0), 'q:s')).toBeNull());
      expect(report.readiness().popped).toBe(popped);
    }
    const record = (await spine.jobs.get('q', 's')).record;
    expect(record).toMatchObject({ last: NOW + 3000, cur: NOW + 4000 });
    await spine.setClock(NOW + 3999);
    // Back in time by steps that can be believed: the clock watch follows the clock down.
    clock.advance(12 * 3_600_000);
    await pass(spine, clock, 1);
    expected.push(`s@${NOW + 4000}`);
    await eventually(async () => expect((await waiting(spine)).filter((id) => id !== 'a')).toEqual(expected));
    expect((await waiting(spine)).filter((id) => id === 'a')).toHaveLength(1);
    await eventually(() => expect(report.readiness()).toMatchObject({ ready: true, popped: 5 }));
    await expectHealthy(spine, 'leader', 'fence');
  });
});
