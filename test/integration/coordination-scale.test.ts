import { Queue as BullQueue, QueueEvents } from 'bullmq';
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest';
import { Queue } from '../../src/client/queue.js';
import { setLayout } from '../../src/coordination/etcd/operator-changes.js';
import { bucketOf } from '../../src/domain/buckets.js';
import { parseFence } from '../../src/domain/fence.js';
import { takeMark } from '../../src/queue/job-json.js';
import type { EtcdCluster } from '../../src/support/etcd-process.js';
import { EtcdState, startMember } from '../support/etcd-cluster.js';
import { startTestEtcd } from '../support/etcd-server.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';

let etcd: EtcdCluster;
beforeAll(async () => {
  etcd = await startTestEtcd();
}, 60_000);

const QUEUE = 'load';
const PENDING = Array.from({ length: 50 }, (_, i) => `far${i}`);

/** Producers that know nothing of partitions, and what reached the BullMQ queue. */
class Load {
  readonly state: EtcdState;
  readonly #queue: Queue;
  readonly #accepted: string[] = [];
  /** By job id: when the queue says that it was added, by Redis' clock in ms; each time. */
  readonly #added = new Map<string, number[]>();
  /** The highest token seen of each bucket, in its epoch. */
  readonly #tokens = new Map<string, number>();
  readonly #fallen: string[] = [];
  #going = true;
  #producing: Promise<void> = Promise.resolve();
  #watching: Promise<void> = Promise.resolve();

  private constructor(readonly spine: Spine) {
    this.state = new EtcdState(etcd.hosts, spine.namespace);
    this.#queue = new Queue(QUEUE, {
      connection: { url: spine.url },
      prefix: spine.prefix,
      namespace: spine.namespace,
    });
  }

  static async on(task: { name: string }): Promise<Load> {
    const load = new Load(await Spine.open({ url: sharedRedisUrl(), namespace: namespaceFor(task) }));
    const { url, prefix } = load.spine;
    const events = new QueueEvents(QUEUE, { connection: { url }, prefix, lastEventId: '0-0' });
    events.on('added', ({ jobId }, entry) => {
      load.#added.set(jobId, [...(load.#added.get(jobId) ?? []), Number(entry.split('-')[0])]);
    });
    await events.waitUntilReady();
    onTestFinished(async () => {
      load.#going = false;
      await Promise.all([load.#producing, load.#watching]);
      await events.close();
      await load.#queue.close();
    });
    load.#producing = load.#produce();
    load.#watching = load.#watch();
    return load;
  }

  /** Jobs at all times of the next half a second, one after the other. */
  async #produce(): Promise<void> {
    for (let batch = 0; this.#going; batch++) {
      const jobs = Array.from({ length: 40 }, (_, i) => ({
        name: 'job',
        data: {},
        opts: { jobId: `b${batch}-${i}`, delay: 20 + 12 * i },
      }));
      for (const job of await this.#queue.addBulk(jobs)) this.#accepted.push(job.id as string);
    }
  }

  /** Tokens of a bucket never fall. */
  async #watch(): Promise<void> {
    while (this.#going) {
      const fences = await this.spine.client.hgetall(this.spine.keys.fence);
      for (const [bucket, text] of Object.entries(fences)) {
        const fence = parseFence(text);
        const name = `${bucket} ${fence?.number} ${fence?.epochId}`;
        const token = fence?.token ?? -1;
        if (token < (this.#tokens.get(name) ?? 0)) this.#fallen.push(`${name}: ${token}`);
        this.#tokens.set(name, token);
      }
    }
  }

  /** A scheduler that takes part. */
  start(instanceId: string, partitions: number) {
    return startMember(this.spine, etcd.hosts, instanceId, { partitions });
  }

  /** Waits until all partitions of a layout of `count` are led, and no other. */
  async led(count: number): Promise<void> {
    await eventually(
      async () => {
        const { layout, partitions } = await this.state.read();
        expect(layout?.partitions).toBe(count);
        expect(partitions.map((led) => led.count)).toEqual(Array(count).fill(count));
      },
      { timeout: 20_000 },
    );
  }

  /** As `partitions scale` does. */
  async scale(partitions: number): Promise<void> {
    const { client, keys } = this.state;
    await eventually(async () =>
      setLayout(client, keys, await this.state.read(), { partitions, pinned: true }),
    );
  }

  /** Lets the load run on for so many more jobs. */
  async more(count = 400): Promise<void> {
    const until = this.#accepted.length + count;
    await eventually(() => this.#accepted.length >= until, { timeout: 20_000 });
  }

  /** Jobs that are due in an hour. */
  async addPending(): Promise<void> {
    await this.#queue.addBulk(
      PENDING.map((jobId) => ({ name: 'far', data: { jobId }, opts: { jobId, delay: 3_600_000 } })),
    );
  }

  /** Their records, by the hash that holds each. */
  async pending(): Promise<Record<string, string>> {
    const { client, keys } = this.spine;
    const found: Record<string, string> = {};
    for (const id of PENDING) {
      const key = keys.jobs(bucketOf(`${QUEUE}:${id}`));
      found[`${key} ${id}`] = (await client.hgetBuffer(key, `${QUEUE}:${id}`))?.toString('hex') ?? 'gone';
    }
    return found;
  }

  /** Ends the load; all that was accepted is in the queue, each once, none early, and `doctor` finds nothing. */
  async end(): Promise<void> {
    this.#going = false;
    await Promise.all([this.#producing, this.#watching]);
    await eventually(() => this.#accepted.every((id) => this.#added.has(id)), { timeout: 20_000 });
    expect([...this.#added].filter(([, times]) => times.length !== 1)).toEqual([]);
    expect(this.#added.size).toBe(this.#accepted.length);
    const { url, prefix } = this.spine;
    const queue = new BullQueue(QUEUE, { connection: { url }, prefix });
    const jobs = await queue.getWaiting(0, -1).finally(() => queue.close());
    expect(jobs).toHaveLength(this.#accepted.length);
    // I2: what it was due at stands in the job, of the same clock.
    const early = jobs.filter(
      ({ id, opts }) => (this.#added.get(String(id))?.[0] ?? 0) < (takeMark({ ...opts }) ?? Infinity),
    );
    expect(early.map(({ id }) => id)).toEqual([]);
    expect(this.#fallen).toEqual([]);
    await expectHealthy(this.spine);
  }
}

describe('partitions change their number under load', { timeout: 120_000 }, () => {
  test('8 → 16 → 4 by an operator: nothing is lost, none comes twice, no token falls', async ({ task }) => {
    const load = await Load.on(task);
    await Promise.all(['a', 'b', 'c'].map((id) => load.start(id, 8)));
    await load.led(8);
    await load.addPending();
    const pending = await load.pending();
    expect(Object.values(pending)).not.toContain('gone');
    for (const count of [16, 4]) {
      await load.more();
      await load.scale(count);
      await load.led(count);
    }
    await load.more();
    // No data moves.
    expect(await load.pending()).toEqual(pending);
    // Pinned: what instances are configured to changes nothing.
    expect((await load.state.read()).layout).toMatchObject({ partitions: 4, pinned: true });
    await load.end();
  });

  test('8 → 16 → 4 by rollouts of the configuration: while it is mixed nothing changes', async ({ task }) => {
    const load = await Load.on(task);
    const running = await Promise.all(['a', 'b', 'c'].map((id) => load.start(id, 8)));
    await load.led(8);
    for (const count of [16, 4]) {
      const before = (await load.state.read()).layout?.partitions as number;
      for (const [i, id] of ['a', 'b', 'c'].entries()) {
        const first = await load.state.read();
        await running[i]?.scheduler.stop();
        running[i] = await load.start(id, count);
        await load.more(200);
        if (i === 2) break;
        // Mixed, and at rest: one revision of the layout from the first to the last of them.
        await load.led(before);
        expect((await load.state.read()).layout).toEqual(first.layout);
      }
      await load.led(count);
    }
    await load.more();
    await load.end();
  });

  test('a drain and a stop hand over under load: no partition is without a leader for long', async ({
    task,
  }) => {
    const load = await Load.on(task);
    const [a] = await Promise.all(['a', 'b'].map((id) => load.start(id, 8)));
    await load.led(8);
    await load.more();
    const { client, keys } = load.state;
    await load.state.put(keys.drain('b'), { at: new Date().toISOString() });
    await eventually(async () => expect(await load.state.shares()).toEqual({ a: 8 }), { timeout: 15_000 });
    await load.more();
    await client.txn({ if: [], success: [{ delete: keys.drain('b') }] });
    await eventually(async () => expect(await load.state.shares()).toEqual({ a: 4, b: 4 }), {
      timeout: 15_000,
    });
    await load.more();
    await a?.scheduler.stop();
    // Stopped is handed over: no key of it is left.
    const { partitions } = await load.state.read();
    expect(partitions.filter(({ instanceId }) => instanceId === 'a')).toEqual([]);
    await load.led(8);
    await load.end();
  });
});
