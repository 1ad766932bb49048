/**
 * A worker of Carillon whose runs have effects in Redis, for a test that kills, stops or cuts it off:
 * `effect-worker.fixture.ts '{"url", "prefix", "namespace", "queue", "effects", "worker"}'`. Prints `working`, then one
 * line a start: `start <run id> <attempt>`. `<effects>:raw` counts what a handler did by itself, `<effects>:once` what it
 * did by `run.once`.
 */
import { Redis } from 'ioredis';
import { type Run, Worker, type WorkerOptions } from '../../src/index.js';

interface Options {
  url: string;
  prefix: string;
  namespace: string;
  queue: string;
  effects: string;
  /** ms of a run. */
  takes: number;
  worker: WorkerOptions;
}

const given = JSON.parse(process.argv[2] ?? '{}') as Options;
const { url, prefix, namespace, queue, effects, takes } = given;
const client = new Redis(url, { maxRetriesPerRequest: null });
client.on('error', () => undefined);

const worker = new Worker(
  queue,
  {
    effect: {
      effects: 'idempotent',
      async handle(run: Run) {
        process.stdout.write(`start ${run.runId} ${run.attempt}\n`);
        await client.hincrby(`${effects}:raw`, run.runId, 1);
        await new Promise((resolve) => setTimeout(resolve, takes));
        await run.once(run.idempotencyKey, (effect) => {
          effect.command('hincrby', `${effects}:once`, run.runId, 1);
        });
      },
    },
  },
  { connection: url, prefix, namespace, ...given.worker },
);
worker.on('error', () => undefined);
await worker.waitUntilReady();
process.stdout.write('working\n');
