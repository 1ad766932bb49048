import { expect } from 'vitest';
import type { EtcdCluster, EtcdMember } from '../../src/support/etcd-process.js';
import { Fleet, type FleetGround, type Links } from './cluster-fleet.js';
import { EtcdGateway } from './etcd-gateway.js';
import { startTestEtcd } from './etcd-server.js';
import { eventually } from './eventually.js';
import { FaultProxy } from './fault-proxy.js';
import { ScriptHistory } from './history-scripts.js';
import { type RedisServer, startRedis } from './redis-server.js';

const INSTANCES = 3;
/** The place of one more instance, which a test may start. */
export const SPARE = INSTANCES;

/**
 * Three etcd members, a Redis, three schedulers and 16 partitions, each link through a proxy, under load without pause.
 * Everything twice over: two fleets of schedulers share stores and links, one of them without its fence check, so that
 * each fault meets both.
 */
export class Cluster implements FleetGround {
  readonly links: Links[] = [];
  readonly fleets: Fleet[] = [];

  private constructor(
    readonly redis: RedisServer,
    readonly etcd: EtcdCluster,
    readonly history: ScriptHistory,
  ) {}

  /** Ends with the file, or with the test that starts it. */
  static async start(): Promise<Cluster> {
    const [redis, etcd] = await Promise.all([startRedis(), startTestEtcd({ members: 3 })]);
    const cluster = new Cluster(redis, etcd, await ScriptHistory.record(redis.url));
    for (let place = 0; place <= SPARE; place++) await cluster.#addLinks();
    for (const fence of ['on', 'off'] as const) {
      cluster.fleets.push(await Fleet.open(cluster, fence));
    }
    await cluster.startAll();
    return cluster;
  }

  /** Starts one instance of each fleet and does not wait until it serves. */
  begin(place: number): void {
    for (const fleet of this.fleets) fleet.begin(place);
  }

  /** Starts one instance of each fleet; its earlier process has ended. */
  async startInstance(place: number, env: NodeJS.ProcessEnv = {}): Promise<void> {
    await Promise.all(this.fleets.map((fleet) => fleet.startInstance(place, env)));
  }

  async startAll(): Promise<void> {
    await Promise.all(Array.from({ length: INSTANCES }, (_, place) => this.startInstance(place)));
    await this.balanced();
  }

  /** Does the same to each fleet. */
  async each(act: (fleet: Fleet) => Promise<unknown> | unknown): Promise<void> {
    await Promise.all(this.fleets.map((fleet) => act(fleet)));
  }

  /** Waits until the instances at `places`, and they alone, lead all buckets. @returns ms that it took */
  async ledBy(places: readonly number[], timeout = 60_000): Promise<number> {
    const from = performance.now();
    await Promise.all(this.fleets.map((fleet) => fleet.ledBy(places, timeout)));
    return performance.now() - from;
  }

  /** Waits until every instance that runs leads its share. @returns ms that it took */
  async balanced(timeout = 60_000): Promise<number> {
    const from = performance.now();
    await Promise.all(this.fleets.map((fleet) => fleet.balanced(timeout)));
    return performance.now() - from;
  }

  /** An instance that does not answer is followed by the others; until then theirs are served without a break. */
  async othersTakeOver(victim: number, promised: number, what: string): Promise<void> {
    const others = [0, 1, 2].filter((place) => place !== victim);
    expectWithin(what, await this.ledBy(others), promised);
  }

  /** The fault is over: all that was accepted has come, once and not early, tokens never fell, and `doctor` agrees. */
  async expectSound(): Promise<void> {
    await Promise.all(this.fleets.map((fleet) => fleet.load.pause()));
    await Promise.all(this.fleets.map((fleet) => fleet.expectSound()));
    for (const fleet of this.fleets) fleet.load.resume();
  }

  /**
   * Runs a fault, heals what it left, and judges the whole: every process back, every partition led, every run accounted
   * for.
   */
  async undergoes(fault: () => Promise<void>): Promise<void> {
    try {
      await fault();
    } finally {
      await this.#heal();
    }
    await this.balanced();
    await this.expectSound();
  }

  async #heal(): Promise<void> {
    for (const { redis, etcd } of this.links) {
      await redis.resume();
      for (const proxy of etcd) await proxy.resume();
    }
    for (const member of this.etcd.members) {
      if (member.running) member.signal('SIGCONT');
      else await member.start();
    }
    for (const fleet of this.fleets) await fleet.heal(INSTANCES);
  }

  /** ms of Redis' clock. */
  now(): Promise<number> {
    return (this.fleets[0] as Fleet).spine.now();
  }

  /** Waits until `ms` have passed under load. */
  async passes(ms: number): Promise<void> {
    const until = performance.now() + ms;
    await eventually(() => performance.now() >= until, { timeout: ms + 10_000, every: 20 });
  }

  /** etcd's member that leads the others. */
  async etcdLeader(): Promise<EtcdMember> {
    return eventually(async () => {
      for (const member of this.etcd.members) {
        const { member: id, leader } = await new EtcdGateway(member.url).status();
        if (id === leader) return member;
      }
      return false;
    });
  }

  /** For what is done to etcd behind everybody's back. */
  get gateway(): EtcdGateway {
    return new EtcdGateway((this.etcd.members[0] as EtcdMember).url);
  }

  async #addLinks(): Promise<void> {
    const etcd = await Promise.all(
      this.etcd.hosts.map((host) => FaultProxy.start({ port: Number(new URL(host).port), protocol: 'raw' })),
    );
    this.links.push({ redis: await FaultProxy.start({ port: this.redis.port }), etcd });
  }
}

/** Takes what a promise of the design says may take `promised` ms; a machine that others load has five times as long. */
export function expectWithin(what: string, took: number, promised: number): void {
  process.stdout.write(`${what}: ${Math.round(took)} ms of ${promised}\n`);
  expect(took, what).toBeLessThan(5 * promised);
}
