import { expect, onTestFinished, test } from 'vitest';
import { examine } from '../../src/client/doctor.js';
import { Queue, Worker } from '../../src/index.js';
import { onCleanup } from '../support/cleanup.js';
import { eventually } from '../support/eventually.js';
import { namespaceFor, sharedRedisUrl } from '../support/namespace.js';

const HOUR = 3_600_000;

test('where onDead is in use, what removes runs as they die is told, by job, schedule and worker', async ({
  task,
}) => {
  const prefix = namespaceFor(task);
  const queue = new Queue('q', { connection: sharedRedisUrl(), prefix });
  onCleanup('queue', () => queue.close());
  const { shard } = queue.backend;
  const untold = async () => {
    const report = await examine(shard.client, { namespace: shard.namespace, prefix }, { pause: 10 });
    return report.findings.filter(({ check }) => check === 'untold');
  };
  const add = (jobId: string, removeOnFail?: boolean | number | { age: number }) =>
    queue.add('a', {}, { jobId, delay: HOUR, ...(removeOnFail === undefined ? {} : { removeOnFail }) });
  await add('kept');
  await add('aged', { age: 3600 });
  await add('some', 5);
  await add('none', 0);
  const template = { name: 'a', opts: { removeOnFail: true } };
  await queue.schedules.upsert('s', { every: '1h', missed: 'skip' }, template);
  const worker = new Worker(
    'q',
    { a: () => 1 },
    {
      connection: sharedRedisUrl(),
      prefix,
      removeOnFail: { count: 0 },
    },
  );
  worker.on('error', () => undefined);
  onTestFinished(() => worker.close(true));
  await eventually(async () => expect(await shard.client.hlen(shard.keys.workers)).toBe(1));
  expect(await untold()).toEqual([]);
  await shard.client.set(shard.keys.deadSince, Date.now());
  const [finding, ...more] = await untold();
  expect(more).toEqual([]);
  expect(finding).toMatchObject({ severity: 'warning', subject: 'q' });
  for (const name of ['q:none', 'q:s', `worker ${worker.id}`]) expect(finding?.detail).toContain(name);
  for (const name of ['q:kept', 'q:aged', 'q:some']) expect(finding?.detail).not.toContain(name);
});
