import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { Queue } from '../../src/client/queue.js';
import { eventually } from '../support/eventually.js';
import { FaultProxy } from '../support/fault-proxy.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { type NodeProcess, spawnNode } from '../support/node-process.js';
import { postgresClient } from '../support/outbox-world.js';
import { startPostgres } from '../support/postgres-server.js';

const LONG = process.env.CARILLON_LONG === '1';
const RUNS = LONG ? 10_000 : 1500;
const FAULTS = ['kill9', 'freeze', 'cut', 'kill9'] as const;
const EXAMPLE = fileURLToPath(new URL('../../examples/effects/worker.ts', import.meta.url));

test('kill -9, SIGSTOP past the lock and a cut network of workers: each effect in PostgreSQL is there once, by the example’s helpers', async ({
  task,
}) => {
  const postgres = await startPostgres();
  const client = await postgresClient(postgres);
  const namespace = namespaceFor(task);
  const redis = new URL(sharedRedisUrl());
  const connection = {
    host: redis.hostname,
    port: Number(redis.port),
    db: Number(redis.pathname.slice(1) || 0),
  };
  const queue = new Queue('payments', { connection, namespace, prefix: namespace });
  onTestFinished(() => queue.close());
  let added = 0;
  const addSome = async () => {
    const bulk = Array.from({ length: RUNS / FAULTS.length }, () => {
      const id = added++;
      return {
        name: 'book',
        data: { account: `a${id}`, cents: 1 },
        opts: { jobId: `run-${id}`, attempts: 50 },
      };
    });
    await queue.addBulk(bulk);
  };
  const start = async (url = sharedRedisUrl()): Promise<NodeProcess> => {
    const worker = spawnNode(EXAMPLE, [], {
      DATABASE_URL: postgres.url,
      REDIS_URL: url,
      WORKER_OPTIONS: JSON.stringify({
        namespace, prefix: namespace, concurrency: 8, lockDuration: 1500, lockRenewTime: 500, stalledInterval: 500, maxStalledCount: 100,
      }), // biome-ignore format: one list
    });
    await worker.waitForLine('working');
    return worker;
  };
  const booked = async () => Number((await client.query('SELECT count(*) FROM entries')).rows[0]?.count);
  const proxy = await FaultProxy.start({ port: connection.port });
  const behind = new URL(sharedRedisUrl());
  behind.port = String(proxy.port);
  await start(behind.href);
  const workers = [await start(), await start()];
  for (const fault of FAULTS) {
    const before = await booked();
    await addSome();
    await eventually(async () => (await booked()) > before + 20, { timeout: 30_000, every: 5 });
    if (fault === 'kill9') {
      await (workers.shift() as NodeProcess).kill9();
      workers.push(await start());
      continue;
    }
    const stopped = workers[0] as NodeProcess;
    if (fault === 'freeze') stopped.sigstop();
    else proxy.pause();
    const since = performance.now();
    await eventually(() => performance.now() - since > 2000);
    if (fault === 'freeze') stopped.sigcont();
    else proxy.resume();
  }
  await eventually(async () => (await queue.getCompletedCount()) === RUNS, { timeout: 120_000, every: 100 });
  const { rows } = await client.query(
    'SELECT count(*) AS entries, count(DISTINCT account) AS accounts FROM entries',
  );
  expect(rows).toEqual([{ entries: String(RUNS), accounts: String(RUNS) }]);
}, 240_000);
