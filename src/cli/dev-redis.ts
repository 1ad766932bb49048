import { type RedisProcess, startRedisProcess } from '../support/redis-process.js';
import type { DevFolder } from './dev-folder.js';

/**
 * Starts a redis-server on the folder's data: every write is in its append-only file before it is answered.
 * @param port refused when it is taken; undefined for the last one or a free one.
 * @throws CarillonError UNSAFE_REDIS without a redis-server, REDIS_UNAVAILABLE when it does not start
 */
export async function startDevRedis(folder: DevFolder, port: number | undefined): Promise<RedisProcess> {
  const chosen = port ?? (await folder.nextPort());
  const redis = await startRedisProcess({
    port: chosen,
    dir: folder.data,
    appendfsync: 'always',
    instead:
      'name another in CARILLON_REDIS_SERVER, or use docker run -p 6379:6379 redis:7 with `carillon scheduler`.',
    taken: 'Give another --port.',
    again: 'Start `carillon dev` again; if that does not help, remove .carillon/ to begin anew.',
  });
  folder.serves(chosen);
  return redis;
}
