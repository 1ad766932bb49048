import type { Redis } from 'ioredis';
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

  constructor(
    readonly client: Redis,
    { namespace, prefix, choices = {}, ready = async () => undefined }: ShardOptions,
  ) {
    this.ready = ready;
    this.keys = new Keys(namespace);
    this.namespace = namespace;
    this.base = `${prefix}:`;
    this.#prefix = prefix;
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
   * @returns the status word and the rest of the reply.
   * @throws CarillonError
   */
  async run(
    name: string,
    flag: ScriptFlag,
    args: readonly ScriptArgument[],
  ): Promise<{ status: string; rest: Reply[] }> {
    try {
      const first = await this.#runOnce(name, flag, args);
      if (first.status !== 'WRONG_LAYOUT') return first;
      this.#layout = undefined;
      return await this.#runOnce(name, flag, args);
    } catch (error) {
      throw redisError(error);
    }
  }

  async #runOnce(name: string, flag: ScriptFlag, args: readonly ScriptArgument[]) {
    await this.ready();
    const layout = await this.#openLayout();
    const reply = await this.#runner.run(name, flag, this.keys.none, [this.keys.tag, layout, ...args]);
    return { status: String(reply[0]), rest: reply.slice(1) };
  }

  #openLayout(): Promise<string> {
    if (this.#layout === undefined) {
      const opening = ensureLayout(this.client, this.namespace, this.#prefix);
      this.#layout = opening;
      opening.catch(() => {
        if (this.#layout === opening) this.#layout = undefined;
      });
    }
    return this.#layout;
  }
}
