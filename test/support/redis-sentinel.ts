import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import { ownChild } from './child-guard.js';
import { onCleanup } from './cleanup.js';
import { eventually } from './eventually.js';
import { freePort } from './free-port.js';
import type { RedisServer } from './redis-server.js';

/** A Sentinel of its own that watches `master` under `name`; ends with the test. Returns its port. */
export async function startSentinel(master: RedisServer, name: string): Promise<number> {
  const port = await freePort();
  const file = join(master.dir, 'sentinel.conf');
  await writeFile(
    file,
    [
      `port ${port}`,
      'bind 127.0.0.1',
      `dir ${master.dir}`,
      `sentinel monitor ${name} 127.0.0.1 ${master.port} 1`,
    ].join('\n'),
  );
  const binary = process.env.CARILLON_REDIS_SERVER ?? 'redis-server';
  const child = spawn(binary, [file, '--sentinel'], { stdio: 'ignore' });
  ownChild(child);
  const exited = once(child, 'exit');
  onCleanup(`sentinel on port ${port}`, async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const client = new Redis(port, { retryStrategy: () => 50 });
  client.on('error', () => undefined);
  await eventually(async () => (await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', name)) !== null);
  client.disconnect();
  return port;
}
