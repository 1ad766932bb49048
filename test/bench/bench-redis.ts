import { Redis } from 'ioredis';
import { RedisServer } from '../support/redis-server.js';

/** A redis-server of the bench's own: AOF everysec, as in production; no rewrite of it comes between two sides. */
export class BenchRedis {
  private constructor(
    readonly server: RedisServer,
    readonly client: Redis,
  ) {}

  static async start(): Promise<BenchRedis> {
    const server = await RedisServer.start({ args: ['--auto-aof-rewrite-percentage', '0'] });
    return new BenchRedis(server, new Redis(server.url));
  }

  get url(): string {
    return this.server.url;
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

  async stop(): Promise<void> {
    this.client.disconnect();
    await this.server.stop();
  }
}
