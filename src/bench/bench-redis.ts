import { Redis } from 'ioredis';
import { freePort, type RedisProcess, startRedisProcess } from '../support/redis-process.js';
import { BenchGuard } from './bench-guard.js';

/** A redis-server of the bench's own: AOF everysec, as in production; no rewrite of it comes between two sides. */
export class BenchRedis {
  private constructor(
    private readonly server: RedisProcess,
    private readonly guard: BenchGuard,
    readonly client: Redis,
  ) {}

  /** @throws CarillonError UNSAFE_REDIS without a redis-server, REDIS_UNAVAILABLE when it does not start */
  static async start(): Promise<BenchRedis> {
    const guard = await BenchGuard.start();
    try {
      const server = await startRedisProcess({
        port: (await freePort(0)) ?? 0,
        dir: guard.dir,
        appendfsync: 'everysec',
        settings: { 'auto-aof-rewrite-percentage': '0' },
        onSpawn: (pid) => guard.owns(pid),
        instead: 'or name another in CARILLON_REDIS_SERVER.',
        taken: 'Start the bench again.',
        again: 'Start the bench again; it needs room for its data in the folder of temporary files.',
      });
      return new BenchRedis(server, guard, new Redis(server.url));
    } catch (error) {
      await guard.end();
      throw error;
    }
  }

  get url(): string {
    return this.server.url;
  }

  /** Rejects when the server ends in the middle of the bench. */
  get died(): Promise<never> {
    return this.server.died;
  }

  async empty(): Promise<void> {
    await this.client.flushall('SYNC');
  }

  /** ms since 1970 by Redis' clock. */
  async now(): Promise<number> {
    const [seconds, micros] = await this.client.time();
    return Number(seconds) * 1000 + Number(micros) / 1000;
  }

  /** A field of INFO as a number. */
  async info(section: string, field: string): Promise<number> {
    const text = await this.client.info(section);
    const found = new RegExp(`^${field}:([0-9.]+)`, 'm').exec(text)?.[1];
    if (found === undefined) throw new Error(`INFO ${section} has no ${field}`);
    return Number(found);
  }

  async version(): Promise<string> {
    return /redis_version:(\S+)/.exec(await this.client.info('server'))?.[1] ?? 'of unknown version';
  }

  /** Ends the server and removes its data. */
  async stop(): Promise<void> {
    this.client.disconnect();
    await this.server.stop();
    await this.guard.end();
  }
}
