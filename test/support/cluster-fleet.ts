import { expect } from 'vitest';
import type { SchedulerOptions } from '../../src/config/scheduler-options.js';
import { BUCKETS } from '../../src/domain/buckets.js';
import { keepForFile } from './cleanup.js';
import { ClusterLoad } from './cluster-load.js';
import { eventually } from './eventually.js';
import type { FaultProxy } from './fault-proxy.js';
import { type LeaderCall, violationsOf } from './history-checker.js';
import type { ScriptHistory } from './history-scripts.js';
import { namespaceFor } from './namespace.js';
import type { RedisServer } from './redis-server.js';
import { Spine } from './spine.js';
import { expectHealthy } from './spine-doctor.js';
import { SchedulerProcess } from './spine-process.js';

/** ms; the shortest that a scheduler takes. */
export const TTL = 5000;
export const PARTITIONS = 16;

/** The ways of one instance to the stores, each through a proxy of its own. */
export interface Links {
  redis: FaultProxy;
  etcd: FaultProxy[];
}

/** What fleets share. */
export interface FleetGround {
  readonly redis: RedisServer;
  /** By place of an instance. */
  readonly links: readonly Links[];
  /** What an instance runs. */
  readonly history: ScriptHistory;
}

/** The schedulers of one namespace, with the fence check or without, and the load on it. */
export class Fleet {
  /** By place; undefined where none was started, the last one where it has ended. */
  readonly schedulers: (SchedulerProcess | undefined)[] = [];
  /** By place, of the process that was started last. */
  readonly ids: string[] = [];
  #starts = 0;

  private constructor(
    private readonly ground: FleetGround,
    readonly spine: Spine,
    readonly fence: 'on' | 'off',
    readonly load: ClusterLoad,
  ) {}

  static async open(ground: FleetGround, fence: 'on' | 'off'): Promise<Fleet> {
    const namespace = namespaceFor(`fence ${fence}`);
    const spine = await Spine.open({ url: ground.redis.url, namespace, choices: { fence } });
    return new Fleet(ground, spine, fence, await ClusterLoad.start(spine));
  }

  /** Starts the process of a place, whose earlier one has ended, and waits until it serves or stands by. */
  async startInstance(place: number, env: NodeJS.ProcessEnv = {}): Promise<void> {
    this.begin(place, env);
    await this.at(place).node.waitForLine('started', 60_000);
  }

  /** The same without waiting. */
  begin(place: number, env: NodeJS.ProcessEnv = {}): void {
    this.#starts += 1;
    const instanceId = `i${place}-${this.#starts}`;
    const links = this.ground.links[place];
    if (links === undefined) throw new Error(`no links at ${place}`);
    this.ids[place] = instanceId;
    const options: SchedulerOptions = {
      redis: links.redis.url,
      etcd: { hosts: links.etcd.map(({ port }) => `http://127.0.0.1:${port}`) },
      partitions: PARTITIONS,
      ttl: TTL,
      instanceId,
      scripts: { fence: this.fence },
    };
    this.schedulers[place] = keepForFile(() => SchedulerProcess.begin(this.spine, options, { env }));
  }

  /** The process at a place. */
  at(place: number): SchedulerProcess {
    const scheduler = this.schedulers[place];
    if (scheduler === undefined) throw new Error(`no scheduler at ${place}`);
    return scheduler;
  }

  /** Fence texts by bucket. */
  async fences(): Promise<string[]> {
    const stored = await this.spine.client.hgetall(this.spine.keys.fence);
    return Array.from({ length: BUCKETS }, (_, bucket) => stored[bucket] ?? '');
  }

  /** Who leads each bucket by its fence. */
  async holders(): Promise<string[]> {
    return (await this.fences()).map((fence) => fence.split('|')[3] ?? '');
  }

  /** Every place below `count` has a process that runs, and no other; those that were frozen go on. */
  async heal(count: number): Promise<void> {
    await Promise.all(this.schedulers.slice(count).map((scheduler) => scheduler?.node.kill9()));
    for (let place = 0; place < count; place++) {
      if (this.schedulers[place]?.node.running) this.at(place).node.sigcont();
      else await this.startInstance(place);
    }
  }

  /** What leaders' scripts did so far; later ones are those of a longer list. */
  calls(): readonly LeaderCall[] {
    return this.ground.history.callsOf(this.spine.namespace);
  }

  /** Waits until pops that came after the first `seen` calls have claimed every bucket. */
  async servedAgain(seen: number, timeout = 60_000): Promise<void> {
    await eventually(
      () => {
        const claimed = new Set<number>();
        for (const { script, claims } of this.calls().slice(seen)) {
          if (script !== 'pop-due') continue;
          for (const { first, last } of claims) for (let b = first; b <= last; b++) claimed.add(b);
        }
        return claimed.size === BUCKETS;
      },
      { timeout },
    );
  }

  /** Waits until the fence of each of these buckets is another than it was, and somebody's. */
  async handedOver(buckets: readonly number[], before: readonly string[], timeout = 60_000): Promise<void> {
    await eventually(
      async () => {
        const now = await this.fences();
        return buckets.every((bucket) => now[bucket] !== before[bucket]);
      },
      { timeout },
    );
  }

  /** The buckets that the process at a place leads by its fences. */
  async bucketsOf(place: number): Promise<number[]> {
    const holders = await this.holders();
    return holders.flatMap((holder, bucket) => (holder === this.ids[place] ? [bucket] : []));
  }

  /** How many records of these buckets are due now. */
  async dueIn(buckets: readonly number[]): Promise<number> {
    const { client, keys } = this.spine;
    const now = await this.spine.now();
    const counts = await Promise.all(buckets.map((bucket) => client.zcount(keys.due(bucket), '-inf', now)));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  async ledBy(places: readonly number[], timeout: number): Promise<void> {
    const ids = places.map((place) => this.ids[place]);
    await eventually(async () => (await this.holders()).every((holder) => ids.includes(holder)), { timeout });
  }

  /** Every process that runs leads its share of partitions, and none more than that. */
  async balanced(timeout: number): Promise<void> {
    await eventually(
      async () => {
        const running = this.schedulers.flatMap((scheduler, i) =>
          scheduler?.node.running ? [this.ids[i]] : [],
        );
        const holders = await this.holders();
        const partition = BUCKETS / PARTITIONS;
        const led = running.map((id) => holders.filter((holder) => holder === id).length / partition);
        const share = Math.ceil(PARTITIONS / running.length);
        expect({ led: led.reduce((sum, n) => sum + n, 0) }).toEqual({ led: PARTITIONS });
        for (const [i, count] of led.entries()) {
          expect(count, `${running[i]} of ${led}`).toBeGreaterThan(0);
          expect(count, `${running[i]} of ${led}`).toBeLessThanOrEqual(share);
        }
      },
      { timeout, every: 50 },
    );
  }

  async expectSound(): Promise<void> {
    const history = await this.load.settled(this.calls());
    expect(violationsOf(history, this.fence === 'on')).toEqual([]);
    expect(this.load.refusals).toEqual([]);
    await expectHealthy(this.spine);
  }
}
