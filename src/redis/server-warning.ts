import type { Redis } from 'ioredis';
import type { Logger } from '../support/logger.js';
import { judgeServer, readServerFacts } from './server-check.js';

/** Servers that this process has spoken about. */
const judged = new Set<string>();

/**
 * Warns, once a process and server, of a Redis that may lose jobs. A producer or worker goes on all the same: what
 * replaces BullMQ must not fail on the Redis that BullMQ used yesterday. Never throws.
 */
export async function warnOfServer(client: Redis, logger: Logger): Promise<void> {
  const server = `${client.options.host}:${client.options.port}${client.options.path ?? ''}`;
  if (judged.has(server)) return;
  judged.add(server);
  try {
    for (const fault of judgeServer(await readServerFacts(client))) {
      logger.warn({ server, check: fault.check }, fault.sentence);
    }
  } catch {
    // Not reached, or not allowed to ask: judged at the next connection.
    judged.delete(server);
  }
}
