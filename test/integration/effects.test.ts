import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { claimEffect, effectHeaders, effectsSql, updateFenced } from '../../src/effects/effects.js';
import { postgresClient } from '../support/outbox-world.js';
import { startPostgres } from '../support/postgres-server.js';

const RUN = { idempotencyKey: 'ns:q:é 1@1', fencingToken: '1843200000001024' };

test('PostgreSQL: a key is claimed once and rolls back with its transaction; a later attempt’s fence shuts out an earlier one', async () => {
  const postgres = await startPostgres();
  const client = await postgresClient(postgres);
  await client.query(effectsSql());
  await client.query(effectsSql());
  await client.query('BEGIN');
  expect(await claimEffect(client, RUN)).toBe(true);
  await client.query('ROLLBACK');
  expect(await claimEffect(client, RUN)).toBe(true);
  expect(await claimEffect(client, RUN)).toBe(false);
  expect(await claimEffect(client, RUN, { part: 'second' })).toBe(true);

  await client.query('CREATE TABLE reports (day text PRIMARY KEY, note text, fence bigint)');
  await client.query("INSERT INTO reports (day) VALUES ('mon')");
  const write = (fencingToken: string, note: string, day = 'mon') =>
    updateFenced(client, { fencingToken }, { table: 'reports', set: { note }, where: { day } });
  expect(await write('10', 'first')).toBe(true);
  expect(await write('12', 'later attempt')).toBe(true);
  expect(await write('11', 'woke up late')).toBe(false);
  expect(await write('12', 'same attempt again')).toBe(true);
  expect(await write('13', 'nowhere', 'tue')).toBe(false);
  expect((await client.query('SELECT note, fence FROM reports')).rows).toEqual([
    { note: 'same attempt again', fence: '12' },
  ]);
  const bad = { table: 'reports', set: { 'note; --': 1 }, where: { day: 'mon' } };
  await expect(updateFenced(client, RUN, bad)).rejects.toMatchObject({
    code: 'INVALID_OPTION',
    field: 'column',
  });
  await expect(updateFenced(client, RUN, { ...bad, set: {}, where: {} })).rejects.toMatchObject({
    field: 'where',
  });
});

test('HTTP: the headers of two attempts name one effect, and can be sent whatever the id holds', async () => {
  const seen: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    seen.push(request.headers);
    response.end();
  });
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  for (const fencingToken of ['1', '2']) {
    await fetch(url, { method: 'POST', headers: effectHeaders({ ...RUN, fencingToken }) });
  }
  await fetch(url, { method: 'POST', headers: effectHeaders(RUN, 'mail') });
  expect(seen.map((headers) => headers['fencing-token'])).toEqual(['1', '2', RUN.fencingToken]);
  const keys = seen.map((headers) => headers['idempotency-key']);
  expect(keys[0]).toBe(keys[1]);
  expect(keys[2]).not.toBe(keys[0]);
});
