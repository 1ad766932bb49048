import { eventually } from './eventually.js';
import { type RedisServer, startRedis } from './redis-server.js';
import { Spine } from './spine.js';

/** A master and a replica that follows it. */
export async function replicaPair(): Promise<{ master: RedisServer; replica: RedisServer }> {
  const master = await startRedis({ args: ['--repl-diskless-sync-delay', '0'] });
  const replica = await startRedis({ args: ['--replicaof', '127.0.0.1', String(master.port)] });
  const spine = await Spine.open({ url: master.url, namespace: 'probe' });
  await eventually(async () => (await spine.client.wait(1, 100)) === 1, { timeout: 20_000 });
  return { master, replica };
}
