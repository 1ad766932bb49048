import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { Queue } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { spawnNode } from '../support/node-process.js';

const EXAMPLE = fileURLToPath(new URL('../../examples/backfill/', import.meta.url));
const ROWS = 1500;
const COUNTER = 'backfilled:orders-2024';

test('examples/backfill: a long run survives rolling deployments and a pause by its checkpoint, in one attempt', {
  timeout: 60_000,
}, async ({ task }) => {
  const prefix = namespaceFor(task);
  const env = { REDIS_URL: sharedRedisUrl(), PREFIX: prefix };
  const queue = new Queue('backfill', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  const { client } = queue.backend.shard;
  onCleanup('counter', async () => {
    await client.del(COUNTER);
  });

  for (const answer of ['created', 'fired']) {
    const start = spawnNode(`${EXAMPLE}start.ts`, [String(ROWS), '150'], env);
    expect(await start.exited, start.stderr).toEqual({ code: 0, signal: null });
    expect(start.lines).toEqual([answer]);
  }
  const begun: number[] = [];
  let before = 0;
  for (let deployment = 0; deployment < 3; deployment++) {
    const worker = spawnNode(`${EXAMPLE}worker.ts`, [], env);
    const [, row] = /behind row (\d+)/.exec(
      await worker.waitForLine(/^attempt 1 goes on/),
    ) as RegExpExecArray;
    expect(Number(row)).toBe(before);
    begun.push(before);
    await worker.waitForLine(`done up to row ${before + 200}`);
    expect(await worker.stop(), worker.stderr).toEqual({ code: 0, signal: null });
    expect(worker.lines).toContain('handed back');
    before = Number(/(\d+)$/.exec(worker.lines.filter((line) => line.startsWith('done')).at(-1) ?? '')?.[1]);
    expect(await queue.getJobState('orders-2024')).toBe('waiting');
  }
  expect(new Set(begun).size).toBe(3);

  const last = spawnNode(`${EXAMPLE}worker.ts`, [], env);
  await last.waitForLine(`done up to row ${before + 100}`);
  expect(await queue.pauseJob('orders-2024')).toEqual({ where: 'worker' });
  await eventually(async () =>
    expect((await queue.backend.scripts.get('backfill', 'orders-2024')).record).toMatchObject({
      state: 'paused',
    }),
  );
  await queue.resumeJob('orders-2024');
  await last.waitForLine('orders-2024 is done');
  const job = await queue.getJob('orders-2024');
  expect(job).toMatchObject({ returnvalue: { row: ROWS }, attemptsMade: 1 });
  expect(await client.get(COUNTER)).toBe(String(ROWS));
  expect((await last.stop()).code).toBe(0);
});

test('examples/backfill: kill -9 three times, and the run goes on behind its last page each time, in one attempt', {
  timeout: 60_000,
}, async ({ task }) => {
  const prefix = namespaceFor(task);
  const lock = { lockDuration: 900, lockRenewTime: 300, stalledInterval: 200 };
  const env = { REDIS_URL: sharedRedisUrl(), PREFIX: prefix, WORKER_OPTIONS: JSON.stringify(lock) };
  const queue = new Queue('backfill', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  const { client } = queue.backend.shard;
  onCleanup('counter', async () => {
    await client.del(COUNTER);
  });
  await spawnNode(`${EXAMPLE}start.ts`, [String(ROWS), '100'], env).exited;
  let before = 0;
  for (let kill = 0; kill < 3; kill++) {
    const worker = spawnNode(`${EXAMPLE}worker.ts`, [], env);
    await worker.waitForLine(`attempt 1 goes on behind row ${before}`);
    await worker.waitForLine(`done up to row ${before + 100}`);
    await worker.kill9();
    // The page behind the last that was told may have been kept.
    const kept = await client.hget(`${prefix}:backfill:orders-2024`, 'carillon:checkpoint');
    before = (JSON.parse(kept ?? '{}') as { row: number }).row;
  }
  const last = spawnNode(`${EXAMPLE}worker.ts`, [], env);
  await last.waitForLine('orders-2024 is done');
  expect(await queue.getJob('orders-2024')).toMatchObject({
    ...{ returnvalue: { row: ROWS }, attemptsMade: 1, stalledCounter: 3 },
  });
  expect(await client.get(COUNTER)).toBe(String(ROWS));
});
