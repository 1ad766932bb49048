import type { TestProject } from 'vitest/node';
import { RedisServer } from './redis-server.js';

declare module 'vitest' {
  export interface ProvidedContext {
    sharedRedisUrl: string;
  }
}

let users = 0;
let server: Promise<RedisServer> | undefined;

/**
 * Global set-up: one Redis for all projects of a run, `CARILLON_TEST_REDIS_URL` or a server of our own. Tests find
 * it by `sharedRedisUrl()` and keep to `namespaceFor(task)`: nobody flushes it.
 */
export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  users += 1;
  const given = process.env.CARILLON_TEST_REDIS_URL;
  if (given === undefined) server ??= RedisServer.start();
  project.provide('sharedRedisUrl', given ?? (await server)?.url ?? '');
  return async () => {
    users -= 1;
    if (users > 0) return;
    await (await server)?.stop();
    server = undefined;
  };
}
