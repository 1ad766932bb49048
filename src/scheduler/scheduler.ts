import { randomBytes } from 'node:crypto';
import { hostname } from 'node:os';
import { performance } from 'node:perf_hooks';
import type { Redis } from 'ioredis';
import {
  type ResolvedSchedulerOptions,
  resolveSchedulerOptions,
  type SchedulerOptions,
} from '../config/scheduler-options.js';
import { StandaloneCoordinator } from '../coordination/standalone.js';
import { checkBullmq } from '../redis/bullmq-check.js';
import { closeRedis, type OpenedRedis, openRedis, SCHEDULER_CONNECTION } from '../redis/connection.js';
import { HeartbeatScripts } from '../redis/heartbeat-scripts.js';
import { LeaderScripts } from '../redis/leader-scripts.js';
import { judgeServer, readServerFacts, requireSafeServer } from '../redis/server-check.js';
import { Shard } from '../redis/shard.js';
import { redisError } from '../redis/status.js';
import { defaultLogger, type Logger } from '../support/logger.js';
import { Service } from '../support/service.js';
import { DispatchReport, type Readiness } from './dispatch-report.js';
import { Housekeeper } from './housekeeper.js';
import { IndexSweeper } from './index-sweeper.js';
import { Planner } from './planner.js';
import { QueueProber } from './queue-prober.js';
import { ShardLoop } from './shard-loop.js';
import { WakeListener } from './wake-listener.js';

/**
 * Moves what is due into BullMQ's queues, on time and once. Run one for the work and one to stand by; more do no harm.
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

  /** @throws CarillonError INVALID_OPTION for an unknown or bad option. */
  constructor(options: SchedulerOptions = {}) {
    super();
    this.#options = resolveSchedulerOptions(options);
    this.#logger = options.logger ?? defaultLogger();
    this.#report = new DispatchReport(this.#logger, () => performance.now());
  }

  /** Whether it is ready, what holds it if not, and what it did since it started. */
  readiness(): Readiness {
    return this.#report.readiness();
  }

  /**
   * Connects, checks Redis and BullMQ, and begins to lead or to stand by.
   * @throws CarillonError UNSAFE_REDIS, INCOMPATIBLE_BULLMQ, WRONG_LAYOUT, REDIS_UNAVAILABLE
   */
  protected override async onStart(): Promise<void> {
    const options = this.#options;
    this.#report = new DispatchReport(this.#logger, () => performance.now());
    const { untested } = checkBullmq();
    if (untested.length > 0) {
      this.#logger.warn(
        { untested },
        'the installed bullmq differs from the tested one in Lua that we call; it fits by its parameters',
      );
    }
    const client = await this.#connect('scheduler');
    requireSafeServer(judgeServer(await this.#facts(client)), options.allowVolatile);
    const shard = new Shard(client, {
      namespace: options.namespace,
      prefix: options.prefix,
      choices: options.scripts,
    });
    await shard.open();
    const scripts = new LeaderScripts(shard);
    const coordinator = new StandaloneCoordinator(new HeartbeatScripts(shard), {
      holder: options.instanceId ?? newInstanceId(),
      ttl: options.ttl,
      takeOver: options.takeOver,
      monotonic: () => performance.now(),
      logger: this.#logger,
    });
    const loop = new ShardLoop({
      scripts,
      coordinator,
      planner: new Planner(this.#logger),
      report: this.#report,
      logger: this.#logger,
      monotonic: () => performance.now(),
      wall: Date.now,
      poll: options.pollInterval,
      headroom: options.memoryHeadroom,
    });
    const owned = () => loop.owned();
    const subscriber = await this.#connect('scheduler-wake');
    // In the order of starting; stopped in the reverse one, so that the leadership is given back by a loop at rest.
    this.#services = [
      coordinator,
      loop,
      new WakeListener(subscriber, shard.keys.wake, (at) => loop.hint(at)),
      new QueueProber(client, shard.keys.queues, scripts, owned, this.#report, this.#logger),
      new IndexSweeper(scripts, owned, this.#report, this.#logger),
      new Housekeeper(scripts, owned, options.duplicateWindow, this.#logger),
    ];
    for (const service of this.#services) await service.start();
  }

  protected override async onStop(): Promise<void> {
    const services = this.#services.reverse();
    this.#services = [];
    for (const service of services) await service.stop();
    const connections = this.#connections;
    this.#connections = [];
    await Promise.all(connections.map(closeRedis));
  }

  async #connect(role: string): Promise<Redis> {
    const { redis } = this.#options;
    const opened = openRedis(redis, { ...SCHEDULER_CONNECTION, connectionName: `carillon:${role}` });
    // A caller's own client cannot be blocked by a subscription, nor take our time-outs.
    const own = opened.owned
      ? opened
      : {
          client: opened.client.duplicate({ ...SCHEDULER_CONNECTION, connectionName: `carillon:${role}` }),
          owned: true,
        };
    own.client.on('error', (error) => this.#logger.debug({ role }, `Redis connection: ${error.message}`));
    this.#connections.push(own);
    return own.client;
  }

  async #facts(client: Redis) {
    try {
      return await readServerFacts(client);
    } catch (error) {
      throw redisError(error);
    }
  }
}

function newInstanceId(): string {
  return `${hostname().replace(/[{}|\s]/g, '-')}:${process.pid}:${randomBytes(4).toString('hex')}`;
}
