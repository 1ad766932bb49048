import { fileURLToPath } from 'node:url';
import { beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { Outbox } from '../../src/outbox/outbox.js';
import { OutboxRelay } from '../../src/outbox/relay.js';
import type { OutboxRelayOptions } from '../../src/outbox/relay-options.js';
import { outboxSql } from '../../src/outbox/table.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { spawnNode } from '../support/node-process.js';
import { carillon, emptyOutbox, postgresClient } from '../support/outbox-world.js';
import { type PostgresServer, startPostgres } from '../support/postgres-server.js';
import { startRedis } from '../support/redis-server.js';
import { replicaPair } from '../support/replica-pair.js';
import { Spine } from '../support/spine.js';
import { expectHealthy } from '../support/spine-doctor.js';
import { startScheduler } from '../support/spine-scheduler.js';

let postgres: PostgresServer;
const outbox = new Outbox();

beforeAll(async () => {
  postgres = await startPostgres();
}, 60_000);

beforeEach(async () => {
  await emptyOutbox(await postgresClient(postgres));
});

async function relayOf(spine: Spine, over: Partial<OutboxRelayOptions> = {}): Promise<OutboxRelay> {
  const { url, namespace, prefix } = spine;
  const relay = new OutboxRelay({ database: postgres.url, redis: url, namespace, prefix, ...over });
  onTestFinished(() => relay.stop());
  await relay.start();
  return relay;
}

function spineOf(test: { name: string }, url = sharedRedisUrl()): Promise<Spine> {
  return Spine.open({ url, namespace: namespaceFor(test) });
}

describe('a job exists exactly if its transaction commits', () => {
  test('committed: it exists with its payload byte for byte; rolled back: it does not', async ({ task }) => {
    const spine = await spineOf(task);
    const client = await postgresClient(postgres);
    await client.query('BEGIN');
    await outbox.add(client, 'q', 'send', { to: 'never' }, { jobId: 'undone' });
    await client.query('ROLLBACK');
    const payload = { a: [], o: {}, x: [[]], n: 9007199254740991, m: 1700000000123456, s: '\u0000 é 😀' };
    await client.query('BEGIN');
    const id = await outbox.add(client, 'q', 'send', payload);
    await client.query('COMMIT');
    const relay = await relayOf(spine);
    await eventually(() => relay.report().sent === 1);
    expect(await spine.client.hget(spine.bull('q', id), 'data')).toBe(JSON.stringify(payload));
    expect(await spine.client.exists(spine.bull('q', 'undone'))).toBe(0);
    expect((await client.query('SELECT 1 FROM carillon_outbox')).rows).toEqual([]);
    await expectHealthy(spine);
  });

  test('a database that Redis refuses is no fault of a row: it waits', async ({ task }) => {
    const redis = await startRedis();
    const client = await postgresClient(postgres);
    const id = await outbox.add(client, 'q', 'send', {}, { jobId: 'waits' });
    const relay = await relayOf(await spineOf(task), { redis: `${redis.url}/99` });
    await eventually(() => String(relay.report().trouble).includes('Redis refuses the database 99'));
    expect(relay.report()).toMatchObject({ setAside: 0, sent: 0, ready: false });
    expect((await client.query('SELECT id FROM carillon_outbox')).rows).toHaveLength(1);
    expect(id).toBe('waits');
  });

  test('a deadline that passed while no relay worked ends the job as expired; the row is not set aside', async ({
    task,
  }) => {
    const spine = await spineOf(task);
    const client = await postgresClient(postgres);
    const deadline = Date.now() + 300;
    const id = await outbox.add(client, 'q', 'send', {}, { deadline });
    await eventually(() => Date.now() > deadline);
    const relay = await relayOf(spine);
    await eventually(() => expect(relay.report()).toMatchObject({ sent: 1, setAside: 0 }));
    await startScheduler(spine);
    const ends = async () =>
      (await spine.client.xrange(spine.keys.history, '-', '+')).map(([, fields]) => fields);
    await eventually(async () =>
      expect(await ends()).toContainEqual(expect.arrayContaining([`q:${id}`, 'skipped', 'expired'])),
    );
    expect(await spine.client.exists(spine.bull('q', id))).toBe(0);
    await expectHealthy(spine);
  });

  test('a delay counts from the insert, not from the relay', async ({ task }) => {
    const spine = await spineOf(task);
    const client = await postgresClient(postgres);
    await outbox.add(client, 'q', 'send', {}, { jobId: 'later', delay: 3_600_000 });
    const { rows } = await client.query(
      "UPDATE carillon_outbox SET added_at = added_at - interval '30 minutes' RETURNING added_at",
    );
    const relay = await relayOf(spine);
    await eventually(() => relay.report().sent === 1);
    const { record } = await spine.jobs.get('q', 'later');
    expect(record).toMatchObject({ state: 'scheduled' });
    const due = Number(await spine.client.zscore(await keyOfDue(spine), 'q:later'));
    expect(rows).toEqual([{ added_at: new Date(due - 3_600_000) }]);
  });

  test('refused before anything is sent: options that no job can have', () => {
    expect(() => outbox.row('q', 'send', {}, { at: 'tomorrow' })).toThrow(
      expect.objectContaining({ field: 'at' }),
    );
    expect(() => outbox.row('q:r', 'send', {})).toThrow(expect.objectContaining({ field: 'queue' }));
    expect(() => outbox.row('q', 'send', {}, { requestId: 'x' })).toThrow(
      expect.objectContaining({ field: 'requestId' }),
    );
    expect(() => new Outbox({ table: 'a"; DROP' })).toThrow(expect.objectContaining({ field: 'table' }));
  });
});

async function keyOfDue(spine: Spine): Promise<string> {
  for await (const page of spine.client.scanStream({ match: `*${spine.namespace}*:due`, count: 1000 })) {
    for (const key of page as string[]) if ((await spine.client.zscore(key, 'q:later')) !== null) return key;
  }
  throw new Error('it is due nowhere');
}

test('an insert wakes the relay long before its poll', async ({ task }) => {
  const spine = await spineOf(task);
  const client = await postgresClient(postgres);
  const relay = await relayOf(spine, { pollInterval: '60s' });
  await eventually(() => relay.report().ready);
  const id = await outbox.add(client, 'q', 'send', {});
  await eventually(async () => (await spine.client.exists(spine.bull('q', id))) === 1, { timeout: 10_000 });
});

test('a relay that died between submit and delete repeats harmlessly', async ({ task }) => {
  const spine = await spineOf(task);
  const client = await postgresClient(postgres);
  const id = await outbox.add(client, 'q', 'send', { once: true });
  const { rows } = await client.query('SELECT * FROM carillon_outbox');
  const first = await relayOf(spine);
  await eventually(() => first.report().sent === 1);
  await first.stop();
  // What a kill after the submit leaves behind: the row. The run may have ended and be removed meanwhile.
  await spine.client.del(spine.bull('q', id));
  const { queue, name, data, opts } = rows[0] as Record<string, string>;
  const insert = 'INSERT INTO carillon_outbox (id, queue, name, data, opts) VALUES ($1, $2, $3, $4, $5)';
  await client.query(insert, [id, queue, name, data, opts]);
  const second = await relayOf(spine);
  await eventually(() => second.report().sent === 1);
  expect(await spine.client.exists(spine.bull('q', id))).toBe(0);
});

test('poison rows are set aside with a reason and stall nobody; retried when mended, or discarded', async ({
  task,
}) => {
  const spine = await spineOf(task);
  const client = await postgresClient(postgres);
  const insert = 'INSERT INTO carillon_outbox (id, queue, name, data, opts) VALUES ($1, $2, $3, $4, $5)';
  await client.query(insert, ['no-json', 'q', 'send', '{', '{}']);
  await client.query(insert, ['bad-queue', 'q:r', 'send', '{}', '{}']);
  await client.query(insert, ['bad-opts', 'q', 'send', '{}', '{"at":"tomorrow"}']);
  await client.query(insert, ['orphan', 'q', 'send', '{}', '{"after":["nobody"]}']);
  const good = await outbox.add(client, 'q', 'send', {});
  const relay = await relayOf(spine, { batch: 2, pollInterval: '50ms' });
  await eventually(async () => (await spine.client.exists(spine.bull('q', good))) === 1);
  // The job is there before its row's transaction is.
  await eventually(() => expect(relay.report()).toMatchObject({ sent: 1, setAside: 3 }));
  const aside = await carillon('outbox', 'list', '--database', postgres.url, '--json');
  const listed = (JSON.parse(aside.out) as { rows: { id: string; reason: string }[] }).rows;
  expect(listed.map((row) => row.id)).toEqual(['no-json', 'bad-queue', 'bad-opts']);
  expect(listed[0]?.reason).toContain('no JSON');
  // What waits for a job that nobody knows yet is tried again: it may come by another relay.
  const { rows } = await client.query("SELECT tries, reason FROM carillon_outbox WHERE id = 'orphan'");
  expect(rows[0]).toMatchObject({
    tries: expect.any(Number),
    reason: expect.stringContaining('nobody knows'),
  });
  await client.query("UPDATE carillon_outbox SET data = '{}' WHERE id = 'no-json'");
  expect(await carillon('outbox', 'retry', 'no-json', '--database', postgres.url)).toMatchObject({ code: 0 });
  await eventually(() => relay.report().sent === 2);
  expect(await carillon('outbox', 'discard', 'bad-opts', '--database', postgres.url)).toMatchObject({
    code: 0,
  });
  expect(await carillon('outbox', 'discard', 'bad-opts', '--database', postgres.url)).toMatchObject({
    code: 1,
  });
});

test('durability: a row stays until the replicas have its job, and is then handed over by the same id', async ({
  task,
}) => {
  const { master, replica } = await replicaPair();
  const spine = await spineOf(task, master.url);
  const client = await postgresClient(postgres);
  const relay = await relayOf(spine, { durability: { replicas: 1, timeout: 100 } });
  replica.sigstop();
  onTestFinished(() => replica.sigcont());
  const id = await outbox.add(client, 'q', 'send', {});
  await eventually(() => expect(relay.report().trouble).toContain('0 of 1 replicas'));
  expect(await spine.client.exists(spine.bull('q', id))).toBe(1);
  const rows = async () => (await client.query('SELECT tries FROM carillon_outbox')).rows;
  // No fault of the row's.
  expect(await rows()).toEqual([{ tries: 0 }]);
  replica.sigcont();
  await eventually(async () => expect(await rows()).toEqual([]), { timeout: 20_000 });
  expect(relay.report()).toMatchObject({ sent: 1, setAside: 0, ready: true });
  expect(await spine.client.llen(spine.bull('q', 'wait'))).toBe(1);
});

test('a row that was inserted with options that mean nothing is set aside', async ({ task }) => {
  const client = await postgresClient(postgres);
  await client.query(
    `INSERT INTO carillon_outbox (id, queue, name, data, opts) VALUES ('a', 'q', 'x', '{}', '{"durability":{"replicas":1}}')`,
  );
  const relay = await relayOf(await spineOf(task));
  await eventually(() => relay.report().setAside === 1);
  const { rows } = await client.query('SELECT reason FROM carillon_outbox');
  expect(rows[0].reason).toContain('belongs to the relay');
});

test('a table’s name must fit the channel that its inserts notify', async ({ task }) => {
  const client = await postgresClient(postgres);
  const long = (length: number) => `${'s'.repeat(31)}.${'t'.repeat(length - 32)}`;
  expect(() => new Outbox({ table: long(64) })).toThrow(
    expect.objectContaining({
      field: 'table',
      code: 'INVALID_OPTION',
      message: expect.stringContaining('63'),
    }),
  );
  const table = long(63);
  await client.query(`CREATE SCHEMA IF NOT EXISTS ${'s'.repeat(31)}`);
  await client.query(outboxSql(table));
  const relay = await relayOf(await spineOf(task), { table, pollInterval: '60s' });
  await new Outbox({ table }).add(client, 'q', 'send', {});
  await eventually(() => relay.report().sent === 1);
});

test.each([
  [{ replicas: 0, timeout: '6s' }, 'durability.timeout'],
  [{ replicas: -1 }, 'durability.replicas'],
])('the relay refuses %o', (durability, field) => {
  expect(() => new OutboxRelay({ database: postgres.url, durability })).toThrow(
    expect.objectContaining({ field }),
  );
});

test('several relays share 2,000 rows: each job once, in no more than one relay’s hands', async ({
  task,
}) => {
  const spine = await spineOf(task);
  const client = await postgresClient(postgres);
  await client.query(`INSERT INTO carillon_outbox (id, queue, name, data)
    SELECT 'job-' || n, 'q', 'send', '{}' FROM generate_series(1, 2000) n`);
  const relays = await Promise.all([relayOf(spine, { batch: 50 }), relayOf(spine, { batch: 50 })]);
  const sent = () => relays.reduce((sum, relay) => sum + relay.report().sent, 0);
  await eventually(() => sent() >= 2000, { timeout: 30_000 });
  expect(sent()).toBe(2000);
  expect(relays.map((relay) => relay.report().repeated)).toEqual([0, 0]);
  expect(await spine.client.llen(spine.bull('q', 'wait'))).toBe(2000);
});

test('Redis and PostgreSQL away: the relay says so, waits, and goes on', async ({ task }) => {
  const server = await startRedis();
  const spine = await spineOf(task, server.url);
  const client = await postgresClient(postgres);
  const relay = await relayOf(spine, { pollInterval: '50ms' });
  await eventually(() => relay.report().ready);
  await server.kill9();
  const id = await outbox.add(client, 'q', 'send', {});
  await eventually(() => !relay.report().ready, { timeout: 20_000 });
  expect((await client.query('SELECT set_aside_at FROM carillon_outbox')).rows).toEqual([
    { set_aside_at: null },
  ]);
  await server.restart();
  await eventually(async () => (await spine.client.exists(spine.bull('q', id))) === 1, { timeout: 20_000 });
  await postgres.shutDown();
  await eventually(() => !relay.report().ready, { timeout: 20_000 });
  expect(relay.report().trouble).toBeTruthy();
  await postgres.restart();
  await eventually(() => relay.report().ready, { timeout: 20_000 });
  const later = await outbox.add(await postgresClient(postgres), 'q', 'send', {});
  await eventually(async () => (await spine.client.exists(spine.bull('q', later))) === 1);
}, 60_000);

test('the command line prints and makes the table; without it, or without PostgreSQL, it says what to do', async ({
  task,
}) => {
  const client = await postgresClient(postgres);
  await client.query('DROP TABLE carillon_outbox');
  const flags = ['--database', postgres.url];
  expect((await carillon('outbox', 'sql')).out).toBe(outboxSql().trimEnd());
  const without = await carillon(
    'outbox',
    ...flags,
    '--redis',
    sharedRedisUrl(),
    '--namespace',
    namespaceFor(task),
  );
  expect(without).toMatchObject({ code: 1, err: expect.stringContaining('carillon outbox migrate') });
  for (let times = 0; times < 2; times++) {
    expect(await carillon('outbox', 'migrate', ...flags)).toMatchObject({ code: 0 });
  }
  expect((await client.query('SELECT * FROM carillon_outbox')).rows).toEqual([]);
  expect(await carillon('outbox', 'list')).toMatchObject({
    code: 2,
    err: expect.stringContaining('--database'),
  });
});

test.each(['node-postgres', 'drizzle'])('examples/outbox/%s.ts: one order, one job', async (example) => {
  const client = await postgresClient(postgres);
  const script = fileURLToPath(new URL(`../../examples/outbox/${example}.ts`, import.meta.url));
  const run = spawnNode(script, [], { DATABASE_URL: postgres.url });
  expect(await run.exited).toMatchObject({ code: 0 });
  expect(run.lines).toEqual([expect.stringContaining('refused')]);
  const { rows } = await client.query('SELECT queue, name, data FROM carillon_outbox');
  const id = example === 'drizzle' ? 'drizzle-1' : 'pg-1';
  expect(rows).toEqual([{ queue: 'emails', name: 'confirm', data: `{"order":"${id}"}` }]);
});
