import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { eventually } from '../support/eventually.js';
import { History, SPOTLESS } from '../support/history.js';
import { namespaceFor } from '../support/namespace.js';
import { type NodeProcess, spawnNode } from '../support/node-process.js';
import { emptyOutbox, postgresClient, startRelay } from '../support/outbox-world.js';
import { startPostgres } from '../support/postgres-server.js';
import { startRedis } from '../support/redis-server.js';
import { Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { SchedulerProcess } from '../support/spine-process.js';

const LONG = process.env.CARILLON_LONG === '1';
const ROUNDS = LONG ? 12 : 2;
/** More than an application lives to add. */
const ENDLESS = 1_000_000;
const APP = fileURLToPath(new URL('../support/outbox-app.fixture.ts', import.meta.url));

test('kill -9 of application, relay, scheduler and Redis (AOF always): jobs = committed transactions, each once into the queue', async ({
  task,
}) => {
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis({ appendfsync: 'always' })]);
  const client = await postgresClient(postgres);
  await emptyOutbox(client);
  await client.query('CREATE TABLE orders (id text PRIMARY KEY)');
  const spine = await Spine.open({ url: redis.url, namespace: namespaceFor(task) });
  await History.keep(spine, 'orders');
  const countOrders = async () => Number((await client.query('SELECT count(*) FROM orders')).rows[0]?.count);
  const waiting = async () =>
    Number((await client.query('SELECT count(*) FROM carillon_outbox')).rows[0]?.count);
  const handedOver = async () => (await countOrders()) - (await waiting());
  const startApp = (stem: string) =>
    spawnNode(APP, [JSON.stringify({ database: postgres.url, stem, count: ENDLESS })]);
  /** A relay of each round is killed while rows are moving; the other one goes on meanwhile. */
  const relays: NodeProcess[] = [
    await startRelay(spine, postgres.url),
    await startRelay(spine, postgres.url),
  ];
  let scheduler = await SchedulerProcess.start(spine);
  for (let round = 0; round < ROUNDS; round++) {
    const app = startApp(`order-${round}`);
    const grows = async (by: number) => {
      const before = await handedOver();
      await eventually(async () => (await handedOver()) > before + by, { timeout: 60_000 });
    };
    await grows(100);
    await relays.shift()?.kill9();
    relays.push(await startRelay(spine, postgres.url));
    await grows(100);
    await scheduler.node.kill9();
    await redis.kill9();
    await redis.restart();
    scheduler = await SchedulerProcess.start(spine);
    await grows(100);
    await app.kill9();
  }
  await eventually(async () => (await waiting()) === 0, { timeout: 60_000 });
  await eventually(async () => Number(await spine.client.hget(spine.keys.queues, 'orders:scheduled')) === 0, {
    timeout: 60_000,
  });
  const committed = (await client.query('SELECT id FROM orders')).rows as { id: string }[];
  expect(committed.length).toBeGreaterThan(ROUNDS * 200);
  const verdict = (await History.read(spine, 'orders')).check(
    new Map(committed.map(({ id }) => [id, undefined])),
  );
  expect(verdict).toEqual(SPOTLESS);
  process.stdout.write(`outbox under kill -9: ${committed.length} committed transactions, as many jobs\n`);
  await scheduler.node.stop();
  await expectHealthy(spine);
}, 600_000);
