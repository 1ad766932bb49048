/**
 * Stock BullMQ workers of several queues in a process of its own: `dependency-worker.fixture.ts '<{ url, prefix, queues, log }>'`.
 * Each job's data names its parents; a start before one of them was done is written to `<log>:early`, and what is done
 * to the set `<log>:done`.
 */
import { Worker } from 'bullmq';
import { Redis } from 'ioredis';

const { url, prefix, queues, log } = JSON.parse(process.argv[2] ?? '{}') as {
  url: string;
  prefix: string;
  queues: string[];
  log: string;
};
const { hostname, port } = new URL(url);
const client = new Redis(url);

for (const queue of queues) {
  const worker = new Worker(
    queue,
    async ({ id, data }) => {
      const parents = (data as { parents: string[] }).parents;
      const done = parents.length === 0 ? [] : await client.smismember(`${log}:done`, ...parents);
      if (done.includes(0)) await client.rpush(`${log}:early`, `${queue}:${id}`);
      await client.hincrby(`${log}:starts`, `${queue}:${id}`, 1);
      await new Promise((resolve) => setTimeout(resolve, (data as { takes: number }).takes));
      await client.sadd(`${log}:done`, `${queue}:${id}`);
    },
    {
      prefix,
      concurrency: 8,
      lockDuration: 1500,
      stalledInterval: 500,
      maxStalledCount: 1000,
      connection: { host: hostname, port: Number(port), maxRetriesPerRequest: null },
    },
  );
  worker.on('error', () => undefined);
  await worker.waitUntilReady();
}
process.stdout.write('working\n');
