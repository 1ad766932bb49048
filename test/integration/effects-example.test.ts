import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test } from 'vitest';
import { Queue } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { spawnNode } from '../support/node-process.js';
import { postgresClient } from '../support/outbox-world.js';
import { startPostgres } from '../support/postgres-server.js';

const EXAMPLE = fileURLToPath(new URL('../../examples/effects/worker.ts', import.meta.url));

test('examples/effects: a fenced report, a charge by HTTP that is repeated under one key, and a bill for two jobs of one invoice', {
  timeout: 90_000,
}, async ({ task }) => {
  const postgres = await startPostgres();
  const client = await postgresClient(postgres);
  const prefix = namespaceFor(task);
  const queue = new Queue('payments', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  const requests: { headers: IncomingHttpHeaders; body: string }[] = [];
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request) body += chunk;
    requests.push({ headers: request.headers, body });
    // The first answer is lost, as far as the caller can tell.
    response.writeHead(requests.length === 1 ? 503 : 200).end();
  });
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

  const worker = spawnNode(EXAMPLE, [], {
    DATABASE_URL: postgres.url,
    REDIS_URL: sharedRedisUrl(),
    WORKER_OPTIONS: JSON.stringify({ prefix }),
  });
  await worker.waitForLine('working');
  const result = async (jobId: string) => {
    await eventually(async () => expect(await queue.getJobState(jobId)).toBe('completed'), {
      timeout: 20_000,
    });
    return (await queue.getJob(jobId))?.returnvalue;
  };

  await queue.add('report', { day: 'mon', text: 'first' }, { jobId: 'r1' });
  expect(await result('r1')).toBe(true);
  const report = async () => (await client.query('SELECT text, fence FROM reports')).rows[0];
  const { fence } = await report();
  expect(await report()).toEqual({ text: 'first', fence: expect.stringMatching(/^\d{16}$/) });
  // A later attempt has written: this one changes nothing.
  await client.query('UPDATE reports SET fence = fence * 2');
  await queue.add('report', { day: 'mon', text: 'woke up late' }, { jobId: 'r2' });
  expect(await result('r2')).toBe(false);
  expect(await report()).toMatchObject({ text: 'first' });
  expect(BigInt((await report()).fence)).toBe(2n * BigInt(fence));

  await queue.add('charge', { url, body: { cents: 500 } }, { jobId: 'c1', attempts: 2 });
  await result('c1');
  expect(requests.map(({ body }) => body)).toEqual(['{"cents":500}', '{"cents":500}']);
  const [first, second] = requests.map(({ headers }) => headers);
  expect(first?.['idempotency-key']).toBe(second?.['idempotency-key']);
  expect(BigInt(String(second?.['fencing-token']))).toBeGreaterThan(BigInt(String(first?.['fencing-token'])));

  const revenue = `revenue:${prefix}`;
  const redis = queue.backend.shard.client;
  onCleanup('revenue', async () => {
    await redis.del(revenue);
  });
  const bill = { invoice: `${prefix}-5`, cents: 700, account: prefix };
  for (const jobId of ['b1', 'b2']) await queue.add('bill', bill, { jobId });
  for (const jobId of ['b1', 'b2']) expect(await result(jobId)).toEqual({ billed: bill.invoice });
  expect(await redis.get(revenue)).toBe('700');
  expect(await worker.stop()).toEqual({ code: 0, signal: null });
});
