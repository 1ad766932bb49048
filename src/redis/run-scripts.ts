import { bucketOf } from '../domain/buckets.js';
import { CarillonError } from '../domain/errors.js';
import { identityOf } from '../domain/ids.js';
import { asNumber, asText } from './replies.js';
import type { Reply } from './script-runner.js';
import type { Shard } from './shard.js';
import { statusError } from './status.js';

/** One attempt, as its worker knows it. */
export interface HeldRun {
  queue: string;
  runId: string;
  /** BullMQ's lock of this attempt. */
  lock: string;
}

/** What a person asked of a run that a worker has. */
export interface Asked {
  verb: 'cancel' | 'pause';
  reason: string;
  /** ms since 1970 by Redis' clock. */
  at: number;
}

export interface ClaimedRun {
  /** Higher than that of every earlier attempt of any run of the shard; a decimal text below 2^53. */
  token: string;
  /** JSON text; undefined when no attempt kept one. */
  checkpoint: string | undefined;
  asked: Asked | undefined;
  /** Redis' clock, ms. */
  now: number;
}

/** The calls that a worker makes about its runs. */
export class RunScripts {
  constructor(readonly shard: Shard) {}

  /**
   * Issues the fencing token of an attempt, and renews its lock for `lockDuration` ms.
   * @throws CarillonError STALE_RUN
   */
  async claim(run: HeldRun, lockDuration: number, worker: object): Promise<ClaimedRun> {
    const rest = await this.#held('claim-run', 'allow-oom', run, [lockDuration, JSON.stringify(worker)]);
    const [token, checkpoint, asked] = rest.slice(0, 3).map(asText);
    return {
      token: token ?? '',
      checkpoint: checkpoint === '' ? undefined : checkpoint,
      asked: parseAsked(asked),
      now: asNumber(rest[3]),
    };
  }

  /** Keeps `value` (JSON text) for the next attempt. @throws CarillonError STALE_RUN */
  async checkpoint(run: HeldRun, token: string, value: string): Promise<void> {
    await this.#held('checkpoint-run', 'deny-oom', run, [token, value]);
  }

  /**
   * Looks for what is recorded under `key`, or records `effect` there with its commands, in one step.
   * @returns the JSON text that is recorded already; undefined when nothing was.
   * @throws CarillonError STALE_RUN, EFFECT_FAILED
   */
  async record(
    run: HeldRun,
    token: string,
    key: string,
    keep: number,
    effect?: { result: string; commands: readonly (readonly string[])[] },
  ): Promise<string | undefined> {
    const { result = '', commands = [] } = effect ?? {};
    const args = [token, key, keep, result, JSON.stringify(commands), effect === undefined ? 0 : 1];
    const { status, rest } = await this.#run('record-effect', 'deny-oom', run, args);
    if (status === 'KNOWN') return asText(rest[0]);
    if (status === 'EFFECT_FAILED') {
      const [index, message] = rest.map(asText);
      throw new CarillonError('EFFECT_FAILED', `Redis refused command ${index} of the effect: ${message}`, {
        field: 'commands',
        todo: 'Those before it in the list are done, nothing is recorded: give commands that fit their keys.',
      });
    }
    if (status !== 'OK') throw statusError(status);
    return undefined;
  }

  /**
   * The worker has stopped a run: it leaves it as was asked last.
   * @returns false when nothing is asked, or not any more: the worker still has the run.
   * @throws CarillonError STALE_RUN
   */
  async leave(run: HeldRun): Promise<boolean> {
    const args = [this.shard.base, bucketOfRun(run), run.queue, run.runId, run.lock];
    const { status, rest } = await this.shard.run('leave-run', 'allow-oom', args);
    if (status !== 'OK') throw statusError(status);
    return asText(rest[0]) !== '';
  }

  /** The run ends otherwise than was asked. */
  async dropOrder({ queue, runId }: HeldRun): Promise<void> {
    await this.shard.client.hdel(`${this.shard.base}${queue}:${runId}`, 'carillon:asked');
  }

  /** What is asked of each of `runs`, by a read; undefined for nothing. */
  async asked(runs: readonly { queue: string; runId: string }[]): Promise<(Asked | undefined)[]> {
    const reads = runs.map(({ queue, runId }) =>
      this.shard.client.hget(`${this.shard.base}${queue}:${runId}`, 'carillon:asked'),
    );
    return (await Promise.all(reads)).map((text) => parseAsked(text ?? ''));
  }

  async #held(
    name: string,
    flag: 'deny-oom' | 'allow-oom',
    run: HeldRun,
    args: (string | number)[],
  ): Promise<Reply[]> {
    const { status, rest } = await this.#run(name, flag, run, args);
    if (status !== 'OK') throw statusError(status);
    return rest;
  }

  #run(name: string, flag: 'deny-oom' | 'allow-oom', run: HeldRun, args: (string | number)[]) {
    return this.shard.run(name, flag, [this.shard.base, run.queue, run.runId, run.lock, ...args]);
  }
}

function bucketOfRun({ queue, runId }: { queue: string; runId: string }): number {
  return bucketOf(identityOf(queue, runId));
}

/** A field that somebody else wrote is nothing that was asked. */
function parseAsked(text: string | undefined): Asked | undefined {
  if (text === undefined || text === '') return undefined;
  try {
    const { verb, reason, at } = JSON.parse(text) as Partial<Asked>;
    if (verb !== 'cancel' && verb !== 'pause') return undefined;
    return { verb, reason: String(reason ?? ''), at: Number(at) };
  } catch {
    return undefined;
  }
}
