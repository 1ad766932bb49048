import type { Redis } from 'ioredis';
import { checkCall } from '../config/call-options.js';
import { refuse } from '../config/check.js';
import { CarillonError } from '../domain/errors.js';
import { type QueueStop, stopsOf } from '../domain/gate.js';
import { checkQueueName } from '../domain/ids.js';
import { WorkerSidePause } from '../queue/worker-side-pause.js';
import { CalendarStore } from '../redis/calendar-store.js';
import { closeRedis, type OpenedRedis, openRedis, SCHEDULER_CONNECTION } from '../redis/connection.js';
import { ALL_QUEUES, GateScripts } from '../redis/gate-scripts.js';
import { JobScripts } from '../redis/job-scripts.js';
import { Shard } from '../redis/shard.js';
import { redisError } from '../redis/status.js';
import { WorkerRegistry } from '../redis/worker-registry.js';
import {
  checkListing,
  type JobListOptions,
  type ListedJob,
  type ListOptions,
  listJobs,
  listQuarantine,
  type Page,
  type QuarantinedJob,
} from './admin-listing.js';
import { type AdminOptions, type ResolvedAdminOptions, resolveAdminOptions } from './admin-options.js';
import { Calendars } from './calendars.js';
import { type DoctorOptions, type DoctorReport, examine } from './doctor.js';
import { readQueues } from './doctor-counts.js';
import { type Leader, readLeader } from './doctor-leader.js';
import { redisTime } from './doctor-server.js';
import { forecastTimers, type LoadForecastOptions, type TimersForecast } from './forecast.js';
import { Gates } from './gates.js';
import { type HistoryEntry, type HistoryOptions, readHistory } from './history.js';
import { QueuePauses } from './queue-pauses.js';
import { requestOf } from './request-ids.js';
import { tellRepeats } from './tell-repeats.js';

/** A queue that our tier knows, and what waits in its timers. */
export interface QueueSummary {
  name: string;
  /** One-time jobs that wait for their time. */
  scheduled: number;
  /** One-time jobs that a person paused. */
  paused: number;
  /** What waits for the queue to be cured. */
  parked: number;
  /** One-time jobs that wait for others to end. */
  waiting: number;
  /** Runs whose time has come, in the queue's gate. */
  held: number;
  schedules: number;
  /** Why the queue is parked, and since when, ms. */
  broken: { since: number; reason: string } | undefined;
  /** Nothing is dispatched: its gate is on hold. */
  hold: QueueStop | undefined;
  /** Nothing is dispatched, and workers fetch nothing. */
  pause: QueueStop | undefined;
}

/** One question may take longer than a scheduler would wait: nothing hangs on it. */
const CONNECTION = {
  ...SCHEDULER_CONNECTION,
  commandTimeout: 10_000,
  socketTimeout: 12_000,
  connectionName: 'carillon:admin',
};

/**
 * Looks at a namespace whole, and mends what a person must: its queues, what waits, what was set aside, who leads.
 * Looking writes nothing.
 *
 * ```ts
 * const admin = new Admin({ connection: 'redis://127.0.0.1:6379' });
 * const report = await admin.doctor();
 * await admin.close();
 * ```
 */
export class Admin {
  readonly #options: Readonly<ResolvedAdminOptions>;
  readonly #opened: OpenedRedis;
  readonly #shard: Shard;
  readonly #scripts: JobScripts;

  /** @throws CarillonError INVALID_OPTION; nothing is opened then. */
  constructor(options: AdminOptions = {}) {
    this.#options = resolveAdminOptions(options);
    this.#opened = openRedis(this.#options.connection, CONNECTION);
    // Each call tells its own failure; without a listener ioredis prints to the console.
    if (this.#opened.owned) this.#opened.client.on('error', () => undefined);
    const { namespace, prefix, scripts } = this.#options;
    this.#shard = new Shard(this.#opened.client, { namespace, prefix, choices: scripts });
    this.#scripts = new JobScripts(this.#shard);
  }

  /** Every queue that has or had a job or a schedule of ours, or is stopped, by name. */
  async queues(): Promise<QueueSummary[]> {
    const { counts, broken } = await this.#asking((client) => readQueues({ client, keys: this.#shard.keys }));
    const gates = await new GateScripts(this.#shard).all();
    const everything = gates.get(ALL_QUEUES);
    const stopped = [...gates].filter(([name, { hold, paused }]) => name !== ALL_QUEUES && (hold || paused));
    const names = new Set([
      ...[...counts.keys()].map((field) => field.split(':')[0] ?? ''),
      ...broken.keys(),
      ...stopped.map(([name]) => name),
    ]);
    return [...names].sort().map((name) => {
      const count = (state: string) => counts.get(`${name}:${state}`) ?? 0;
      return {
        name,
        scheduled: count('scheduled'),
        paused: count('paused'),
        parked: count('parked'),
        waiting: count('waiting'),
        held: count('held'),
        schedules: count('schedules'),
        broken: broken.get(name),
        ...stopsOf(gates.get(name), everything),
      };
    });
  }

  /** A page of what stands in the timers, in no order. Records that cannot be read are left out; `doctor` names them. */
  async jobs(options: JobListOptions = {}): Promise<Page<ListedJob>> {
    checkListing(options, ['states', 'kind', 'tag', 'text']);
    if (!(await this.#exists())) return { items: [] };
    const page = await listJobs(this.#scripts, options);
    await tellRepeats(new WorkerRegistry(this.#shard), page.items);
    return page;
  }

  /** A page of what was set aside. */
  async quarantine(options: ListOptions = {}): Promise<Page<QuarantinedJob>> {
    checkListing(options);
    return this.#asking((client) => listQuarantine(client, this.#shard.keys, options));
  }

  /**
   * Puts a set-aside record back into its timers; one whose time has passed fires at once.
   * @throws CarillonError NOT_FOUND, BAD_RECORD when it still cannot be read, ID_IN_USE when its id was given again
   */
  async releaseQuarantine(queue: string, jobId: string, requestId?: string): Promise<void> {
    checkSubject(queue, jobId);
    await this.#scripts.releaseQuarantine(queue, jobId, 'release', requestOf({ requestId }));
  }

  /** Drops a set-aside record for good. @throws CarillonError NOT_FOUND */
  async discardQuarantine(queue: string, jobId: string, requestId?: string): Promise<void> {
    checkSubject(queue, jobId);
    await this.#scripts.releaseQuarantine(queue, jobId, 'discard', requestOf({ requestId }));
  }

  /**
   * The newest ends that BullMQ does not know of, newest first. The last 10,000 of a namespace are kept, for a week.
   * @throws CarillonError INVALID_OPTION, INVALID_ID
   */
  async history(options: HistoryOptions = {}): Promise<HistoryEntry[]> {
    checkCall(options, ['limit', 'queue', 'jobId']);
    const { limit, queue, jobId } = options;
    checkListing({ ...(limit === undefined ? {} : { limit }), ...(queue === undefined ? {} : { queue }) });
    if (jobId !== undefined && queue === undefined) {
      refuse('jobId', jobId, 'is an id of some queue', 'Give its queue as well.');
    }
    return this.#asking((client) => readHistory(client, this.#shard.keys, options));
  }

  /** Who leads; undefined when nobody ever did. */
  async leader(): Promise<Leader | undefined> {
    return this.#asking(async (client) =>
      readLeader({ client, keys: this.#shard.keys }, await redisTime(client)),
    );
  }

  /** Examines the namespace; see docs/doctor.md for what it looks at. */
  async doctor(options: DoctorOptions = {}): Promise<DoctorReport> {
    const { namespace, prefix, scripts } = this.#options;
    const virtualClock = scripts.clock === 'virtual';
    return this.#asking((client) => examine(client, { namespace, prefix, virtualClock }, options));
  }

  /** The named calendars that schedules leave out. */
  get calendars(): Calendars {
    return new Calendars(new CalendarStore(this.#shard));
  }

  /** What limits the dispatch of queues. */
  get gates(): Gates {
    return new Gates(new GateScripts(this.#shard));
  }

  /**
   * Pauses a queue: nothing of it is dispatched, and workers fetch nothing. Ticks of that time are judged by their
   * schedules' policy for missed ones; what is due once waits.
   * @throws CarillonError INVALID_ID
   */
  async pauseQueue(queue: string, note = ''): Promise<void> {
    await this.#asking((client) => this.#pauses(client).pause(queue, note));
  }

  /** @throws CarillonError CONFLICT while everything is paused */
  async resumeQueue(queue: string): Promise<void> {
    await this.#asking((client) => this.#pauses(client).resume(queue));
  }

  /** Pauses the dispatch of everything, and the workers of each queue known here. @returns those queues */
  async pauseAll(note = ''): Promise<string[]> {
    const names = (await this.queues()).map(({ name }) => name);
    return this.#asking((client) => this.#pauses(client).pauseAll(names, note));
  }

  /** Ends it; queues that were paused by themselves stay so. @returns the queues whose workers go on */
  async resumeAll(): Promise<string[]> {
    return this.#asking((client) => this.#pauses(client).resumeAll());
  }

  #pauses(client: Redis): QueuePauses {
    const workers = new WorkerSidePause(client, this.#options.prefix);
    return new QueuePauses(new GateScripts(this.#shard), workers);
  }

  /** What will fire over the next hours, by queue and minute; see docs/forecast.md. */
  async forecast(options: LoadForecastOptions = {}): Promise<TimersForecast> {
    const [shard, scripts] = [this.#shard, this.#scripts];
    return this.#asking((client) => forecastTimers({ client, shard, scripts }, options));
  }

  /** Closes the connection that it opened; a client that it was given stays open. */
  async close(): Promise<void> {
    await closeRedis(this.#opened);
  }

  /** Asking about a namespace must not create it, as every script of ours would. */
  async #exists(): Promise<boolean> {
    return this.#asking(async (client) => (await client.exists(this.#shard.keys.layout)) === 1);
  }

  async #asking<T>(ask: (client: Redis) => Promise<T>): Promise<T> {
    try {
      return await ask(this.#opened.client);
    } catch (error) {
      throw redisError(error);
    }
  }
}

/** Set-aside records may have ids that a submit would refuse; here they need only be some text. */
function checkSubject(queue: unknown, jobId: unknown): void {
  checkQueueName(queue);
  if (typeof jobId === 'string' && jobId !== '') return;
  throw new CarillonError('INVALID_ID', 'jobId must be a text', {
    field: 'jobId',
    given: jobId,
    todo: 'Give the id as `quarantine()` lists it.',
  });
}
