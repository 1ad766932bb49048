import type { Redis } from 'ioredis';
import { confirmDatabase } from './database.js';
import { type Durability, ReplicaAcknowledgements } from './durability.js';
import { Keys } from './keys.js';
import { ensureLayout } from './layout.js';
import { type Reply, type ScriptArgument, ScriptRunner } from './script-runner.js';
import type { ScriptChoices, ScriptFlag } from './script-source.js';
import { redisError } from './status.js';

export interface ShardOptions {
  namespace: string;
  /** BullMQ's key prefix, without the colon. */
  prefix: string;
  choices?: ScriptChoices;
  /** Awaited before each call: a client without an offline queue refuses commands until it is connected. */
  ready?: () => Promise<unknown>;
  /** What each change waits for. Defaults to nothing. */
  durability?: Durability;
}

/** One shard of a namespace: its keys, its layout, and the way every script is called. */
export class Shard {
  readonly keys: Keys;
  /** What stands before a BullMQ queue's name in its keys. */
  readonly base: string;
  readonly namespace: string;
  /** Resolves once commands may be sent. */
  readonly ready: () => Promise<unknown>;
  readonly #prefix: string;
  readonly #runner: ScriptRunner;
  #layout: Promise<string> | undefined;
  readonly #durability: Durability | undefined;
  #acknowledgements: ReplicaAcknowledgements | undefined;

  constructor(
    readonly client: Redis,
    { namespace, prefix, choices = {}, ready = async () => undefined, durability }: ShardOptions,
  ) {
    this.ready = ready;
    this.keys = new Keys(namespace);
    this.namespace = namespace;
    this.base = `${prefix}:`;
    this.#prefix = prefix;
    this.#durability = durability;
    this.#runner = new ScriptRunner(client, choices);
  }

  /** Writes or compares the layout; later calls use what the first one found. */
  async open(): Promise<void> {
    await this.ready();
    await this.#openLayout();
  }

  /**
   * Runs a script; its first two arguments, tag and layout, are put before yours.
   * A namespace that was deleted under a running client is laid out again once.
   * @param durability what a change waits for; the shard's own where nothing is said.
   * @returns the status word and the rest of the reply.
   * @throws CarillonError
   */
  async run(
    name: string,
    flag: ScriptFlag,
    args: readonly ScriptArgument[],
    durability = this.#durability,
  ): Promise<{ status: string; rest: Reply[] }> {
    try {
      if (durability === undefined || flag === 'read-only') return await this.#runTwice(name, flag, args);
      await this.ready();
      this.#acknowledgements ??= new ReplicaAcknowledgements(this.client, this.keys);
      const sentOver = this.#acknowledgements.connection;
      const reply = await this.#runTwice(name, flag, args);
      if (reply.status === 'OK') await this.#acknowledgements.confirm(durability, sentOver);
      return reply;
    } catch (error) {
      throw redisError(error);
    }
  }

  async #runTwice(name: string, flag: ScriptFlag, args: readonly ScriptArgument[]) {
    const first = await this.#runOnce(name, flag, args);
    if (first.status !== 'WRONG_LAYOUT') return first;
    this.#layout = undefined;
    return this.#runOnce(name, flag, args);
  }

  async #runOnce(name: string, flag: ScriptFlag, args: readonly ScriptArgument[]) {
    await this.ready();
    const layout = await this.#openLayout();
    const reply = await this.#runner.run(name, flag, this.keys.none, [this.keys.tag, layout, ...args]);
    return { status: String(reply[0]), rest: reply.slice(1) };
  }

  #openLayout(): Promise<string> {
    if (this.#layout === undefined) {
      const opening = confirmDatabase(this.client).then(() =>
        ensureLayout(this.client, this.namespace, this.#prefix),
      );
      this.#layout = opening;
      opening.catch(() => {
        if (this.#layout === opening) this.#layout = undefined;
      });
    }
    return this.#layout;
  }
}
