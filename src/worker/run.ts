import { checkCall } from '../config/call-options.js';
import { checkInteger, refuse } from '../config/check.js';
import { type Duration, parseDuration } from '../domain/durations.js';
import { CarillonError } from '../domain/errors.js';
import { idempotencyKeyOf, jobIdOfRun } from '../domain/ids.js';
import { DelayedError } from '../queue/bullmq.js';
import type { Job } from '../queue/job.js';
import type { ClaimedRun, HeldRun, RunScripts } from '../redis/run-scripts.js';
import type { Lease } from './lease.js';

/** How long what `once` recorded is known, ms. */
const KEPT = 7 * 86_400_000;
const LONGEST_KEY = 512;
/** Lua hands a command on as so many values, which it can of a few thousand. */
const LONGEST_COMMAND = 1000;

/** A command of Redis with its arguments, as `once` runs it: `['incrby', 'balance:5', 10]`. */
export type RedisCommand = readonly [string, ...(string | number)[]];

/** What `once` lets its function do besides returning a result. */
export interface Effect {
  /** Runs in the same step that records the result: both happen, or neither. Its keys are in Redis as you write them. */
  command(...command: RedisCommand): void;
}

export interface OnceOptions {
  /** How long the key is known. Defaults to 7 days; after it the same key is new. */
  keep?: Duration;
}

export interface RunParts {
  job: Job<unknown>;
  held: HeldRun;
  claimed: ClaimedRun;
  lease: Lease;
  signal: AbortSignal;
  scripts: RunScripts;
}

/** One attempt of a run, as its handler gets it. */
export class Run<Data = unknown> {
  /** The job, or the schedule, that fired. */
  readonly jobId: string;
  /** Its id in BullMQ: the job's own, or `<schedule>@<ms>` for a tick. */
  readonly runId: string;
  readonly name: string;
  readonly data: Data;
  /** The nominal instant, ms since 1970; jitter and lateness never change it. */
  readonly scheduledFor: number;
  /** ms from the scheduled time to the start of this attempt, by Redis' clock. */
  readonly lateBy: number;
  /** 1 for the first try. Only a failure makes it higher: a run whose worker was lost comes again in the same attempt. */
  readonly attempt: number;
  /** How often a worker has fetched it, this time included: after a lost worker, a hand-back or a snooze too. By BullMQ's count. */
  readonly starts: number;
  /** The same in every attempt of this run and in no other run: hand it to systems that take such keys. */
  readonly idempotencyKey: string;
  /** Higher in every later attempt; a whole number below 2^53 as a text. Hand it to stores that compare it. */
  readonly fencingToken: string;
  /** Aborts on shutdown, cancel, pause, time-out, and when the lock can no longer be trusted; `reason` says which. */
  readonly signal: AbortSignal;
  /** BullMQ's own job. */
  readonly job: Job<unknown>;
  readonly #parts: RunParts;
  #checkpoint: string | undefined;

  constructor(parts: RunParts) {
    const { job, held, claimed, signal, scripts } = parts;
    this.#parts = parts;
    this.#checkpoint = claimed.checkpoint;
    this.job = job;
    this.runId = held.runId;
    this.jobId = jobIdOfRun(held.runId);
    this.name = job.name;
    this.data = job.data as Data;
    this.scheduledFor = job.scheduledFor;
    this.lateBy = Math.max(0, claimed.now - job.scheduledFor);
    this.attempt = job.attemptsMade + 1;
    this.starts = job.attemptsStarted;
    this.idempotencyKey = idempotencyKeyOf(scripts.shard.namespace, held.queue, held.runId, job.scheduledFor);
    this.fencingToken = claimed.token;
    this.signal = signal;
  }

  /** What the last `checkpoint` of this or an earlier attempt kept; undefined when none did. */
  lastCheckpoint<T = unknown>(): T | undefined {
    return this.#checkpoint === undefined ? undefined : (JSON.parse(this.#checkpoint) as T);
  }

  /**
   * Keeps how far this run has come, for its next attempt: after a crash, a pause, a failure, a deployment.
   * @throws CarillonError STALE_RUN when a later attempt has begun, or the lock has ended; INVALID_OPTION for what is no JSON
   */
  async checkpoint(value: unknown): Promise<void> {
    const text = jsonOf('checkpoint', value);
    const { scripts, held, claimed } = this.#trusted();
    await scripts.checkpoint(held, claimed.token, text);
    this.#checkpoint = text;
  }

  /** A line of this run's log, which BullMQ keeps with it. */
  async log(line: string): Promise<void> {
    await this.job.log(line);
  }

  /**
   * Has an effect once: whoever calls it again with this key of this queue, in another attempt or another run, gets the first
   * result and `act` is not called. The result, and the Redis commands that `act` gave, are stored in one step, which only
   * the newest attempt may do: these are there once, whatever dies. What else `act` does (a mail, a payment) may happen
   * again if the worker dies behind it and before that step: hand {@link idempotencyKey} to such systems.
   * @param key of your business (`invoice-5`), or something below {@link idempotencyKey}
   * @throws CarillonError STALE_RUN; EFFECT_FAILED when Redis refuses a command; whatever `act` throws
   */
  async once<T>(key: string, act: (effect: Effect) => Promise<T> | T, options: OnceOptions = {}): Promise<T> {
    if (
      typeof key !== 'string' ||
      key === '' ||
      Buffer.byteLength(key) > LONGEST_KEY ||
      !key.isWellFormed()
    ) {
      refuse('key', key, `must be a text of 1 to ${LONGEST_KEY} bytes`, 'Give the name of the effect.');
    }
    checkCall(options, ['keep']);
    const keep = options.keep === undefined ? KEPT : parseDuration(options.keep, { field: 'keep', min: 1 });
    const { scripts, held, claimed } = this.#trusted();
    const known = await scripts.record(held, claimed.token, key, keep);
    if (known !== undefined) return resultOf<T>(known);
    const commands: string[][] = [];
    const result = await act({ command: (...command) => void commands.push(checkCommand(command)) });
    this.#trusted();
    const effect = { result: result === undefined ? '' : jsonOf('result', result), commands };
    const first = await scripts.record(held, claimed.token, key, keep, effect);
    return first === undefined ? result : resultOf<T>(first);
  }

  /**
   * Puts the run off without using an attempt: it comes again after `delay`, with its checkpoint. Never returns.
   * @example if (await isRateLimited()) await run.snooze('30s');
   */
  async snooze(delay: Duration): Promise<never> {
    const ms = checkInteger('delay', parseDuration(delay, { field: 'delay' }), 0, Number.MAX_SAFE_INTEGER);
    const { held } = this.#trusted();
    await this.job.moveToDelayed(Date.now() + ms, held.lock);
    throw new DelayedError();
  }

  /** What only the holder of the lock may go on with. */
  #trusted(): RunParts {
    if (this.#parts.lease.isValid) return this.#parts;
    throw new CarillonError('STALE_RUN', 'the lock of this run can no longer be trusted', {
      todo: 'Stop: another worker may have started it.',
    });
  }
}

function jsonOf(field: string, value: unknown): string {
  let text: string | undefined;
  try {
    text = JSON.stringify(value);
  } catch {
    // A circle, or a bigint.
  }
  if (text === undefined) refuse(field, value, 'is nothing that JSON can hold', 'Give plain data.');
  return text;
}

function resultOf<T>(text: string): T {
  return (text === '' ? undefined : JSON.parse(text)) as T;
}

function checkCommand(command: readonly (string | number)[]): string[] {
  if (command.length > LONGEST_COMMAND) {
    refuse('command', command.length, `has more than ${LONGEST_COMMAND} parts`, 'Give several commands.');
  }
  const bad = command.findIndex((part) => typeof part !== 'string' && !Number.isFinite(part));
  if (command.length === 0 || bad >= 0) {
    refuse('command', command, 'must be texts and numbers', "Give ['incrby', 'key', 1].");
  }
  return command.map(String);
}
