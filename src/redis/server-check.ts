import type { Redis } from 'ioredis';
import { CarillonError } from '../domain/errors.js';

/** What a Redis must be, for jobs in it to survive. Read by INFO, since managed services forbid CONFIG. */
export interface ServerFacts {
  version: string;
  /** `maxmemory_policy`. */
  policy: string;
  aof: boolean;
  role: string;
}

export interface ServerFault {
  check: 'version' | 'eviction' | 'persistence';
  /** One sentence with the cure. */
  sentence: string;
}

/** The server's facts by INFO. */
export async function readServerFacts(client: Redis): Promise<ServerFacts> {
  const info = await client.info();
  const field = (name: string): string => info.match(new RegExp(`^${name}:(.*)$`, 'm'))?.[1]?.trim() ?? '';
  return {
    version: field('redis_version'),
    policy: field('maxmemory_policy'),
    aof: field('aof_enabled') === '1',
    role: field('role'),
  };
}

/** What is wrong with the server; empty when it may keep jobs. */
export function judgeServer(facts: ServerFacts): ServerFault[] {
  const faults: ServerFault[] = [];
  if (Number.parseInt(facts.version, 10) < 7) {
    faults.push({
      check: 'version',
      sentence: `Redis is ${facts.version}: Carillon needs 7.0 or later, so upgrade it.`,
    });
  }
  if (facts.policy !== '' && facts.policy !== 'noeviction') {
    faults.push({
      check: 'eviction',
      sentence: `Redis’ maxmemory-policy is ${facts.policy}, which deletes jobs under memory pressure: set it to noeviction.`,
    });
  }
  if (!facts.aof) {
    faults.push({
      check: 'persistence',
      sentence: 'Redis keeps no append-only file, so a restart loses jobs: set appendonly to yes.',
    });
  }
  return faults;
}

/**
 * Refuses a Redis that would lose jobs.
 * @param allowVolatile accepts a missing append-only file and evictions (for a cache-like namespace); never an old version.
 * @throws CarillonError UNSAFE_REDIS with one sentence and the cure for each fault.
 */
export function requireSafeServer(faults: readonly ServerFault[], allowVolatile: boolean): void {
  const refused = faults.filter((fault) => fault.check === 'version' || !allowVolatile);
  if (refused.length === 0) return;
  throw new CarillonError('UNSAFE_REDIS', refused.map((fault) => fault.sentence).join(' '), {
    todo: 'Change the server, or give allowVolatile: true if jobs may be lost.',
  });
}
