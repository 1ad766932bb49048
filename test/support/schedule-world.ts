import { Queue } from 'bullmq';
import { onTestFinished } from 'vitest';
import { JobSchedulers } from '../../src/client/job-schedulers.js';
import type { ScheduleInfo } from '../../src/client/schedule-info.js';
import { encodeTemplate } from '../../src/client/schedule-template.js';
import { Schedules } from '../../src/client/schedules.js';
import type { SchedulerOptions } from '../../src/config/scheduler-options.js';
import { BUCKETS } from '../../src/domain/buckets.js';
import { CalendarStore } from '../../src/redis/calendar-store.js';
import type { OwnedRange } from '../../src/redis/leader-scripts.js';
import type { ScriptChoices } from '../../src/redis/script-source.js';
import { UnansweredJobs } from '../../src/redis/unanswered-jobs.js';
import { Planner } from '../../src/scheduler/planner.js';
import { Scheduler } from '../../src/scheduler/scheduler.js';
import { defaultLogger } from '../../src/support/logger.js';

import { onCleanup } from './cleanup.js';
import { eventually } from './eventually.js';
import { namespaceFor, sharedRedisUrl } from './namespace.js';
import { Spine } from './spine.js';
import { timeZonesOf } from './time-zones.js';

/** The queue of a world's schedules. */
export const QUEUE = 'q';

/**
 * Schedules, real schedulers and a clock that the test moves: days pass in milliseconds. The runs that were enqueued
 * stay in the BullMQ queue, in order, since no worker takes them.
 */
export class ScheduleWorld {
  readonly schedules: Schedules;
  #queue: Queue | undefined;

  private constructor(
    readonly spine: Spine,
    private readonly choices: ScriptChoices,
  ) {
    this.schedules = this.withCalendars(new CalendarStore(spine.shard));
  }

  /** The schedules, which ask `calendars`. */
  withCalendars(calendars: CalendarStore): Schedules {
    return new Schedules({
      queueName: QUEUE,
      jobs: this.spine.jobs,
      scripts: this.spine.schedules,
      calendars,
      unanswered: new UnansweredJobs(this.spine.client, 10_000),
      stateOf: (runId) => this.queue.getJobState(runId),
      repeatsOf: async () => 'may run twice',
      encodeTemplate: (id, template) => encodeTemplate(id, template, {}, 1_000_000),
    });
  }

  /**
   * A namespace of its own whose clock stands at `time`, an ISO text. Choose one in the past: history is trimmed by the
   * clock, and its entries carry the server's real time.
   */
  static async at(
    time: string,
    test: { name: string },
    choices: Pick<ScriptChoices, 'fence'> = {},
  ): Promise<ScheduleWorld> {
    const world = new ScheduleWorld(await Spine.virtual(test, choices), { clock: 'virtual', ...choices });
    await world.setClock(time);
    return world;
  }

  /** A namespace of its own by Redis' own clock. */
  static async live(test: { name: string }): Promise<ScheduleWorld> {
    const spine = await Spine.open({ url: sharedRedisUrl(), namespace: namespaceFor(test) });
    return new ScheduleWorld(spine, { clock: 'server' });
  }

  /** BullMQ's own view of the queue; it closes with the test. */
  get queue(): Queue {
    if (this.#queue === undefined) {
      const { hostname, port } = new URL(this.spine.url);
      const queue = new Queue(QUEUE, {
        prefix: this.spine.prefix,
        connection: { host: hostname, port: Number(port) },
      });
      queue.on('error', () => undefined);
      onCleanup(`queue of ${this.spine.namespace}`, () => queue.close());
      this.#queue = queue;
    }
    return this.#queue;
  }

  /** BullMQ's form of the schedules, as on a host in `zone`. */
  jobSchedulers(zone = 'UTC'): JobSchedulers {
    return new JobSchedulers(QUEUE, this.schedules, zone);
  }

  /** A scheduler that leads at once; it stops with the test. */
  async startScheduler(over: Partial<SchedulerOptions> = {}): Promise<Scheduler> {
    const scheduler = new Scheduler({ ...this.schedulerOptions, ...over });
    onTestFinished(() => scheduler.stop());
    await scheduler.start();
    return scheduler;
  }

  /** What a scheduler of this world is started with; plain data, so that another process can be given it. */
  get schedulerOptions(): SchedulerOptions {
    const { url, namespace, prefix } = this.spine;
    return {
      redis: url,
      namespace,
      prefix,
      // A clock that leaps wakes nobody.
      pollInterval: this.choices.clock === 'virtual' ? 50 : 1000,
      takeOver: true,
      scripts: this.choices,
    };
  }

  async setClock(time: string | number): Promise<void> {
    await this.spine.setClock(typeof time === 'number' ? time : Date.parse(time));
  }

  async now(): Promise<number> {
    if (this.choices.clock === 'server') return this.spine.now();
    return Number(await this.spine.client.get(this.spine.keys.clock));
  }

  /** Moves the clock to `time` and lets the running scheduler do all that is due then. */
  async passTo(time: string | number): Promise<void> {
    await this.setClock(time);
    // What a scheduler's housekeeper does once in a minute of real time: timers that were far come within sight.
    await this.spine.leader.refreshHeads([{ first: 0, last: BUCKETS - 1, servedFrom: 0, fence: '' }]);
    await this.settle();
  }

  /** Moves the clock from now to `end` in steps, each done before the next; `step` in ms. */
  async passBy(step: number, end: string): Promise<void> {
    for (let at = (await this.now()) + step; at <= Date.parse(end); at += step) await this.passTo(at);
  }

  /** Moves the clock to when runs that wait are looked at next, or a little on where none does. */
  async look(): Promise<void> {
    const now = await this.now();
    const looks = await this.#looks(now);
    await this.passTo(looks.length > 0 ? Math.min(...looks) : now + 250);
  }

  /** Lets what waits have its turn up to `end`: an ISO text or ms; `between` is done before each look. */
  async lookUntil(end: string | number, between: () => Promise<void>): Promise<void> {
    const until = typeof end === 'number' ? end : Date.parse(end);
    for (;;) {
      await between();
      const next = Math.min(...(await this.#looks(await this.now())));
      if (next > until) break;
      await this.passTo(next);
    }
    await this.passTo(until);
  }

  /** When each schedule is looked at for the sake of its waiting runs; ms. */
  async #looks(now: number): Promise<number[]> {
    const ids = (await this.list()).map(({ id }) => id);
    const found = await Promise.all(ids.map((id) => this.spine.jobs.get(QUEUE, id)));
    const looks = found.map(({ record }) => (record?.kind === 'schedule' ? record.check : 0));
    return looks.filter((at) => at > now);
  }

  /** Waits until nothing is due and nothing asks for the planner. */
  async settle(): Promise<void> {
    const { client, keys } = this.spine;
    const now = await this.now();
    await eventually(
      async () => {
        const asked = client.pipeline();
        for (let bucket = 0; bucket < BUCKETS; bucket++) {
          asked.zcount(keys.due(bucket), '-inf', now).zcount(keys.plan(bucket), '-inf', now);
        }
        return (await asked.exec())?.every(([error, count]) => error === null && count === 0) ?? false;
      },
      { timeout: 15_000, every: 10 },
    );
  }

  /** Waits until so many runs were enqueued. */
  async untilRuns(count: number, timeout = 20_000): Promise<void> {
    await eventually(async () => (await this.runIds()).length >= count, { timeout });
  }

  /** Starts a scheduler, lets it do what is due, and stops it. */
  async serveOnce(): Promise<void> {
    const scheduler = await this.startScheduler();
    await this.settle();
    await scheduler.stop();
  }

  /** One batch of the planner alone, as the leader of `owned`: what a scheduler does between two pops. */
  async plan(owned: readonly OwnedRange[]): Promise<void> {
    const buckets = Array.from({ length: BUCKETS }, (_, bucket) => bucket);
    const zones = timeZonesOf(this.spine);
    await new Planner(defaultLogger(), new CalendarStore(this.spine.shard), zones).plan(
      this.spine.leader,
      owned,
      buckets,
    );
  }

  /** Every schedule, by id. */
  async list(): Promise<ScheduleInfo[]> {
    const found: ScheduleInfo[] = [];
    for await (const info of this.schedules.list()) found.push(info);
    return found.sort((a, b) => (a.id < b.id ? -1 : 1));
  }

  /** The runs of one schedule, or of all, in the order of enqueueing: their scheduled times as ISO texts. */
  async runs(id?: string): Promise<string[]> {
    const found = (await this.runIds()).filter((run) => id === undefined || run.startsWith(`${id}@`));
    return found.map((run) => new Date(Number(run.split('@').at(-1))).toISOString().replace('.000Z', 'Z'));
  }

  /** The ids of all runs, in the order of enqueueing. */
  async runIds(): Promise<string[]> {
    return (await this.spine.client.lrange(this.spine.bull(QUEUE, 'wait'), 0, -1)).reverse();
  }

  /** Ends every run that stands in the queue, as a worker that keeps no finished job would; {@link runs} keeps its id. */
  async endRuns(): Promise<void> {
    const keys = (await this.runIds()).map((id) => this.spine.bull(QUEUE, id));
    if (keys.length > 0) await this.spine.client.del(...keys);
  }

  /** Forgets the runs so far, as a worker that keeps no finished jobs would. */
  async clearRuns(): Promise<void> {
    const ids = await this.runIds();
    const keys = ids.map((id) => this.spine.bull(QUEUE, id));
    await this.spine.client.del(this.spine.bull(QUEUE, 'wait'), ...keys);
  }

  /** What became of a schedule's ticks, oldest first: `<what> <scheduled time> <reason>`. */
  async ledger(id: string): Promise<string[]> {
    const rows = await this.spine.schedules.ledger(QUEUE, id);
    return rows.map(({ what, scheduledFor, reason }) =>
      `${what} ${new Date(scheduledFor).toISOString().replace('.000Z', 'Z')} ${reason}`.trim(),
    );
  }

  /** What ended without a run, oldest first: `<what> <scheduled time> <reason>`. */
  async history(): Promise<string[]> {
    const entries = await this.spine.client.xrange(this.spine.keys.history, '-', '+');
    return entries.map(([, fields]) => {
      const { what, scheduledFor, reason } = Object.fromEntries(
        Array.from({ length: fields.length / 2 }, (_, i) => [fields[i * 2], fields[i * 2 + 1]]),
      );
      return `${what} ${new Date(Number(scheduledFor)).toISOString().replace('.000Z', 'Z')} ${reason}`;
    });
  }
}
