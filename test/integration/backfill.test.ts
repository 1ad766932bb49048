import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { Queue } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';
import { spawnNode } from '../support/node-process.js';

const EXAMPLE = fileURLToPath(new URL('../../examples/backfill/', import.meta.url));
const ROWS = 1500;

test('examples/backfill: a long run survives rolling deployments and a pause by its checkpoint, in one attempt', {
  timeout: 60_000,
}, async ({ task }) => {
  const prefix = namespaceFor(task);
  const env = { REDIS_URL: sharedRedisUrl(), PREFIX: prefix };
  const queue = new Queue('backfill', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  const { client } = queue.backend.shard;
  const counter = 'backfilled:orders-2024';
  onCleanup('counter', async () => {
    await client.del(counter);
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
  expect(await client.get(counter)).toBe(String(ROWS));
  expect((await last.stop()).code).toBe(0);
});
