import type { EventEmitter } from 'node:events';
import { refuse } from '../config/check.js';
import type { DurabilityOptions } from '../config/durability-options.js';
import { resolveQueueOptions, type TimerOptions } from '../config/queue-options.js';
import type { Duration } from '../domain/durations.js';
import { CarillonError } from '../domain/errors.js';
import { tickRunId } from '../domain/ids.js';
import type { Instant } from '../domain/instant.js';
import { BullQueue, type BullQueueOptions, SpanKind, TelemetryAttributes } from '../queue/bullmq.js';
import { Job } from '../queue/job.js';
import { TimerBackend } from '../queue/timer-backend.js';
import { CalendarStore } from '../redis/calendar-store.js';
import { closeRedis, type OpenedRedis, openRedis, type RedisConnectionOptions } from '../redis/connection.js';
import { DeadScripts } from '../redis/dead-scripts.js';
import { GateScripts } from '../redis/gate-scripts.js';
import { JobScripts } from '../redis/job-scripts.js';
import { defaultNamespace } from '../redis/layout.js';
import { ParentScripts } from '../redis/parent-scripts.js';
import { ScheduleScripts } from '../redis/schedule-scripts.js';
import { warnOfServer } from '../redis/server-warning.js';
import { Shard } from '../redis/shard.js';
import { Submitter } from '../redis/submitter.js';
import { UnansweredJobs } from '../redis/unanswered-jobs.js';
import { WorkerRegistry } from '../redis/worker-registry.js';
import { defaultLogger } from '../support/logger.js';
import { DeadLetters } from './dead-letters.js';
import { Gates, QueueGate } from './gates.js';
import { type AddedNode, type GraphJob, Graphs } from './graph.js';
import type { JobChange } from './job-change.js';
import { type ControlResult, type EditOptions, JobControl } from './job-control.js';
import { type ChangedJobs, type ChangeJobsOptions, type JobVerb, ManyJobs } from './job-control-many.js';
import type { JobFilter } from './job-filter.js';
import type { GraphNodeInfo } from './job-graph.js';
import { checkDefaultOptions, type JobOptions } from './job-options.js';
import type { JobSchedulerJson, JobSchedulerOptions } from './job-scheduler-form.js';
import { JobSchedulers } from './job-schedulers.js';
import { type BulkJob, Producer } from './producer.js';
import { encodeTemplate } from './schedule-template.js';
import { Schedules } from './schedules.js';
import type { ScheduleTemplate } from './schedules-port.js';

/** BullMQ's options of a queue, and ours. */
export interface QueueOptions
  extends Omit<BullQueueOptions, 'connection' | 'defaultJobOptions'>,
    TimerOptions {
  /** Where Redis is: a URL, ioredis options, or an ioredis client. Defaults to 127.0.0.1:6379. */
  connection?: RedisConnectionOptions | BullQueueOptions['connection'];
  /** Options of each job that does not say otherwise. */
  defaultJobOptions?: JobOptions;
}

/** As BullMQ connects: to the local server, trying again for ever, ever more slowly. */
const PRODUCER_CONNECTION = {
  host: '127.0.0.1',
  port: 6379,
  retryStrategy: (times: number) => Math.max(Math.min(Math.exp(times), 20_000), 1000),
};

/**
 * BullMQ's Queue, whose delayed jobs wait in Carillon's timers instead of BullMQ's delayed set. A scheduler moves
 * them into the BullMQ queue at their time; what is due when it is added goes there at once.
 *
 * @example
 * const queue = new Queue('emails', { connection: { host: 'localhost' } });
 * await queue.add('send', { to: 'ann@example.com' }, { at: '2027-01-31T09:12:00Z', jobId: 'order-5' });
 */
export class Queue<
  // biome-ignore lint/suspicious/noExplicitAny: BullMQ's own default; without it untyped queues would not compile
  DataType = any,
  // biome-ignore lint/suspicious/noExplicitAny: BullMQ's own default
  ResultType = any,
  NameType extends string = string,
> extends BullQueue<
  Job<DataType, ResultType, NameType>,
  ResultType,
  NameType,
  DataType,
  ResultType,
  NameType
> {
  declare readonly backend: TimerBackend;
  /** What fires again and again: `queue.schedules.upsert('nightly', { cron: '30 2 * * *', missed: 'latest' }, template)`. */
  readonly schedules: Schedules<DataType, NameType, JobOptions>;
  /** Runs that have failed for good: `queue.dead.list()`, `queue.dead.requeue(id)`. */
  readonly dead: DeadLetters;
  /** What limits the dispatch of this queue: `queue.gate.set({ rate: 50, burst: 100 })`. */
  readonly gate: QueueGate;
  readonly #jobSchedulers: JobSchedulers;
  readonly #opened: OpenedRedis;
  readonly #producer: Producer<DataType, ResultType, NameType>;
  readonly #control: JobControl;
  readonly #graphs: Graphs;
  /** Settles once: connected, or closed before it was. */
  readonly #ready: Promise<void>;
  #abandon: () => void = () => undefined;

  /**
   * @throws CarillonError INVALID_ID, INVALID_OPTION, INVALID_DURATION, UNSUPPORTED; nothing is opened then.
   */
  constructor(name: string, options: QueueOptions = {}, backendFactory?: undefined) {
    const timers = resolveQueueOptions(name, options);
    if (options.defaultJobOptions !== undefined) checkDefaultOptions(options.defaultJobOptions);
    if (backendFactory !== undefined) {
      refuse(
        'backendFactory',
        backendFactory,
        'is Carillon’s own',
        'Leave the third argument out.',
        'UNSUPPORTED',
      );
    }
    const opened = openRedis((options.connection ?? {}) as RedisConnectionOptions, PRODUCER_CONNECTION);
    const prefix = options.prefix ?? 'bull';
    const shard = new Shard(opened.client, {
      namespace: timers.namespace ?? defaultNamespace(prefix),
      prefix,
      ready: () => this.#ready,
      ...(timers.durability && { durability: timers.durability }),
    });
    const scripts = new JobScripts(shard);
    const parts = { client: opened.client, shard, scripts, maxPayload: timers.maxPayload };
    super(name, { ...options, connection: asBullmqGivesIt(options.connection) }, (queueName, bullOptions) => {
      return new TimerBackend(queueName, bullOptions, parts);
    });
    const abandoned = new Promise<never>((_, reject) => {
      this.#abandon = () => reject(closed());
    });
    this.#ready = Promise.race([this.waitUntilReady(), abandoned]);
    const logger = options.logger ?? defaultLogger();
    this.#ready.then(
      () => warnOfServer(opened.client, logger),
      () => undefined,
    );
    this.#opened = opened;
    this.#control = new JobControl(this.backend, name, timers.maxPayload);
    const unanswered = new UnansweredJobs(opened.client, timers.offlineQueue);
    const submitter = new Submitter(scripts, name, {
      maxPending: timers.maxPending,
      wall: Date.now,
      answered: () => unanswered.answered(),
    });
    const limits = { ...timers, queue: name };
    this.#producer = new Producer(this, submitter, unanswered, limits, () => this.jobsOpts);
    const workers = new WorkerRegistry(shard);
    this.#graphs = new Graphs({
      jobs: scripts,
      parents: new ParentScripts(shard),
      workers,
      unanswered,
      limits,
      defaults: () => this.jobsOpts,
    });
    this.dead = new DeadLetters(this as never, new DeadScripts(shard), workers, timers.maxPayload);
    this.schedules = new Schedules({
      queueName: name,
      jobs: scripts,
      scripts: new ScheduleScripts(shard),
      calendars: new CalendarStore(shard),
      unanswered,
      stateOf: (runId) => this.getJobState(runId),
      repeatsOf: async (jobName) => (await workers.repeatsOf(name, [jobName]))[0] as string,
      encodeTemplate: (id, template) => encodeTemplate(id, template, this.jobsOpts, timers.maxPayload),
    });
    this.gate = new QueueGate(new Gates(new GateScripts(shard)), name);
    this.#jobSchedulers = new JobSchedulers(name, this.schedules as Schedules, hostZone());
  }

  /**
   * Adds a job: into the timers when it is due later, into the BullMQ queue when it is due now.
   * @returns BullMQ's Job with `answer` and `scheduledFor`.
   * @throws CarillonError; nothing was written, unless the code is REDIS_UNAVAILABLE: then repeat the call with the
   *   same `jobId` or `requestId`.
   */
  override add(
    name: NameType,
    data: DataType,
    opts?: JobOptions,
  ): Promise<Job<DataType, ResultType, NameType>>;
  /** The same for a queue whose type names a payload a job name: `new Queue<{ send: { to: string } }>(...)`. */
  override add<N extends keyof DataType & string>(
    name: N,
    data: DataType[N],
    opts?: JobOptions,
  ): Promise<Job<DataType[N], ResultType, N>>;
  override async add(name: string, data: unknown, opts?: JobOptions): Promise<unknown> {
    return super.add(name as NameType, data as DataType, opts);
  }

  protected override async addJob(
    name: NameType,
    data: DataType,
    opts?: JobOptions,
  ): Promise<Job<DataType, ResultType, NameType>> {
    this.#refuseClosed();
    const job = await this.#producer.add(name, data, opts);
    (this as EventEmitter).emit('waiting', job);
    return job;
  }

  /**
   * Adds many jobs. All are checked before any is sent. They are stored in calls of bounded size, and each one's
   * answer stands alone: a bulk is not atomic, as BullMQ's is not.
   * @param options.requestId names the bulk: sent again with the same id and jobs it adds only what is missing.
   * @param options.durability as the queue's, for this bulk.
   * @throws CarillonError; once jobs were sent, `items` tells what became of each.
   */
  override async addBulk(
    jobs: BulkJob<NameType, DataType>[],
    options: { requestId?: string; durability?: DurabilityOptions } = {},
  ): Promise<Job<DataType, ResultType, NameType>[]> {
    return this.trace(SpanKind.PRODUCER, 'addBulk', this.name, async (span, context) => {
      span?.setAttributes({
        [TelemetryAttributes.BulkNames]: jobs.map((job) => job.name),
        [TelemetryAttributes.BulkCount]: jobs.length,
      });
      this.#refuseClosed();
      return this.#producer.addBulk(jobs, context, options);
    });
  }

  /**
   * Adds jobs that wait for each other, of this queue and of others: `opts.after` names nodes or jobs that are there
   * already. The whole graph is checked before anything is sent, and parents are added first.
   * @param options.requestId names the graph: sent again with the same id and nodes it adds only what is missing.
   * @param options.durability as the queue's, for this graph.
   * @throws CarillonError CYCLE, UNKNOWN_PARENT, ID_IN_USE and what `add` throws.
   */
  async addGraph(
    nodes: readonly GraphJob[],
    options: { requestId?: string; durability?: DurabilityOptions } = {},
  ): Promise<AddedNode[]> {
    this.#refuseClosed();
    return this.#graphs.add(nodes, options);
  }

  /** All jobs that hang together with one: what it waits for, what waits for it, and so on; by `<queue>:<id>`, at most 1,000. */
  async getGraph(jobId: string): Promise<Map<string, GraphNodeInfo>> {
    return this.#graphs.read(jobId);
  }

  /**
   * BullMQ's form of `schedules.upsert`, with BullMQ's behaviour: the newest missed tick runs, runs may overlap, an
   * `every` starts at once.
   * @returns the run of the next tick, as BullMQ does; it is no job yet.
   * @throws CarillonError, also for a pattern without `tz` on a host whose zone is not UTC.
   */
  override async upsertJobScheduler(
    jobSchedulerId: NameType,
    repeatOpts: JobSchedulerOptions,
    jobTemplate: ScheduleTemplate<DataType, NameType, JobOptions> = {},
  ): Promise<Job<DataType, ResultType, NameType>> {
    const info = await this.#jobSchedulers.upsert(jobSchedulerId, repeatOpts, jobTemplate);
    const { name, data } = info.template;
    const runId = tickRunId(jobSchedulerId, info.next ?? 0);
    const job = new Job<DataType, ResultType, NameType>(
      this,
      name as NameType,
      data as DataType,
      { ...jobTemplate.opts },
      runId,
    );
    job.scheduledFor = info.next ?? 0;
    job.delay = Math.max(0, job.scheduledFor - job.timestamp);
    return job;
  }

  override async getJobScheduler(id: string): Promise<JobSchedulerJson<DataType> | undefined> {
    return (await this.#jobSchedulers.get(id)) as JobSchedulerJson<DataType> | undefined;
  }

  override async getJobSchedulers(
    start?: number,
    end?: number,
    asc?: boolean,
  ): Promise<JobSchedulerJson<DataType>[]> {
    return (await this.#jobSchedulers.list(start, end, asc)) as JobSchedulerJson<DataType>[];
  }

  override async getJobSchedulersCount(): Promise<number> {
    const { client, keys } = this.backend.shard;
    return Number((await client.hget(keys.queues, `${this.name}:schedules`)) ?? 0);
  }

  override removeJobScheduler(jobSchedulerId: string): Promise<boolean> {
    return this.#jobSchedulers.remove(jobSchedulerId);
  }

  /**
   * Makes a job due `delay` from now, wherever it waits: ms, or a text such as `'5m'`.
   * @throws CarillonError NOT_FOUND; CONFLICT when a worker runs it or it has ended: it ran at its old time.
   */
  async changeDelay(jobId: string, delay: Duration, options: EditOptions = {}): Promise<ControlResult> {
    return this.#control.changeDelay(jobId, delay, options);
  }

  /** Makes a job due at `at`, wherever it waits. @throws CarillonError as `changeDelay` */
  async rescheduleJob(jobId: string, at: Instant, options: EditOptions = {}): Promise<ControlResult> {
    return this.#control.reschedule(jobId, at, options);
  }

  /**
   * Keeps a job from running until it is resumed. One that BullMQ has is taken out of its queue, with its attempts; a
   * worker of ours that runs it is asked to hand it back.
   * @throws CarillonError NOT_FOUND; CONFLICT when it has ended; UNSUPPORTED when a plain BullMQ worker runs it.
   */
  async pauseJob(jobId: string, options: EditOptions & { note?: string } = {}): Promise<ControlResult> {
    return this.#control.pause(jobId, options);
  }

  /**
   * Lets a paused job go on; at once when its time has passed. Withdraws a pause that a worker was asked for.
   * @throws CarillonError NOT_FOUND; CONFLICT when it is not paused, or is being cancelled.
   */
  async resumeJob(jobId: string, options: EditOptions = {}): Promise<ControlResult> {
    return this.#control.resume(jobId, options);
  }

  /**
   * Takes a job back, wherever it is; its id is free again. A worker of ours that runs it is asked to stop.
   * @throws CarillonError NOT_FOUND; CONFLICT when it has ended; UNSUPPORTED when a plain BullMQ worker runs it.
   */
  async cancel(jobId: string, options: EditOptions & { reason?: string } = {}): Promise<ControlResult> {
    return this.#control.cancel(jobId, options);
  }

  /**
   * Changes what a job will be, while no worker has it: its name, data, or single options; what is not named stays.
   * @throws CarillonError INVALID_OPTION, also for a change of nothing; NOT_FOUND, CONFLICT
   */
  async updateJob(
    jobId: string,
    change: JobChange<DataType, NameType>,
    options: EditOptions = {},
  ): Promise<ControlResult> {
    return this.#control.update(jobId, change, options);
  }

  /**
   * Cancels, pauses, resumes, reschedules or updates all one-time jobs that a filter means, wherever they are, in slices.
   * Runs of schedules and jobs of plain BullMQ are meant only by `ids`; an id that is not met is answered with a problem.
   * @param options.dryRun tells which, and changes nothing.
   * @returns each job with what was done, or why not.
   * @throws CarillonError INVALID_OPTION, REDIS_UNAVAILABLE; a job's own refusal stands with it.
   */
  async changeJobs(verb: JobVerb, filter: JobFilter, options: ChangeJobsOptions = {}): Promise<ChangedJobs> {
    return new ManyJobs(this.backend, this.#control).change(verb, filter, options);
  }

  /** BullMQ's own chain of scheduled jobs is not used. @throws CarillonError UNSUPPORTED, when awaited */
  override get jobScheduler(): Promise<never> {
    const refused = Promise.reject(
      new CarillonError('UNSUPPORTED', 'BullMQ’s JobScheduler is not used: schedules live in the timers', {
        field: 'jobScheduler',
        todo: 'Use queue.schedules, or upsertJobScheduler and its getters.',
      }),
    );
    // Read without being awaited, as an inspector does, it must not end the process.
    refused.catch(() => undefined);
    return refused;
  }

  protected override get Job(): typeof Job {
    return Job;
  }

  /** Closes the queue, and the connection that it opened; a client that it was given stays open. */
  override async close(): Promise<void> {
    this.#abandon();
    await super.close();
    await closeRedis(this.#opened);
  }

  override async disconnect(): Promise<void> {
    await super.disconnect();
    if (this.#opened.owned) this.#opened.client.disconnect();
  }

  #refuseClosed(): void {
    if (this.closing === undefined || !this.#opened.owned) return;
    throw closed();
  }
}

function closed(): CarillonError {
  return new CarillonError('CLOSED', 'the queue is closed', { todo: 'Make a new Queue, or close it later.' });
}

/** Others read `queue.opts.connection` to make a worker, as @nestjs/bullmq does: it stays what was given. */
function asBullmqGivesIt(connection: QueueOptions['connection']): BullQueueOptions['connection'] {
  if (typeof connection === 'string') return { url: connection };
  return (connection ?? {}) as BullQueueOptions['connection'];
}

/** The zone that BullMQ would read a pattern in. */
function hostZone(): string {
  return new Intl.DateTimeFormat().resolvedOptions().timeZone;
}
