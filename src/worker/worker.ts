import { hostname } from 'node:os';
import { performance } from 'node:perf_hooks';
import type { Redis } from 'ioredis';
import {
  type ResolvedWorkerOptions,
  type RunOptions,
  resolveWorkerOptions,
} from '../config/worker-options.js';
import { removesDead } from '../domain/dead-reason.js';
import { isCarillonError } from '../domain/errors.js';
import { BullWorker, type BullWorkerOptions } from '../queue/bullmq.js';
import type { Job } from '../queue/job.js';
import { checkConnection, closeRedis, type RedisConnectionOptions } from '../redis/connection.js';
import { defaultNamespace } from '../redis/layout.js';
import { RunScripts } from '../redis/run-scripts.js';
import { Shard } from '../redis/shard.js';
import { type WorkerFacts, WorkerRegistry } from '../redis/worker-registry.js';
import { defaultLogger, type Logger } from '../support/logger.js';
import { pause } from '../support/pause.js';
import type { Service } from '../support/service.js';
import { type Children, checkFile, FileProcessor, type Sandbox } from './file-processor.js';
import { type Handlers, type KnownHandler, resolveHandlers, unknownName } from './handlers.js';
import { LoopWatch } from './loop-watch.js';
import { OrderWatch } from './order-watch.js';
import { RunsAtWork } from './runs-at-work.js';
import { WorkerBeat } from './worker-beat.js';
import { connectionForBullmq, guardBullmqs, openOwn, type WorkerConnection } from './worker-connections.js';
import { WorkerJob } from './worker-job.js';

/** BullMQ's options of a worker, and ours. */
export interface WorkerOptions extends Omit<BullWorkerOptions, 'connection'>, RunOptions {
  /** Where Redis is: a URL, ioredis options, or an ioredis client. Defaults to 127.0.0.1:6379. */
  connection?: WorkerConnection;
}

/** BullMQ's processor function. */
// biome-ignore lint/suspicious/noExplicitAny: BullMQ's own types of an untyped processor
export type Processor = (job: any, token?: string, signal?: AbortSignal) => Promise<unknown>;

/** What the id of a worker begins with that hears orders, and so each lock of it: known from the fetch on. As lua/lib/run-ask.lua. */
const HEARS = 'carillon-';
/** Between looks at a namespace that is laid out for others, ms. */
const LAYOUT_AGAIN = 5000;

/**
 * BullMQ's Worker, whose runs have a fencing token, a lock that they know the end of, a time-out, a checkpoint, and can
 * be cancelled and paused by other processes. `close()` hands back what does not end within `shutdownGrace`, without
 * using an attempt.
 *
 * @example
 * const worker = new Worker('emails', {
 *   send: { effects: 'idempotent', handle: async (run) => mail(run.data, { key: run.idempotencyKey, signal: run.signal }) },
 * }, { connection: 'redis://localhost:6379', concurrency: 20 });
 * process.once('SIGTERM', () => worker.close());
 */
// biome-ignore lint/suspicious/noExplicitAny: payloads of untyped queues are BullMQ's `any`
export class Worker<Payloads = any> extends BullWorker<any, any, string> {
  readonly #settings: ResolvedWorkerOptions;
  readonly #logger: Logger;
  readonly #handlers: Map<string, KnownHandler> | undefined;
  readonly #atWork: RunsAtWork;
  readonly #registry: WorkerRegistry;
  readonly #connections: Redis[] = [];
  readonly #services: Service[] = [];
  readonly #stepsOf = new Map<string, Promise<unknown>>();
  readonly #shard: Shard;
  readonly #file: FileProcessor | undefined;
  readonly #leaving = new AbortController();
  #laidOut: Promise<void> | undefined;
  readonly #startedAt = new Date().toISOString();
  #draining = false;
  #closing: Promise<void> | undefined;

  /**
   * @param processor handlers by job name; or BullMQ's processor function; or the path of a file that exports one, which
   *   then runs in a process of its own: what does not stop there is killed.
   * @throws CarillonError INVALID_ID, INVALID_OPTION, INVALID_DURATION, UNSUPPORTED; nothing is opened then.
   */
  constructor(
    name: string,
    processor: Handlers<Payloads> | Processor | string | URL,
    options: WorkerOptions = {},
  ) {
    const settings = resolveWorkerOptions(name, options);
    checkConnection((options.connection ?? {}) as RedisConnectionOptions);
    const isFile = typeof processor === 'string' || processor instanceof URL;
    if (isFile) checkFile(processor);
    const logger = (options.logger ?? defaultLogger()).child({ queue: name });
    const handlers = isFile || typeof processor === 'function' ? undefined : resolveHandlers(processor);
    const late: { atWork?: RunsAtWork } = {};
    // Three parameters: BullMQ counts them before it makes a signal.
    const process: Processor = (job, token, signal) =>
      (late.atWork as RunsAtWork).process(job, token ?? '', signal);
    const { namespace: _n, shutdownGrace: _g, timeout: _t, effects: _e, logger: _l, ...rest } = options;
    super(name, isFile ? processor : process, {
      ...rest,
      connection: connectionForBullmq(options.connection),
      lockDuration: settings.lockDuration,
      lockRenewTime: settings.lockRenewTime,
      stalledInterval: settings.stalledInterval,
      // Not inside BullMQ's constructor: what it calls is not there yet.
      autorun: false,
    } as BullWorkerOptions);
    guardBullmqs(this as unknown as { backend: object });
    // BullMQ has fetched nothing yet, and its lock manager keeps the id that it was made with.
    Object.assign(this, { id: HEARS + this.id });
    this.createLockManager();
    this.#settings = settings;
    this.#handlers = handlers;
    this.#logger = logger;
    if (isFile) {
      // Private to BullMQ's Worker: only its pool can end a child.
      const children = Reflect.get(this, 'childPool') as Children;
      this.#file = new FileProcessor(this.processFn as Sandbox, children);
      this.processFn = process;
    }
    const file = this.#file;
    const client = openOwn(options.connection, 'worker', logger);
    const shard = new Shard(client, {
      namespace: settings.namespace ?? defaultNamespace(settings.prefix),
      prefix: settings.prefix,
    });
    this.#shard = shard;
    const scripts = new RunScripts(shard);
    this.#registry = new WorkerRegistry(shard);
    const who = { id: this.id, host: hostname(), pid: globalThis.process.pid };
    this.#atWork = new RunsAtWork({
      queue: name,
      scripts,
      logger: this.#logger,
      monotonic: () => performance.now(),
      lockDuration: settings.lockDuration,
      shutdownGrace: settings.shutdownGrace,
      timeoutOf: (job) => this.#timeoutOf(job),
      work: (run, lock) => {
        if (file !== undefined) return file.run(run, lock);
        if (typeof processor === 'function') return processor(run.job, lock, run.signal);
        const handler = handlers?.get(run.name);
        if (handler === undefined) throw unknownName(run.name, handlers?.keys() ?? []);
        return handler.handle(run);
      },
      kill: file === undefined ? undefined : (runId) => file.kill(runId),
      released: (runId) => this.lockManager.untrackJob(runId),
      onTrouble: (error) => this.emit('error', error),
      worker: () => ({ ...who, since: new Date().toISOString() }),
    });
    late.atWork = this.#atWork;
    const beat = new WorkerBeat(
      this.#registry,
      () => this.#facts(who),
      (note) => this.#drain(note),
      this.#logger,
    );
    const onDrain = (id: string) => {
      if (id === this.id) beat.beat().catch(() => undefined);
    };
    const subscriber = openOwn(options.connection, 'worker-orders', logger);
    this.#connections.push(client, subscriber);
    this.#services.push(
      beat,
      new OrderWatch(name, scripts, subscriber, this.#atWork, onDrain, this.#logger),
      new LoopWatch(
        settings.lockDuration,
        () => performance.now(),
        () => this.#atWork.seen(),
        this.#logger,
      ),
    );
    for (const service of this.#services) {
      // Each tries again by itself; the runs do not wait for it.
      service
        .start()
        .catch((error: unknown) =>
          this.#logger.warn({ error: String(error) }, 'a part of the worker did not start'),
        );
    }
    if (options.autorun !== false) this.run().catch((error: Error) => this.emit('error', error));
  }

  /** Begins to take runs, as soon as the namespace is known to be this worker's. BullMQ calls it, unless `autorun` is false. */
  override async run(): Promise<void> {
    // BullMQ refuses a second call.
    if (this.running) return super.run();
    this.running = true;
    this.#laidOut ??= this.#untilLaidOut();
    try {
      await this.#laidOut;
    } finally {
      this.running = false;
    }
    return super.run();
  }

  /**
   * Takes no more runs, aborts the signal of those at work, waits `shutdownGrace` for them, and hands back the rest without
   * using an attempt.
   * @param force waits for nothing: runs at work are started again when their locks have ended, in the same attempt, and count
   *   as stalled.
   */
  override close(force = false): Promise<void> {
    this.#closing ??= this.#shutDown(force);
    return this.#closing;
  }

  override async extendJobLocks(runIds: string[], tokens: string[], duration: number): Promise<string[]> {
    const sentAt = performance.now();
    const refused = await super.extendJobLocks(runIds, tokens, duration);
    const runs = runIds.map((runId, index) => ({ runId, lock: tokens[index] ?? '' }));
    this.#atWork.renewed(runs, refused, sentAt);
    return refused;
  }

  /**
   * BullMQ's step of one attempt. One that lost its lock may still be stopping when this worker fetches its run again: the
   * newer waits for it. BullMQ keeps locks by run id, and the end of the older would end the renewals of the newer.
   */
  override async processJob(
    ...args: Parameters<BullWorker['processJob']>
  ): ReturnType<BullWorker['processJob']> {
    const [job, token] = args;
    const runId = job.id ?? '';
    const before = this.#stepsOf.get(runId);
    if (before !== undefined) {
      this.lockManager.trackJob(runId, token, job.processedOn ?? Date.now());
      this.#atWork.lost(runId);
    }
    const step = (async () => {
      await before?.catch(() => undefined);
      return super.processJob(...args);
    })();
    this.#stepsOf.set(runId, step);
    try {
      return await step;
    } finally {
      if (this.#stepsOf.get(runId) === step) this.#stepsOf.delete(runId);
    }
  }

  protected override get Job(): typeof WorkerJob {
    return WorkerJob;
  }

  async #shutDown(force: boolean): Promise<void> {
    // BullMQ fetches nothing from here on, and ends when the last run has been given back.
    const closed = super.close(force);
    this.#leaving.abort();
    this.#atWork.shutDown();
    if (force) await this.#file?.killAll();
    await closed;
    for (const service of this.#services) await service.stop().catch(() => undefined);
    await Promise.all(this.#connections.map((client) => closeRedis({ client, owned: true })));
  }

  /**
   * Not a run is fetched that could not be claimed. While Redis does not answer, BullMQ waits for it.
   * @throws CarillonError INVALID_OPTION when Redis refuses the database: there is none to take runs from.
   */
  async #untilLaidOut(): Promise<void> {
    while (!this.#leaving.signal.aborted) {
      try {
        return await this.#shard.open();
      } catch (error) {
        if (isCarillonError(error, 'INVALID_OPTION')) throw error;
        if (!isCarillonError(error, 'WRONG_LAYOUT')) return;
        this.#logger.error({ error: error.message }, 'takes no runs: the namespace is laid out for others');
        this.emit('error', error);
        await pause(LAYOUT_AGAIN, this.#leaving.signal);
      }
    }
  }

  #timeoutOf(job: Job<unknown>): number {
    const own = (job.opts as { timeout?: unknown }).timeout;
    if (typeof own === 'number' && own > 0) return own;
    return this.#handlers?.get(job.name)?.timeout ?? this.#settings.timeout;
  }

  /** A drained worker finishes what it has and lives on, so that whoever drains it sees when it is empty. */
  #drain(note: string | undefined): void {
    const asked = note !== undefined;
    if (asked === this.#draining || this.#closing !== undefined) return;
    this.#draining = asked;
    this.#logger.info({ note }, asked ? 'drains: takes no more runs' : 'takes runs again');
    this.#atWork.draining = asked;
    if (asked) void this.pause(true);
    else void this.resume();
  }

  #facts(who: { id: string; host: string; pid: number }): WorkerFacts {
    const said = this.#handlers;
    return {
      ...who,
      queue: this.name,
      startedAt: this.#startedAt,
      concurrency: this.concurrency,
      running: this.#atWork.list().length,
      handlers: said
        ? Object.fromEntries([...said].map(([name, { effects }]) => [name, effects ?? null]))
        : { '*': this.#settings.effects ?? null },
      draining: this.#draining || this.#closing !== undefined,
      ...(removesDead(this.opts.removeOnFail) ? { removesDead: true } : {}),
    };
  }
}
