import { spawnSync } from 'node:child_process';
import { beforeAll, expect, test } from 'vitest';
import { consumer, consumerNode } from '../support/consumer.js';
import { namespaceFor } from '../support/namespace.js';
import { type RedisServer, startRedis } from '../support/redis-server.js';

let redis: RedisServer;
beforeAll(async () => {
  redis = await startRedis();
});

const LOAD = {
  module: `import { Queue } from 'carillon';
    import { Worker } from 'bullmq';`,
  commonjs: `const { Queue } = require('carillon');
    const { Worker } = require('bullmq');`,
};

test.each(['module', 'commonjs'] as const)(
  'as %s, the tarball puts a job into BullMQ by the Lua that it ships, and a stock worker runs it',
  (type) => {
    const queueName = namespaceFor(type);
    const { stdout, stderr, status } = spawnSync(
      consumerNode(),
      [
        `--input-type=${type}`,
        '-e',
        `${LOAD[type]}
        async function main() {
          const connection = { host: '127.0.0.1', port: ${redis.port} };
          const queue = new Queue('${queueName}', { connection });
          const ran = new Promise((resolve) => {
            const worker = new Worker('${queueName}', async (job) => {
              resolve({ worker, run: { id: job.id, name: job.name, data: job.data } });
            }, { connection });
          });
          const job = await queue.add('send', { to: 'é@example.com' }, { jobId: 'order-5' });
          const { worker, run } = await ran;
          await worker.close();
          await queue.close();
          console.log(JSON.stringify({ answer: job.answer, run }));
        }
        main();`,
      ],
      { cwd: consumer(), encoding: 'utf8', timeout: 20_000 },
    );
    expect(status, stderr).toBe(0);
    expect(JSON.parse(stdout)).toEqual({
      answer: 'created',
      run: { id: 'order-5', name: 'send', data: { to: 'é@example.com' } },
    });
  },
);
