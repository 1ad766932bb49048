/**
 * A worker of Carillon whose runs have an effect through `once`, and one beside it that nothing protects:
 * `run-worker.fixture.ts '{"url", "prefix", "queue", "concurrency", "work": [shortest, longest ms of a run], "lock": options}'`.
 * `ready`, one line `start <run id>` a start, and `stale <run id>` for each that was refused for its lost lock.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { isCarillonError, type Run, Worker, type WorkerOptions } from '../../src/index.js';

interface Options {
  url: string;
  prefix: string;
  queue: string;
  concurrency: number;
  work: [number, number];
  lock: Partial<WorkerOptions>;
}

const { url, prefix, queue, concurrency, work, lock } = JSON.parse(process.argv[2] ?? '{}') as Options;
const client = new Redis(url, { maxRetriesPerRequest: 1 });
client.on('error', () => undefined);

async function effect(run: Run): Promise<void> {
  process.stdout.write(`start ${run.runId}\n`);
  await client.hincrby(`${prefix}:bare`, run.runId, 1);
  await sleep(work[0] + Math.random() * (work[1] - work[0]));
  try {
    await run.checkpoint({ token: run.fencingToken });
    await run.once(run.idempotencyKey, ({ command }) => command('hincrby', `${prefix}:once`, run.runId, 1));
  } catch (error) {
    if (isCarillonError(error, 'STALE_RUN')) process.stdout.write(`stale ${run.runId}\n`);
    throw error;
  }
}

const worker = new Worker(
  queue,
  { effect: { effects: 'idempotent', handle: effect } },
  { prefix, connection: url, concurrency, ...lock },
);
worker.on('error', () => undefined);
await worker.waitUntilReady();
process.stdout.write('ready\n');
