import { Redis } from 'ioredis';
import { JobScripts } from '../../src/redis/job-scripts.js';
import type { Keys } from '../../src/redis/keys.js';
import { LeaderScripts, type OwnedRange, type PopResult } from '../../src/redis/leader-scripts.js';
import { newRequestId } from '../../src/redis/request-id.js';
import { ScheduleScripts } from '../../src/redis/schedule-scripts.js';
import type { ScriptChoices } from '../../src/redis/script-source.js';
import { Shard } from '../../src/redis/shard.js';
import type { SubmitItem, SubmitResult } from '../../src/redis/submit-batch.js';
import { Submitter } from '../../src/redis/submitter.js';
import { onCleanup } from './cleanup.js';
import { namespaceFor, sharedRedisUrl } from './namespace.js';

/** Where a virtual clock stands at first: 2027-01-15T08:00:00Z. */
export const NOW = 1_800_000_000_000;
/** The first incarnation that a virtual clock at {@link NOW} gives. */
export const INC = NOW * 1024;

export interface SpineOptions {
  url: string;
  namespace: string;
  /** Defaults to the namespace, so that queues of two tests never meet. */
  prefix?: string;
  choices?: ScriptChoices;
  /** For a client that goes through a proxy or must give up soon. */
  connection?: { commandTimeout?: number; maxRetriesPerRequest?: number | null; enableReadyCheck?: boolean };
}

/** The scripts of one namespace, called directly: what a queue, a scheduler and an operator do, without either. */
export class Spine {
  readonly jobs: JobScripts;
  readonly schedules: ScheduleScripts;
  readonly leader: LeaderScripts;
  readonly keys: Keys;
  /** What a client of this spine takes for the time: the virtual clock where there is one. */
  #wall: () => number;

  private constructor(
    readonly client: Redis,
    readonly shard: Shard,
    readonly url: string,
    readonly prefix: string,
    virtual: boolean,
  ) {
    this.#wall = virtual ? () => NOW : Date.now;
    this.jobs = new JobScripts(shard);
    this.schedules = new ScheduleScripts(shard);
    this.leader = new LeaderScripts(shard);
    this.keys = shard.keys;
  }

  /** Its connection closes with the test. */
  static async open({
    url,
    namespace,
    prefix = namespace,
    choices = {},
    connection,
  }: SpineOptions): Promise<Spine> {
    const client = new Redis(url, { maxRetriesPerRequest: null, retryStrategy: () => 50, ...connection });
    client.on('error', () => undefined);
    onCleanup(`spine of ${namespace}`, () => client.disconnect());
    const shard = new Shard(client, { namespace, prefix, choices });
    const spine = new Spine(client, shard, url, prefix, choices.clock === 'virtual');
    await spine.shard.open();
    return spine;
  }

  /** A namespace of its own on the shared server, whose clock stands at {@link NOW} until the test moves it. */
  static async virtual(test: { name: string }, choices: ScriptChoices = {}): Promise<Spine> {
    const spine = await Spine.open({
      url: sharedRedisUrl(),
      namespace: namespaceFor(test),
      choices: { clock: 'virtual', ...choices },
    });
    await spine.setClock(NOW);
    return spine;
  }

  get namespace(): string {
    return this.shard.namespace;
  }

  /** Sets the virtual clock; for spines with `choices: { clock: 'virtual' }`. */
  async setClock(ms: number): Promise<void> {
    await this.client.set(this.keys.clock, ms);
    this.#wall = () => ms;
  }

  /** Redis' own clock in ms. */
  async now(): Promise<number> {
    const [seconds, micros] = (await this.client.time()) as unknown as [string | number, string | number];
    return Number(seconds) * 1000 + Math.floor(Number(micros) / 1000);
  }

  /** Submits to one queue; the answers in order, without the clock's part in them. */
  async submit(
    queue: string,
    items: readonly SubmitItem[],
    { requestId = newRequestId(), maxPending = 0 } = {},
  ): Promise<Omit<SubmitResult, 'now'>[]> {
    const results = await new Submitter(this.jobs, queue, { maxPending, wall: () => this.#wall() }).submit(
      items,
      requestId,
    );
    return results.map(({ now: _, ...result }) => result);
  }

  /** Takes over all buckets as `holder` with `token`, as a scheduler's term does. */
  async lead(token = 1, holder = `h${token}`): Promise<OwnedRange[]> {
    const range = { first: 0, last: 255, servedFrom: 0, fence: `1|e|${token}|${holder}` };
    const { now } = await this.leader.takeOver([range]);
    const owned = [{ ...range, servedFrom: now }];
    await this.leader.refreshHeads(owned);
    return owned;
  }

  /** One pop. @throws Error when the clock was not believed. */
  async pop(owned: readonly OwnedRange[], over: Partial<PopOptions> = {}): Promise<PopResult> {
    const reply = await this.leader.popDue(owned, { limit: 200, bytes: 1_000_000, prove: true, ...over });
    if ('clockJumpedTo' in reply) throw new Error(`clock jump to ${reply.clockJumpedTo}`);
    return reply;
  }

  /** Pops until nothing moves any more; the sum of all. */
  async drain(owned: readonly OwnedRange[], over: Partial<PopOptions> = {}) {
    let popped = 0;
    const trouble: string[] = [];
    for (;;) {
      const reply = await this.pop(owned, over);
      popped += reply.popped;
      trouble.push(...reply.trouble);
      if (reply.popped === 0 && reply.trouble.length === 0) return { popped, trouble };
    }
  }

  /** A key of a BullMQ queue. */
  bull(queue: string, key: string): string {
    return `${this.prefix}:${queue}:${key}`;
  }
}

type PopOptions = Parameters<LeaderScripts['popDue']>[1];
