import { resolveEtcdOptions } from '../config/etcd-options.js';
import { readCluster } from '../coordination/etcd/cluster-view.js';
import { openEtcd } from '../coordination/etcd/etcd-client.js';
import { EtcdKeys } from '../coordination/etcd/etcd-keys.js';
import { setLayout } from '../coordination/etcd/operator-changes.js';
import { BUCKETS } from '../domain/buckets.js';
import { Keys } from '../redis/keys.js';
import { startEtcd } from '../support/etcd-process.js';
import { BenchGuard } from './bench-guard.js';
import type { BenchProcess } from './bench-process.js';
import type { BenchRedis } from './bench-redis.js';
import { type Figures, type OwnResult, say, worst } from './figures.js';
import { startScheduler } from './processes.js';
import { SteadyStream } from './steady-stream.js';
import { until } from './until.js';

/** The namespace of BullMQ's prefix `bull`. */
const NAMESPACE = 'carillon';
const INSTANCES = 3;
const PARTITIONS = 16;
/** ms; the scheduler's default. */
const TTL = 10_000;
/** ms that nothing may take. */
const PATIENCE = 60_000;

/**
 * Three schedulers on three etcd members, under a stream of `jobs` one-time jobs a second: how long until the buckets of
 * one that is killed, stopped, added, or cut anew, are another's.
 */
export async function failover(redis: BenchRedis, jobs: number, rounds: number): Promise<OwnResult> {
  const guard = await BenchGuard.start();
  const etcd = await startEtcd({
    dir: guard.dir,
    members: 3,
    onSpawn: ({ pid }) => guard.owns(pid),
    instead: 'or name another in CARILLON_ETCD_SERVER.',
  }).catch(async (error: unknown) => {
    await guard.end();
    throw error;
  });
  const bench = new Failover(redis, etcd.hosts);
  const stream = await SteadyStream.start(redis, jobs);
  try {
    await bench.start();
    const kill: Figures[] = [];
    const drain: Figures[] = [];
    const join: Figures[] = [];
    const scale: Figures[] = [];
    for (let round = 0; round < rounds; round++) {
      const place = round % INSTANCES;
      kill.push({ takeoverMs: await bench.kill(place), worstLagMs: await stream.worstLag() });
      join.push({ settledMs: await bench.join(place), worstLagMs: await stream.worstLag() });
      drain.push({ handoverMs: await bench.drain(place), worstLagMs: await stream.worstLag() });
      await bench.join(place);
      await stream.worstLag();
      const upMs = await bench.scale(2 * PARTITIONS);
      scale.push({ upMs, downMs: await bench.scale(PARTITIONS), worstLagMs: await stream.worstLag() });
      const last = Object.entries({ kill, join, drain, scale }).map(([what, list]) => [
        what,
        worst(list.slice(-1)),
      ]);
      say(`round ${round + 1} of ${rounds}: ${JSON.stringify(Object.fromEntries(last))}`);
    }
    const { lost, doubled, early } = await stream.end();
    return {
      name: 'failover',
      jobs,
      rounds,
      ttlMs: TTL,
      lost,
      doubled,
      early,
      kill: worst(kill),
      drain: worst(drain),
      join: worst(join),
      scale: worst(scale),
    };
  } finally {
    await stream.close();
    await bench.stop();
    await etcd.stop();
    await guard.end();
  }
}

/** The schedulers, and who leads which bucket by its fence in Redis. */
class Failover {
  readonly #keys = new Keys(NAMESPACE);
  readonly #running: (BenchProcess | undefined)[] = [];
  readonly #ids: string[] = [];
  #starts = 0;

  constructor(
    private readonly redis: BenchRedis,
    private readonly hosts: readonly string[],
  ) {}

  async start(): Promise<void> {
    await Promise.all(Array.from({ length: INSTANCES }, (_, place) => this.#begin(place)));
    await this.#balanced();
  }

  /** @returns ms until the others lead what it led. */
  async kill(place: number): Promise<number> {
    return this.#replaced(place, (running) => running.kill());
  }

  /** @returns the same after SIGTERM. */
  async drain(place: number): Promise<number> {
    return this.#replaced(place, (running) => running.stop());
  }

  /** Starts one where none runs. @returns ms from the start of its process until it has its share. */
  async join(place: number): Promise<number> {
    const from = performance.now();
    await this.#begin(place);
    await this.#balanced();
    return performance.now() - from;
  }

  /** @returns ms until every bucket is led in the new cut. */
  async scale(partitions: number): Promise<number> {
    const before = await this.#fences();
    const client = openEtcd(resolveEtcdOptions({ hosts: this.hosts }));
    try {
      const keys = new EtcdKeys(NAMESPACE);
      const view = await readCluster(client, keys);
      const from = performance.now();
      await setLayout(client, keys, view, { partitions, pinned: true });
      await this.#until('the new cut', (fences) => fences.every((fence, bucket) => fence !== before[bucket]));
      return performance.now() - from;
    } finally {
      client.close();
    }
  }

  async stop(): Promise<void> {
    await Promise.all(this.#running.map((running) => running?.stop()));
  }

  async #begin(place: number): Promise<void> {
    this.#starts += 1;
    const instanceId = `bench-${this.#starts}`;
    this.#ids[place] = instanceId;
    this.#running[place] = await startScheduler(this.redis.url, {
      etcd: { hosts: [...this.hosts] },
      partitions: PARTITIONS,
      ttl: TTL,
      instanceId,
    });
  }

  async #replaced(place: number, end: (running: BenchProcess) => Promise<void>): Promise<number> {
    const before = await this.#fences();
    const mine = before.flatMap((fence, bucket) => (holderOf(fence) === this.#ids[place] ? [bucket] : []));
    const running = this.#running[place] as BenchProcess;
    const from = performance.now();
    const ended = end(running);
    await this.#until('the hand-over', (fences) => mine.every((bucket) => fences[bucket] !== before[bucket]));
    const took = performance.now() - from;
    await ended;
    this.#running[place] = undefined;
    return took;
  }

  /** Every process leads its share. */
  async #balanced(): Promise<void> {
    const size = BUCKETS / PARTITIONS;
    await this.#until('the sharing out', (fences) => {
      const led = this.#ids.map((id) => fences.filter((fence) => holderOf(fence) === id).length / size);
      const share = Math.ceil(PARTITIONS / INSTANCES);
      return led.reduce((sum, n) => sum + n, 0) === PARTITIONS && led.every((n) => n > 0 && n <= share);
    });
  }

  async #until(what: string, holds: (fences: string[]) => boolean): Promise<void> {
    await until(what, async () => holds(await this.#fences()), { timeout: PATIENCE, every: 5 });
  }

  async #fences(): Promise<string[]> {
    const stored = await this.redis.client.hgetall(this.#keys.fence);
    return Array.from({ length: BUCKETS }, (_, bucket) => stored[bucket] ?? '');
  }
}

function holderOf(fence: string): string {
  return fence.split('|')[3] ?? '';
}
