import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { hostname } from 'node:os';
import { join } from 'node:path';
import { performance } from 'node:perf_hooks';
import type { Redis } from 'ioredis';
import {
  type ResolvedSchedulerOptions,
  resolveSchedulerOptions,
  type SchedulerOptions,
} from '../config/scheduler-options.js';
import type { Coordinator } from '../coordination/coordinator.js';
import type { InstanceVersions } from '../coordination/etcd/cluster-view.js';
import { StandaloneCoordinator } from '../coordination/standalone.js';
import { DEFAULT_GRACE } from '../domain/schedule.js';
import { checkBullmq } from '../redis/bullmq-check.js';
import { CalendarStore } from '../redis/calendar-store.js';
import { closeRedis, type OpenedRedis, openAnother, SCHEDULER_CONNECTION } from '../redis/connection.js';
import { GateScripts } from '../redis/gate-scripts.js';
import { HeartbeatScripts } from '../redis/heartbeat-scripts.js';
import { LeaderScripts } from '../redis/leader-scripts.js';
import { ParentScripts } from '../redis/parent-scripts.js';
import { RECORD_FORMAT } from '../redis/record.js';
import { judgeServer, readServerFacts, requireSafeServer } from '../redis/server-check.js';
import { Shard } from '../redis/shard.js';
import { redisError } from '../redis/status.js';
import { TimeZoneStore } from '../redis/time-zone-store.js';
import { defaultLogger, type Logger } from '../support/logger.js';
import { packageRoot, resolvePackageDir } from '../support/package-root.js';
import { Service } from '../support/service.js';
import { DeadLetterWatch } from './dead-letter-watch.js';
import { handTo } from './dead-receivers.js';
import { DispatchReport, type Readiness } from './dispatch-report.js';
import { GateDrainer } from './gate-drainer.js';
import { Housekeeper } from './housekeeper.js';
import { IndexSweeper } from './index-sweeper.js';
import { ParentSweeper } from './parent-sweeper.js';
import { Planner } from './planner.js';
import { QueueProber } from './queue-prober.js';
import { reachRedis } from './reach-redis.js';
import { ShardLoop } from './shard-loop.js';
import { TimeZoneWatch } from './time-zone-watch.js';
import { WakeListener } from './wake-listener.js';

/**
 * Moves what is due into BullMQ's queues, on time and once. Without etcd run one for the work and one to
 * stand by; with it, any number share the work.
 *
 * ```ts
 * const scheduler = new Scheduler({ redis: 'redis://127.0.0.1:6379' });
 * await scheduler.start();
 * process.once('SIGTERM', () => scheduler.stop());
 * ```
 */
export class Scheduler extends Service {
  readonly #options: Readonly<ResolvedSchedulerOptions>;
  readonly #logger: Logger;
  #report: DispatchReport;
  #connections: OpenedRedis[] = [];
  #services: Service[] = [];
  #coordinatorTrouble: () => string | undefined = () => undefined;

  /** @throws CarillonError INVALID_OPTION for an unknown or bad option. */
  constructor(options: SchedulerOptions = {}) {
    super();
    this.#options = resolveSchedulerOptions(options);
    this.#logger = options.logger ?? defaultLogger();
    this.#report = new DispatchReport(this.#logger, () => performance.now());
  }

  /** Whether it is ready, what holds it if not, and what it did since it started. */
  readiness(): Readiness {
    const readiness = this.#report.readiness();
    if (!this.started) return { ...readiness, ready: false, reason: 'it is not started', leading: false };
    const trouble = this.#coordinatorTrouble();
    return trouble === undefined || !readiness.ready
      ? readiness
      : { ...readiness, ready: false, reason: `NOT_JOINED: ${trouble}` };
  }

  /**
   * Connects, checks Redis and BullMQ, and begins to lead or to stand by. A Redis that does not answer yet, or that
   * loads its data, is waited for.
   * @throws CarillonError UNSAFE_REDIS, INCOMPATIBLE_BULLMQ, WRONG_LAYOUT; REDIS_UNAVAILABLE after some ten seconds, and
   *   at once when Redis refuses the user or the password.
   */
  protected override async onStart(signal: AbortSignal): Promise<void> {
    const options = this.#options;
    const monotonic = () => performance.now();
    this.#report = new DispatchReport(this.#logger, monotonic);
    this.#checkBullmq();
    this.#checkGrace();
    const client = this.#connect('scheduler');
    const facts = await reachRedis(client, () => readServerFacts(client), signal, monotonic);
    requireSafeServer(judgeServer(facts), options.allowVolatile);
    const shard = new Shard(client, {
      namespace: options.namespace,
      prefix: options.prefix,
      choices: options.scripts,
    });
    await reachRedis(client, () => shard.open(), signal, monotonic);
    const scripts = new LeaderScripts(shard);
    const calendars = new CalendarStore(shard);
    const coordinator = await this.#coordinator(shard, monotonic);
    this.#coordinatorTrouble = () => coordinator.trouble();
    const timeZones = new TimeZoneWatch({
      store: new TimeZoneStore(shard),
      scripts,
      calendars,
      owned: () => loop.owned(),
      logger: this.#logger,
      now: () => loop.redisNow(),
      host: options.timeZones,
    });
    const loop: ShardLoop = new ShardLoop({
      scripts,
      coordinator,
      planner: new Planner(this.#logger, calendars, timeZones),
      report: this.#report,
      logger: this.#logger,
      monotonic,
      wall: Date.now,
      clockLeaps: options.scripts.clock === 'virtual',
      poll: options.pollInterval,
      headroom: options.memoryHeadroom,
    });
    const owned = () => loop.owned();
    const subscriber = this.#connect('scheduler-wake');
    await reachRedis(subscriber, () => subscriber.ping(), signal, monotonic);
    // In the order of starting; stopped in the reverse one, so that the leadership is given back by a loop at rest.
    this.#services = [
      coordinator,
      loop,
      timeZones,
      new WakeListener(subscriber, shard.keys.wake, (at) => loop.hint(at)),
      new QueueProber(client, shard.keys.queues, scripts, owned, this.#report, this.#logger),
      new GateDrainer(new GateScripts(shard), scripts, owned, this.#report, this.#logger),
      new ParentSweeper(new ParentScripts(shard), owned, monotonic, this.#logger),
      new IndexSweeper(scripts, owned, this.#report, this.#logger),
      new Housekeeper(scripts, calendars, owned, options.duplicateWindow, this.#logger),
    ];
    if (options.onDead !== undefined) {
      this.#services.push(new DeadLetterWatch(shard, handTo(options.onDead), owned, monotonic, this.#logger));
    }
    for (const service of this.#services) {
      await service.start().catch((error: unknown) => {
        throw redisError(error);
      });
      signal.throwIfAborted();
    }
  }

  /** Gives everything back, whatever a part of it throws. */
  protected override async onStop(): Promise<void> {
    const services = this.#services.reverse();
    this.#services = [];
    for (const service of services) {
      await service.stop().catch((error: unknown) => {
        this.#logger.error(
          { service: service.constructor.name, error: String(error) },
          'did not stop cleanly',
        );
      });
    }
    const connections = this.#connections;
    this.#connections = [];
    await Promise.all(connections.map(closeRedis));
  }

  /** etcd is loaded by who uses it. */
  async #coordinator(shard: Shard, monotonic: () => number): Promise<Coordinator & Service> {
    const { etcd, ttl, takeOver, ...options } = this.#options;
    const instanceId = options.instanceId ?? newInstanceId();
    const logger = this.#logger;
    if (etcd === undefined) {
      const heartbeat = new HeartbeatScripts(shard);
      return new StandaloneCoordinator(heartbeat, { holder: instanceId, ttl, takeOver, monotonic, logger });
    }
    const { EtcdCoordinator } = await import('../coordination/etcd/etcd-coordinator.js');
    const { openEtcd } = await import('../coordination/etcd/etcd-client.js');
    return new EtcdCoordinator(() => openEtcd(etcd), {
      namespace: options.namespace,
      instanceId,
      ttl,
      settle: options.settle,
      partitions: options.partitions,
      poll: options.pollInterval,
      onEtcdLoss: options.onEtcdLoss,
      versions: versionsOf(options.timeZones.version),
      monotonic,
      wall: Date.now,
      logger,
    });
  }

  #checkBullmq(): void {
    const { untested } = checkBullmq();
    if (untested.length === 0) return;
    this.#logger.warn(
      { untested },
      'the installed bullmq differs from the tested one in Lua that we call; it fits by its parameters',
    );
  }

  /** A leader that dies is followed after TTL and poll, at worst twice in a row. */
  #checkGrace(): void {
    const { ttl, pollInterval } = this.#options;
    if (2 * ttl + 2000 + pollInterval < DEFAULT_GRACE) return;
    this.#logger.warn(
      { ttl, grace: DEFAULT_GRACE },
      'after a leader’s death schedules miss ticks instead of running them late: the TTL is too long for the grace that schedules have by default',
    );
  }

  /** A connection of our own: a caller's client must not be blocked by a subscription, nor take our time-outs. */
  #connect(role: string): Redis {
    const settings = { ...SCHEDULER_CONNECTION, connectionName: `carillon:${role}` };
    const client = openAnother(this.#options.redis, settings);
    // What workers must set would let our calls wait for ever.
    client.options.maxRetriesPerRequest = SCHEDULER_CONNECTION.maxRetriesPerRequest as number;
    client.on('error', (error) => this.#logger.debug({ role }, `Redis connection: ${error.message}`));
    this.#connections.push({ client, owned: true });
    return client;
  }
}

function versionsOf(tzdata: string): InstanceVersions {
  return {
    carillon: versionOf(packageRoot()),
    bullmq: versionOf(resolvePackageDir('bullmq')),
    format: RECORD_FORMAT,
    tzdata,
  };
}

function versionOf(dir: string): string {
  return (JSON.parse(readFileSync(join(dir, 'package.json'), 'utf8')) as { version: string }).version;
}

function newInstanceId(): string {
  return `${hostname().replace(/[{}|\s]/g, '-')}:${process.pid}:${randomBytes(4).toString('hex')}`;
}
